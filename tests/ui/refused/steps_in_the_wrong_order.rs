//! Joins that are ended too soon, conditions that come too late, bounds of what is no interval join, a stream that is
//! joined before it is keyed, and joins that are told how long to keep rows though they know it.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = placed_at)]
struct Order {
    #[key]
    order_id: u64,
    amount: i64,
    placed_at: EventTime,
}

fn main() {
    let flow = Flow::new("mistake");
    let unkeyed = flow.stream::<Order>(JsonLines::file("orders.jsonl"));
    let orders = unkeyed.clone().keyed();

    let by_amount = unkeyed.clone().optional().key_by(|order| order.amount);
    by_amount.join(orders.clone()).ttl(hours(1)).into_tuples().sink_to(JsonLines::sink("pairs.jsonl"));

    unkeyed.join(orders.clone()).ttl(hours(1)).into_tuples().sink_to(JsonLines::sink("pairs.jsonl"));

    let twice = orders.clone().join(orders.clone()).ttl(hours(1)).on(|one, other| one.amount < other.amount);
    twice.select(|one, other| one.amount + other.amount).sink_to(JsonLines::sink("sums.jsonl"));

    let _ = orders.clone().join(orders.clone()).between(-secs(5), secs(5));
    orders.clone().join(orders.clone()).ttl(hours(1)).sink_to(JsonLines::sink("pairs.jsonl"));

    let near = orders.clone().interval_join(orders.clone()).between(-secs(5), secs(5)).ttl(hours(1));
    near.into_tuples().sink_to(JsonLines::sink("pairs.jsonl"));
    let hourly = orders.clone().window_join(orders).tumbling(hours(1)).keep_forever();
    hourly.into_tuples().sink_to(JsonLines::sink("pairs.jsonl"));
}

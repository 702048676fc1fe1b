//! A join of facts that takes back what expires, sent to a sink that cannot take rows back.

use flowjoin::prelude::*;
use flowjoin::Retract;

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct User {
    #[key]
    user_id: u64,
    level: i64,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at)]
struct Order {
    user_id: u64,
    amount: i64,
    placed_at: EventTime,
}

fn main() {
    let flow = Flow::new("mistake");
    let users = flow.stream::<User>(JsonLines::file("users.jsonl")).keyed();
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).key_by(|o| o.user_id);

    orders
        .join(users)
        .ttl(hours(24))
        .on_expiry(Retract)
        .select(|order, user| (order.amount, user.level))
        .sink_to(JsonLines::sink("levels.jsonl"));
}

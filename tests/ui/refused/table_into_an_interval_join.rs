//! An interval join of a table, on either side.

use flowjoin::prelude::*;

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
    let users = flow.table::<User>(Debezium::json("users.jsonl"));
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).key_by(|o| o.user_id);

    let _ = users.keyed().interval_join(orders.clone()).between(-secs(5), secs(5));
    let _ = users.interval_join(orders.clone()).between(-secs(5), secs(5));
    let _ = users.window_join(orders.clone()).tumbling(hours(1));
    let _ = orders.interval_join(users).between(-secs(5), secs(5));
}

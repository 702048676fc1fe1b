//! A semi join that does not say how long its rows are kept.

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

    orders.where_exists(users).into_rows().sink_to(JsonLines::changelog("known.jsonl"));
}

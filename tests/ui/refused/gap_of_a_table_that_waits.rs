//! Gaps of a table, that are to be told when they can no longer be filled.

use flowjoin::prelude::*;
use flowjoin::{EagerAfter, Final};

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

    let _ = orders.clone().join(users.optional().emit(Final)).ttl(hours(1));
    let _ = orders.join(users.keyed().optional().emit(EagerAfter(secs(5)))).ttl(hours(1));
}

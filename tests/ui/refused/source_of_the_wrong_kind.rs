//! Facts, read as if they were changes of rows, and the reverse.

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
    let _ = flow.table::<User>(JsonLines::file("users.jsonl"));
    let _ = flow.table::<User>(Csv::file("users.csv"));
    let _ = flow.stream::<User>(Debezium::json("users.jsonl"));
    let _ = flow.stream::<User>(JsonLines::table("users.jsonl"));
}

//! A table, whose rows change, sent to sinks that cannot take rows back.

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
    users.sink_to(JsonLines::sink("users.jsonl"));
    users.map(|user| user.level).sink_to(Csv::sink("levels.csv"));
}

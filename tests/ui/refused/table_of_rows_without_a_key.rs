//! Tables of rows that do not say which of their fields is the key.

use flowjoin::prelude::*;
use flowjoin::RowKind;

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
    let _ = flow.table::<Order>(Debezium::json("orders.jsonl"));
    let _ = flow.stream::<Order>(JsonLines::file("orders.jsonl")).latest_by_key();
    let _ = flow
        .stream::<Order>(JsonLines::file("orders.jsonl"))
        .as_changelog(|order| (RowKind::Insert, order))
        .to_table();
}

//! Temporal and snapshot joins of rows that can be taken back.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = placed_at)]
struct Order {
    #[key]
    user_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = since)]
struct Level {
    #[key]
    user_id: u64,
    since: EventTime,
}

fn main() {
    let flow = Flow::new("mistake");
    let orders = flow.table::<Order>(Debezium::json("orders.jsonl"));
    let levels = flow.table::<Level>(JsonLines::table("levels.jsonl"));

    let _ = orders.keyed().temporal_join(levels.clone());
    let _ = orders.keyed().snapshot_join(levels);
}

//! A temporal join of what is no table, and of one under another key.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at)]
struct Order {
    user_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = since)]
struct Level {
    #[key]
    name: String,
    user_id: u64,
    since: EventTime,
}

fn main() {
    let flow = Flow::new("mistake");
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).key_by(|o| o.user_id);
    let levels = flow.stream::<Level>(JsonLines::file("levels.jsonl"));

    let _ = orders.clone().temporal_join(levels.clone().key_by(|l| l.user_id));
    let _ = orders.temporal_join(levels.latest_by_key());
}

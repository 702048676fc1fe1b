//! A temporal join of a table whose rows have no event time.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at)]
struct Order {
    user_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = at)]
struct Score {
    user_id: u64,
    points: i64,
    at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Keyed)]
struct Level {
    #[key]
    user_id: u64,
    level: i64,
}

fn main() {
    let flow = Flow::new("mistake");
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).key_by(|o| o.user_id);
    let scores = flow.stream::<Score>(JsonLines::file("scores.jsonl"));
    let levels = scores.map(|s| Level { user_id: s.user_id, level: s.points / 100 }).latest_by_key();

    let _ = orders.clone().temporal_join(levels.clone());
    let _ = orders.temporal_join(levels.optional());
}

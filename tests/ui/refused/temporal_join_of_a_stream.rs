//! A temporal join of what is no table, of one under another key, and of one whose rows have no event time.

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

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = at)]
struct Score {
    user_id: u64,
    points: i64,
    at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Keyed)]
struct Rank {
    #[key]
    user_id: u64,
    level: i64,
}

fn main() {
    let flow = Flow::new("mistake");
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).key_by(|o| o.user_id);
    let levels = flow.stream::<Level>(JsonLines::file("levels.jsonl"));

    let _ = orders.clone().temporal_join(levels.clone().key_by(|l| l.user_id));
    let _ = orders.clone().temporal_join(levels.latest_by_key());
    let scores = flow.stream::<Score>(JsonLines::file("scores.jsonl"));
    let ranks = scores.map(|s| Rank { user_id: s.user_id, level: s.points / 100 }).latest_by_key();
    let _ = orders.clone().temporal_join(ranks.clone());
    let _ = orders.temporal_join(ranks.optional());
}

//! A unit that does not exist, and one on a field that is not an integer.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at, unit = "seconds")]
struct Order {
    placed_at: u64,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = paid_at, unit = "ms")]
struct Payment {
    paid_at: EventTime,
}

fn main() {}

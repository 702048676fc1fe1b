//! An option that does not exist, one that nearly does, and one that is given twice: all are told at once.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at, lateness = "5s", max_futur = "1h", idle = "1m", idle = "2m")]
struct Order {
    order_id: u64,
    placed_at: EventTime,
}

fn main() {}

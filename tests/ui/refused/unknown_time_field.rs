//! A field that does not exist, and none at all.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = place_at, out_of_order = "5 seconds")]
struct Order {
    order_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event)]
struct Shipment {
    moved_at: EventTime,
}

fn main() {}

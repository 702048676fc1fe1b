//! Attributes of `Event` that do not exist, nearly do, or do not fit: all are told at once.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at, lateness = "5s", max_futur = "1h", idle = "1m", idle = "2m")]
struct Order {
    order_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = place_at, out_of_order = "5 seconds")]
struct Delivery {
    order_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event)]
struct Shipment {
    moved_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = placed_at, unit = "seconds")]
struct Purchase {
    placed_at: u64,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = paid_at, unit = "ms")]
struct Payment {
    paid_at: EventTime,
}

fn main() {}

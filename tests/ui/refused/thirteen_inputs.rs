//! A join of more inputs than there can be, and of one.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = placed_at)]
struct Order {
    #[key]
    order_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(time = paid_at)]
struct Payment {
    order_id: u64,
    reference: String,
    paid_at: EventTime,
}

#[derive(Clone, Serialize, Deserialize, Keyed)]
struct Paid {
    #[key]
    order_id: u64,
    reference: Option<String>,
}

fn main() {
    let flow = Flow::new("mistake");
    let a = || flow.stream::<Order>(JsonLines::file("orders.jsonl")).keyed();
    let _ = multi_join![a(), a(), a(), a(), a(), a(), a(), a(), a(), a(), a(), a(), a()];
    let _ = multi_join![a()];
}

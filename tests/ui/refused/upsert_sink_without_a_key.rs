//! A sink that keeps the newest row of each key, for rows without a key; and `keyed` on them.

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
    let payments = flow.stream::<Payment>(JsonLines::file("payments.jsonl"));
    payments.clone().sink_to(JsonLines::upsert("payments-by-order.jsonl"));
    let _ = payments.keyed();
}

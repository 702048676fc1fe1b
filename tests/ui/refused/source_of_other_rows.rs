//! A source of rows of another type, something that is no source, and something that is no sink.

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
    let payments = flowjoin::connectors::Memory::<Payment>::rows("payments", Vec::new());
    let orders = flow.stream::<Order>(payments);
    let more = flow.stream::<Order>("orders.jsonl");
    orders.union(more).sink_to("all-orders.jsonl");
}

//! A row that is made of another, and cannot be sent on.

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

struct Total {
    orders: u64,
}

fn main() {
    let flow = Flow::new("mistake");
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl"));
    orders.clone().map(|order| Total { orders: order.order_id }).sink_to(JsonLines::sink("totals.jsonl"));
    let _ = orders
        .clone()
        .keyed()
        .join(orders.keyed())
        .ttl(hours(1))
        .select(|order, _| Total { orders: order.order_id });
}

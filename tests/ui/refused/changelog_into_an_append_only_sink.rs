//! The result of a join with an optional input, sent to a sink that cannot take rows back.

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
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).keyed();
    let payments = flow.stream::<Payment>(JsonLines::file("payments.jsonl")).key_by(|p| p.order_id);

    orders
        .join(payments.optional())
        .ttl(hours(24))
        .select(|order, payment| Paid {
            order_id: order.order_id,
            reference: payment.map(|p| p.reference.clone()),
        })
        .sink_to(JsonLines::sink("paid.jsonl"));
}

//! A window join of a stream whose rows can be taken back, however it is written.

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
    let paid = orders
        .clone()
        .join(payments.optional())
        .ttl(hours(24))
        .select(|order, payment| Paid {
            order_id: order.order_id,
            reference: payment.map(|p| p.reference.clone()),
        })
        .keyed();

    let _ = paid
        .clone()
        .window_join(orders.clone())
        .tumbling(hours(1))
        .select(|paid, _| paid.order_id);
    let _ = orders
        .clone()
        .window_join(paid.clone().optional())
        .tumbling(hours(1))
        .select(|order, paid| (order.order_id, paid.is_some()));
    let _ = multi_join![orders.clone(), orders, paid]
        .session(minutes(5))
        .select(|order, _, paid| (order.order_id, paid.order_id));
}

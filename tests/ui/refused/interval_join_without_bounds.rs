//! Interval joins that do not say which times make a pair, or say it, and how long windows are, in numbers without a unit.

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

    let paid = orders.clone().interval_join(payments.clone()).select(|order, payment| Paid {
        order_id: order.order_id,
        reference: Some(payment.reference.clone()),
    });
    paid.sink_to(JsonLines::sink("paid.jsonl"));

    let (paid, (unpaid, _)) = orders
        .clone()
        .interval_join(payments.clone())
        .select_with_unmatched(|order, payment| (order.order_id, payment.paid_at));
    paid.sink_to(JsonLines::sink("paid.jsonl"));
    unpaid.sink_to(JsonLines::sink("unpaid.jsonl"));

    orders.clone().interval_join(payments.clone()).between(-5, 30).into_tuples().sink_to(JsonLines::sink("paid.jsonl"));
    orders.clone().where_exists(payments.clone()).between(secs(0), 1.5).into_rows().sink_to(JsonLines::sink("in.jsonl"));
    orders.clone().window_join(payments.clone()).tumbling(60).into_tuples().sink_to(JsonLines::sink("hourly.jsonl"));

    orders.interval_join(payments.optional()).into_tuples().sink_to(JsonLines::sink("paid.jsonl"));
}

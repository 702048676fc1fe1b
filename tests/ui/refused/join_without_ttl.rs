//! Joins that do not say how long their rows are kept, or say it without a unit.

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

    let paid = orders.clone().join(payments.clone()).select(|order, payment| Paid {
        order_id: order.order_id,
        reference: Some(payment.reference.clone()),
    });
    paid.sink_to(JsonLines::sink("paid.jsonl"));

    let (paid, (unpaid, _, _)) = multi_join![orders.clone(), payments.clone(), payments.clone().optional()]
        .named("paid-twice")
        .select_with_unmatched(|order, first, second| {
            (order.order_id, first.paid_at, second.map(|second| second.paid_at))
        });
    paid.sink_to(JsonLines::upsert("paid.jsonl"));
    unpaid.sink_to(JsonLines::sink("unpaid.jsonl"));

    orders.clone().where_exists(payments.clone()).into_rows().sink_to(JsonLines::sink("known.jsonl"));
    let _ = orders.clone().join(payments.clone().ttl(3600)).ttl(3600);
    orders.join(payments.optional()).into_tuples().sink_to(JsonLines::changelog("paid.jsonl"));
}

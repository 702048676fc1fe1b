//! Two sides of a join that are keyed by different types.

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
    let payments = flow.stream::<Payment>(JsonLines::file("payments.jsonl"));
    let by_text = payments.clone().key_by(|p| p.reference.clone());

    let _ = orders.clone().join(by_text.clone()).ttl(hours(1)).select(|order, payment| Paid {
        order_id: order.order_id,
        reference: Some(payment.reference.clone()),
    });
    let _ = orders.clone().interval_join(by_text.clone().optional()).between(-secs(5), secs(5)).select(|order, payment| {
        Paid { order_id: order.order_id, reference: payment.map(|p| p.reference.clone()) }
    });
    let _ = multi_join![orders.clone(), payments.clone().key_by(|p| p.order_id), by_text.optional()]
        .keep_forever()
        .select(|order, _, payment| Paid {
            order_id: order.order_id,
            reference: payment.map(|p| p.reference.clone()),
        });
    // Null where it is not known, on one side.
    let known = payments.clone().key_by(|p| Some(p.order_id));
    let _ = orders.clone().join(known).ttl(hours(1)).into_tuples();
    // Not keyed at all.
    let _ = orders.join(payments).ttl(hours(1)).select(|order, payment| Paid {
        order_id: order.order_id,
        reference: Some(payment.reference.clone()),
    });
}

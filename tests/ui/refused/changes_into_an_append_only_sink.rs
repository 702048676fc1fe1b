//! Rows that can be taken back, sent to a sink that cannot: the result of a join with an optional input, that of one
//! which takes back what expires, and a table.

use flowjoin::Retract;
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

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct User {
    #[key]
    user_id: u64,
    level: i64,
}

fn main() {
    let flow = Flow::new("mistake");
    let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).keyed();
    let payments = flow.stream::<Payment>(JsonLines::file("payments.jsonl")).key_by(|p| p.order_id);

    orders
        .clone()
        .join(payments.clone().optional())
        .ttl(hours(24))
        .select(|order, payment| Paid {
            order_id: order.order_id,
            reference: payment.map(|p| p.reference.clone()),
        })
        .sink_to(JsonLines::sink("paid.jsonl"));
    orders
        .join(payments)
        .ttl(hours(24))
        .on_expiry(Retract)
        .select(|order, payment| (order.order_id, payment.paid_at))
        .sink_to(JsonLines::sink("times.jsonl"));
    let users = flow.table::<User>(Debezium::json("users.jsonl"));
    users.sink_to(JsonLines::sink("users.jsonl"));
    users.map(|user| user.level).sink_to(Csv::sink("levels.csv"));
}

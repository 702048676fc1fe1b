//! Orders that are paid and shipped: an N-way join with an optional input, and the rows that found no partner.
//!
//! `make demo` writes the input files and runs this on them:
//! `cargo run --release --example fulfilment -- DIR-OF-INPUTS DIR-OF-OUTPUTS`

use flowjoin::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = placed_at, out_of_order = "5s", idle = "1m")]
pub(crate) struct Order {
    #[key]
    pub(crate) order_id: u64,
    pub(crate) user_id: u64,
    pub(crate) amount: i64,
    pub(crate) placed_at: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = paid_at, out_of_order = "5s", idle = "1m")]
pub(crate) struct Payment {
    pub(crate) order_id: u64,
    pub(crate) method: String,
    pub(crate) amount: i64,
    pub(crate) paid_at: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = moved_at, out_of_order = "30s", idle = "5m")]
pub(crate) struct Shipment {
    pub(crate) order_id: u64,
    pub(crate) status: String,
    pub(crate) moved_at: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize, Keyed)]
pub(crate) struct Fulfilled {
    #[key]
    pub(crate) order_id: u64,
    pub(crate) amount: i64,
    pub(crate) method: String,
    pub(crate) status: Option<String>,
}

pub(crate) fn fulfilment(flow: &Flow, from: &str, to: &str) {
    let orders = flow.stream::<Order>(JsonLines::file(format!("{from}/orders.jsonl"))).keyed();
    let payments = flow.stream::<Payment>(JsonLines::file(format!("{from}/payments.jsonl"))).key_by(|p| p.order_id);
    let shipments = flow.stream::<Shipment>(JsonLines::file(format!("{from}/shipments.jsonl"))).key_by(|s| s.order_id);

    let (fulfilled, (open_orders, stray_payments, _)) = multi_join![orders, payments, shipments.optional()]
        .named("fulfilment")
        .ttl(hours(24))
        .select_with_unmatched(|order, payment, shipment| Fulfilled {
            order_id: order.order_id,
            amount: order.amount,
            method: payment.method.clone(),
            status: shipment.map(|s| s.status.clone()),
        });

    fulfilled.sink_to(JsonLines::upsert(format!("{to}/fulfilled.jsonl"))); // a late shipment updates the row
    open_orders.sink_to(JsonLines::sink(format!("{to}/unpaid.jsonl")));
    stray_payments.sink_to(JsonLines::sink(format!("{to}/stray-payments.jsonl")));
}

#[tokio::main]
async fn main() -> flowjoin::Result<()> {
    let mut directories = std::env::args().skip(1);
    let from = directories.next().unwrap_or_else(|| "examples/out/in".to_string());
    let to = directories.next().unwrap_or_else(|| "examples/out".to_string());
    let flow = Flow::new("fulfilment");
    fulfilment(&flow, &from, &to);
    println!("{}", flow.explain()?);
    flow.run(Config::from_env()?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flowjoin_testkit::TestFlow;

    fn flow() -> TestFlow {
        TestFlow::new(|flow| fulfilment(flow, "in", "out"))
    }

    fn order(order_id: u64) -> Order {
        Order { order_id, user_id: 7, amount: 100, placed_at: EventTime::from_millis(1_000) }
    }

    fn payment(order_id: u64) -> Payment {
        Payment { order_id, method: "card".to_string(), amount: 100, paid_at: EventTime::from_millis(2_000) }
    }

    fn shipment(order_id: u64, status: &str) -> Shipment {
        Shipment { order_id, status: status.to_string(), moved_at: EventTime::from_millis(3_000) }
    }

    #[test]
    fn a_shipment_fills_the_missing_side() {
        let mut t = flow();
        t.send("orders", order(1)).send("payments", payment(1));
        t.check("fulfilled", expect![["+I order_id 1, amount 100, method card, status -"]]);
        t.send("shipments", shipment(1, "sent"));
        t.check(
            "fulfilled",
            expect![[r"
            -D order_id 1, amount 100, method card, status -
            +I order_id 1, amount 100, method card, status sent"]],
        );
    }

    #[test]
    fn an_unpaid_order_comes_out_once() {
        let mut t = flow();
        t.send("orders", order(1)).advance(hours(25));
        t.check(
            "unpaid",
            expect![["+I order_id 1, user_id 7, amount 100, placed_at 1970-01-01T00:00:01.000Z, reason expired"]],
        );
        t.send("payments", payment(1)).end_all();
        t.check("unpaid", expect![[""]]);
    }
}

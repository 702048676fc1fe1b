//! Orders that were paid in time: an interval join, and the orders and payments that found no partner in it.
//!
//! `make demo` writes the input; then `cargo run --release --example interval -- DIR-OF-INPUTS DIR-OF-OUTPUTS`

use flowjoin::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = placed_at, out_of_order = "5s", idle = "1m")]
pub(crate) struct Order {
    order_id: u64,
    amount: i64,
    placed_at: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = paid_at, out_of_order = "5s", idle = "1m")]
pub(crate) struct Payment {
    order_id: u64,
    method: String,
    paid_at: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Paid {
    order_id: u64,
    amount: i64,
    method: String,
    after_ms: i64,
}

impl Paid {
    fn new(order: &Order, payment: &Payment) -> Paid {
        let after = payment.paid_at.since(order.placed_at);
        Paid {
            order_id: order.order_id,
            amount: order.amount,
            method: payment.method.clone(),
            after_ms: after.as_millis(),
        }
    }
}

pub(crate) fn paid_in_time(flow: &Flow, from: &str, to: &str) {
    let orders = flow.stream::<Order>(JsonLines::file(format!("{from}/orders.jsonl")));
    let payments = flow.stream::<Payment>(JsonLines::file(format!("{from}/payments.jsonl")));

    let (paid, (unpaid, _stray)) = orders
        .key_by(|o| o.order_id)
        .interval_join(payments.key_by(|p| p.order_id))
        .between(-secs(5), secs(30)) // payment.time - order.time, both ends included
        .select_with_unmatched(Paid::new);

    paid.sink_to(JsonLines::sink(format!("{to}/paid.jsonl")));
    unpaid.sink_to(JsonLines::sink(format!("{to}/not-in-time.jsonl"))); // when the watermark passes order.time + 30 s
}

#[tokio::main]
async fn main() -> flowjoin::Result<()> {
    let mut directories = std::env::args().skip(1);
    let from = directories.next().unwrap_or_else(|| "examples/out/in".to_string());
    let to = directories.next().unwrap_or_else(|| "examples/out".to_string());
    let flow = Flow::new("paid in time");
    paid_in_time(&flow, &from, &to);
    println!("{}", flow.explain()?);
    flow.run(Config::from_env()?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flowjoin_testkit::TestFlow;

    fn at(seconds: i64) -> EventTime {
        EventTime::from_millis(seconds * 1_000)
    }

    fn order(order_id: u64, seconds: i64) -> Order {
        Order { order_id, amount: 100, placed_at: at(seconds) }
    }

    fn payment(order_id: u64, seconds: i64) -> Payment {
        Payment { order_id, method: "card".to_string(), paid_at: at(seconds) }
    }

    #[test]
    fn both_ends_of_the_interval_belong_to_it() {
        let mut t = TestFlow::new(|flow| paid_in_time(flow, "in", "out"));
        t.send_all("orders", vec![order(1, 100), order(2, 100), order(3, 100), order(4, 100)]);
        t.send_all("payments", vec![payment(1, 95), payment(2, 130), payment(3, 94), payment(4, 131)]);
        t.check(
            "paid",
            expect![[r"
                +I order_id 1, amount 100, method card, after_ms -5000
                +I order_id 2, amount 100, method card, after_ms 30000"]],
        );
    }

    #[test]
    fn an_order_that_is_not_paid_comes_out_once_its_interval_has_closed() {
        let mut t = TestFlow::new(|flow| paid_in_time(flow, "in", "out"));
        t.send("orders", order(1, 100));
        for source in ["orders", "payments"] {
            t.watermark(source, at(130));
        }
        t.check("not-in-time", expect![""]);
        for source in ["orders", "payments"] {
            t.watermark(source, at(131));
        }
        t.check(
            "not-in-time",
            expect!["+I order_id 1, amount 100, placed_at 1970-01-01T00:01:40.000Z, reason interval_closed"],
        );
    }
}

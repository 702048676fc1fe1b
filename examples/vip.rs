//! Orders at the price for the level that the user had when the order was placed: a temporal join.
//!
//! ```text
//!   vip-levels  ──2──────────4──────────✗──▶  (rows by user, each from a time on; ✗: lost)
//!   orders      ─────●───●──────●──────────●─▶
//!                    2   2      4          0
//! ```
//!
//! An order waits until the watermark has passed its time, as a level of before it may still come. A level that was not
//! renewed for 30 days is over. `cargo run --release --example vip -- DIRECTORY` writes the input into `DIRECTORY/in`, runs,
//! and leaves `DIRECTORY/orders-priced.jsonl`.

use std::path::Path;

use flowjoin::prelude::*;

#[path = "vip_data.rs"]
pub(crate) mod data;

/// An order; a guest's has no user.
#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = placed_at, out_of_order = "1h", idle = "1m")]
pub(crate) struct Order {
    order_id: u64,
    user_id: Option<u64>,
    amount: i64,
    placed_at: EventTime,
}

/// The level of a user from a time on.
#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = since, out_of_order = "1h", idle = "1m")]
pub(crate) struct VipLevel {
    #[key]
    user_id: Option<u64>,
    level: i64,
    since: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PricedOrder {
    order_id: u64,
    user_id: Option<u64>,
    level: i64,
    price: i64,
}

impl PricedOrder {
    // Two percent off for each level.
    fn new(order: &Order, level: i64) -> PricedOrder {
        PricedOrder {
            order_id: order.order_id,
            user_id: order.user_id,
            level,
            price: order.amount * (100 - 2 * level) / 100,
        }
    }
}

pub(crate) fn priced(flow: &Flow, from: &str, to: &str) {
    let orders = flow.stream::<Order>(JsonLines::file(format!("{from}/orders.jsonl"))).key_by(|o| o.user_id);
    let vip = flow.table::<VipLevel>(JsonLines::table(format!("{from}/vip-levels.jsonl")));

    orders
        .temporal_join(vip.optional())
        .named("priced")
        .keep_versions(days(30))
        .select(|order, vip| PricedOrder::new(order, vip.map_or(0, |v| v.level)))
        .sink_to(JsonLines::sink(format!("{to}/orders-priced.jsonl")));
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = std::env::args().nth(1).unwrap_or_else(|| "examples/out/vip".to_string());
    let from = format!("{to}/in");
    data::write(&data::Shape { orders: 20_000, seed: 1 }, Path::new(&from))?;
    let flow = Flow::new("vip");
    priced(&flow, &from, &to);
    println!("{}", flow.explain()?);
    flow.run(Config::from_env()?).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flowjoin_testkit::TestFlow;

    #[test]
    fn an_order_has_the_price_of_the_level_that_held_when_it_was_placed() {
        let script = r#"
            vip-levels user_id=7 level=2 since=1970-01-01T02:00:00Z
            vip-levels user_id=7 level=4 since=1970-01-01T04:00:00Z
            orders order_id=1 user_id=7 amount=100 placed_at=1970-01-01T01:00:00Z
            orders order_id=2 user_id=7 amount=100 placed_at=1970-01-01T02:00:00Z
            orders order_id=3 user_id=7 amount=100 placed_at=1970-01-01T10:00:00Z
            orders order_id=4 user_id=- amount=100 placed_at=1970-01-01T10:00:00Z
            vip-levels user_id=8 level=1 since=1970-01-01T20:00:00Z
            vip-levels op=-D user_id=7
            orders order_id=5 user_id=7 amount=100 placed_at=1970-01-01T20:00:00Z
            end"#;
        let played = TestFlow::new(|flow| priced(flow, "in", "out")).play(script);
        expect![[r#"
            vip-levels user_id=7 level=2 since=1970-01-01T02:00:00Z
            vip-levels user_id=7 level=4 since=1970-01-01T04:00:00Z
            orders order_id=1 user_id=7 amount=100 placed_at=1970-01-01T01:00:00Z
            orders order_id=2 user_id=7 amount=100 placed_at=1970-01-01T02:00:00Z
            orders order_id=3 user_id=7 amount=100 placed_at=1970-01-01T10:00:00Z
              orders-priced: +I order_id 1, user_id 7, level 0, price 100
              orders-priced: +I order_id 2, user_id 7, level 2, price 96
            orders order_id=4 user_id=- amount=100 placed_at=1970-01-01T10:00:00Z
              orders-priced: +I order_id 4, user_id -, level 0, price 100
            vip-levels user_id=8 level=1 since=1970-01-01T20:00:00Z
            vip-levels op=-D user_id=7
            orders order_id=5 user_id=7 amount=100 placed_at=1970-01-01T20:00:00Z
              orders-priced: +I order_id 3, user_id 7, level 4, price 92
            end
              orders-priced: +I order_id 5, user_id 7, level 0, price 100
        "#]]
        .assert_eq(&played);
    }
}

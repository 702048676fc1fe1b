//! A wide table of orders: each with the level of its user, the category of its product and the newest status of its
//! delivery, kept right while all four change.
//!
//! ```text
//!   orders    (rows by key)  ──by user──┐
//!   users     (Debezium)     ───────────┴─by product─┐
//!   products  (Debezium)     ────────────────────────┴─by order─┐
//!   logistics (facts)        ─newest of each order──────────────┴─▶  wide (upsert)
//! ```
//!
//! As a query: `orders LEFT JOIN users LEFT JOIN products LEFT JOIN newest logistics`, with a default for what is missing.
//! The result of each join is keyed anew for the next. `cargo run --release --example wide_table -- DIRECTORY` writes the
//! input into `DIRECTORY/in`, runs, and leaves `DIRECTORY/wide.jsonl`: applied by key in its order, it is the table.

use std::path::Path;

use flowjoin::prelude::*;

#[path = "wide_table_data.rs"]
pub(crate) mod data;

/// An order; a guest's has no user.
#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
pub(crate) struct Order {
    #[key]
    order_id: u64,
    user_id: Option<u64>,
    product_id: u64,
    amount: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
pub(crate) struct User {
    #[key]
    user_id: u64,
    level: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
pub(crate) struct Product {
    #[key]
    product_id: u64,
    category: String,
}

/// A fact: an order has reached a status.
#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = moved_at, out_of_order = "30s", idle = "1m")]
pub(crate) struct Logistics {
    #[key]
    order_id: u64,
    status: String,
    moved_at: EventTime,
}

/// An order and its user.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Placed {
    order: Order,
    level: i64,
}

/// An order with its user and its product.
#[derive(Clone, Debug, Serialize, Deserialize, Keyed)]
struct Described {
    #[key]
    order_id: u64,
    user_id: Option<u64>,
    level: i64,
    product_id: u64,
    category: String,
    amount: i64,
}

/// A row of the wide table.
#[derive(Clone, Debug, Serialize, Deserialize, Keyed)]
pub(crate) struct Wide {
    #[key]
    order_id: u64,
    user_id: Option<u64>,
    level: i64,
    product_id: u64,
    category: String,
    amount: i64,
    status: String,
}

pub(crate) fn wide_table(flow: &Flow, from: &str, to: &str) {
    let orders = flow.table::<Order>(JsonLines::table(format!("{from}/orders.jsonl")));
    let users = flow.table::<User>(Debezium::json(format!("{from}/users.jsonl")));
    let products = flow.table::<Product>(Debezium::json(format!("{from}/products.jsonl")));
    let logistics = flow.stream::<Logistics>(JsonLines::file(format!("{from}/logistics.jsonl")));
    let logistics = logistics.latest_by_key().ordered_by(|status| status.moved_at).named("newest status");

    let placed = orders
        .key_by(|order| order.user_id)
        .join(users.key_by(|user| Some(user.user_id)).optional())
        .named("placed")
        .keep_forever()
        .select(|order, user| Placed { order: order.clone(), level: user.map_or(0, |user| user.level) });

    let described = placed
        .key_by(|placed| placed.order.product_id)
        .join(products.optional())
        .named("described")
        .keep_forever()
        .select(|Placed { order, level }, product| Described {
            order_id: order.order_id,
            user_id: order.user_id,
            level: *level,
            product_id: order.product_id,
            category: product.map_or("unknown", |product| &product.category).to_string(),
            amount: order.amount,
        });

    // Back to one row an order: of an order whose user or product has changed, the old row may be taken back after the new
    // one has come, as they come by different tasks.
    let wide =
        described.to_table().join(logistics.optional()).named("wide").keep_forever().select(|described, status| {
            let Described { order_id, user_id, level, product_id, category, amount } = described.clone();
            let status = status.map_or("none", |status| &status.status).to_string();
            Wide { order_id, user_id, level, product_id, category, amount, status }
        });
    wide.sink_to(JsonLines::upsert(format!("{to}/wide.jsonl")));
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = std::env::args().nth(1).unwrap_or_else(|| "examples/out/wide".to_string());
    let from = format!("{to}/in");
    data::write(&data::Shape { orders: 20_000, seed: 1 }, Path::new(&from))?;
    let flow = Flow::new("wide table");
    wide_table(&flow, &from, &to);
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
    fn a_row_follows_its_order_user_product_and_status() {
        let script = r#"
            orders order_id=1 user_id=7 product_id=3 amount=50
            users op=c after={"user_id":7,"level":2}
            products op=c after={"product_id":3,"category":"tea"}
            logistics order_id=1 status=sent moved_at=2000
            logistics order_id=1 status=packed moved_at=1000
            orders order_id=1 user_id=8 product_id=3 amount=50
            users op=d before={"user_id":7}
            users op=c after={"user_id":8,"level":4}
            products op=d before={"product_id":3,"category":"tea"}
            orders op=-D order_id=1 product_id=3 amount=50"#;
        let played = TestFlow::new(|flow| wide_table(flow, "in", "out")).play(script);
        expect![[r#"
            orders order_id=1 user_id=7 product_id=3 amount=50
              wide: +I order_id 1, user_id 7, level 0, product_id 3, category unknown, amount 50, status none
            users op=c after={"user_id":7,"level":2}
              wide: -U order_id 1, user_id 7, level 0, product_id 3, category unknown, amount 50, status none
              wide: +U order_id 1, user_id 7, level 2, product_id 3, category unknown, amount 50, status none
            products op=c after={"product_id":3,"category":"tea"}
              wide: -U order_id 1, user_id 7, level 2, product_id 3, category unknown, amount 50, status none
              wide: +U order_id 1, user_id 7, level 2, product_id 3, category tea, amount 50, status none
            logistics order_id=1 status=sent moved_at=2000
              wide: -D order_id 1, user_id 7, level 2, product_id 3, category tea, amount 50, status none
              wide: +I order_id 1, user_id 7, level 2, product_id 3, category tea, amount 50, status sent
            logistics order_id=1 status=packed moved_at=1000
            orders order_id=1 user_id=8 product_id=3 amount=50
              wide: -U order_id 1, user_id 7, level 2, product_id 3, category tea, amount 50, status sent
              wide: +U order_id 1, user_id 8, level 0, product_id 3, category tea, amount 50, status sent
            users op=d before={"user_id":7}
            users op=c after={"user_id":8,"level":4}
              wide: -U order_id 1, user_id 8, level 0, product_id 3, category tea, amount 50, status sent
              wide: +U order_id 1, user_id 8, level 4, product_id 3, category tea, amount 50, status sent
            products op=d before={"product_id":3,"category":"tea"}
              wide: -U order_id 1, user_id 8, level 4, product_id 3, category tea, amount 50, status sent
              wide: +U order_id 1, user_id 8, level 4, product_id 3, category unknown, amount 50, status sent
            orders op=-D order_id=1 product_id=3 amount=50
              wide: -D order_id 1, user_id 8, level 4, product_id 3, category unknown, amount 50, status sent
        "#]]
        .assert_eq(&played);
    }
}

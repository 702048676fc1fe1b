//! Typed joins over event streams: N-way and interval joins, unmatched rows, every row accounted for.
//!
//! A program builds a [`Flow`] out of streams and joins, which runs nothing; then it is explained, tested or run.
//!
//! ```no_run
//! use flowjoin::prelude::*;
//!
//! #[derive(Clone, Serialize, Deserialize, Event, Keyed)]
//! #[event(time = placed_at, out_of_order = "5s", idle = "1m")]
//! struct Order { #[key] order_id: u64, amount: i64, placed_at: EventTime }
//!
//! #[derive(Clone, Serialize, Deserialize, Event)]
//! #[event(time = paid_at, out_of_order = "5s", idle = "1m")]
//! struct Payment { order_id: u64, method: String, paid_at: EventTime }
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Paid { order_id: u64, amount: i64, method: String }
//!
//! #[tokio::main]
//! async fn main() -> flowjoin::Result<()> {
//!     let flow = Flow::new("payments");
//!     let orders = flow.stream::<Order>(JsonLines::file("orders.jsonl")).keyed();
//!     let payments = flow.stream::<Payment>(JsonLines::file("payments.jsonl")).key_by(|p| p.order_id);
//!
//!     let (paid, (unpaid, _stray)) = orders.join(payments).ttl(hours(24)).select_with_unmatched(|order, payment| Paid {
//!         order_id: order.order_id,
//!         amount: order.amount,
//!         method: payment.method.clone(),
//!     });
//!     paid.sink_to(JsonLines::sink("paid.jsonl"));
//!     unpaid.sink_to(JsonLines::sink("unpaid.jsonl"));
//!
//!     println!("{}", flow.explain()?);
//!     flow.run(Config::from_env()?).await
//! }
//! ```
//!
//! A program depends on `flowjoin`, on `serde` with its feature `derive`, and on `tokio`.
#![doc = ""]
#![doc = include_str!("../docs/joins.md")]
#![doc = ""]
#![doc = include_str!("../docs/time.md")]
#![doc = ""]
#![doc = include_str!("../docs/sources-and-sinks.md")]
#![doc = ""]
#![doc = include_str!("../docs/running.md")]
#![doc = ""]
#![doc = include_str!("../docs/testing.md")]

/// Lets sources and sinks of one's own be written: their readers and writers are async traits.
pub use async_trait::async_trait;
pub use flowjoin_connectors as connectors;
pub use flowjoin_core::api::{self, MultiJoin, multi_join};
pub use flowjoin_core::*;
pub use flowjoin_macros::{Event, Keyed};
pub use flowjoin_runtime::{Config, Error, Report, Result, RunFlow, Running, main, main_with, own_args};

pub mod prelude;

/// The programs of the README have to compile, and what they assert has to hold.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

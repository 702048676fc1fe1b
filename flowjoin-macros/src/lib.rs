//! The derives of flowjoin, [`Event`](macro@Event) and [`Keyed`](macro@Keyed): the two things a join must know of a
//! struct, its time and its key.
//!
//! A program gets them from `flowjoin`, with the traits of the same names; they expand to paths that begin with
//! `::flowjoin`. There is nothing in them that could not be written by hand: each page below shows what comes out.
//! Every mistake in a struct is told in one build, at the place where it was made.

mod attrs;
mod event;
mod keyed;
mod row;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Says when a row happened, and how far its sources may be out of order: derives the trait `Event`.
///
/// The options stand in `#[event(..)]` on the struct, in any order:
///
/// | option | says | left out |
/// |---|---|---|
/// | `time = field` | the field that holds the time; a number in a tuple struct: `time = 0` | an error |
/// | `time = ingestion` | instead of that: the time of arrival is the time of the row | |
/// | `unit = "ms"` | what an integer field counts since 1970: `"s"`, `"ms"`, `"us"` or `"ns"` | milliseconds |
/// | `out_of_order = "5s"` | a row may be this much older than the newest one seen | rows come in order |
/// | `idle = "1m"` | after so long without a row, a source is not waited for | it is always waited for |
/// | `max_future = "1h"` | a row further ahead of the wall clock is a bad record; `"none"`: no row is | `"24h"` |
///
/// A span is one or more numbers, each with a unit: `"250ms"`, `"5s"`, `"1m 30s"`, `"24h"`, `"7d"`. With
/// `time = ingestion`, only `idle` has a meaning: arrival is never out of order.
///
/// The field can be an `EventTime`, an integer (`i64`, `u64`, `i32`, `u32`), a `String` of ISO 8601, or, with the
/// feature `jiff`, a `jiff::Timestamp`: whatever has the trait `TimeField`. An integer without `unit` counts
/// **milliseconds** since 1970-01-01T00:00:00Z; seconds without `unit = "s"` would be times in January 1970. A text that is no time, or a number that
/// does not fit, makes the row a bad record of its source; it never stops the flow.
///
/// # Example
///
/// ```
/// # extern crate flowjoin_core as flowjoin;
/// # use flowjoin_macros::Event;
/// # use flowjoin::{Event, EventTime};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Clone, Serialize, Deserialize, Event)]
/// #[event(time = placed_at, unit = "s", out_of_order = "5s", idle = "1m")]
/// struct Order {
///     order_id: u64,
///     placed_at: i64,
/// }
///
/// # fn main() {
/// let order = Order { order_id: 1, placed_at: 1_357_034_400 };
/// let arrival = EventTime::from_millis(0);
/// assert_eq!(order.event_time(arrival).unwrap().to_string(), "2013-01-01T10:00:00.000Z");
/// assert_eq!(Order::watermarks().to_string(), "time placed_at, out of order ≤ 5s, idle 1m");
/// # }
/// ```
///
/// # By hand
///
/// ```
/// # extern crate flowjoin_core as flowjoin;
/// # use flowjoin::{Event, EventTime, TimeError, TimeField, TimeUnit, Watermarks, millis};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Clone, Serialize, Deserialize)]
/// # struct Order { placed_at: i64 }
/// impl Event for Order {
///     fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
///         self.placed_at.to_event_time(TimeUnit::Seconds)
///     }
///     fn watermarks() -> Watermarks {
///         Watermarks::of_field("placed_at").out_of_order(millis(5_000)).idle(millis(60_000))
///     }
/// }
/// # fn main() {}
/// ```
///
/// In a generic struct, every type parameter gets the bound `Data`, since the struct is a row only if they are; a
/// field of a type that depends on a parameter, if it is the time, also gets `TimeField`.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    event::expand(&parse_macro_input!(input as DeriveInput)).into()
}

/// Says which field, or fields, a row is known by: derives the trait `Keyed`.
///
/// Mark the field `#[key]`. Of several marked fields, up to six, the key is the tuple in the order in which they are
/// declared. Their types must be keys: integers, `bool`, `char`, `String`, `Vec<u8>`, `EventTime`, and options and
/// tuples of these. A row whose key is `None`, also in one part of a tuple, matches nothing.
///
/// # Example
///
/// ```
/// # extern crate flowjoin_core as flowjoin;
/// # use flowjoin_macros::Keyed;
/// # use flowjoin::Keyed;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Clone, Serialize, Deserialize, Keyed)]
/// struct Stock {
///     #[key]
///     store: String,
///     #[key]
///     product_id: u64,
///     count: i64,
/// }
///
/// # fn main() {
/// let stock = Stock { store: "Ghent".to_string(), product_id: 7, count: 3 };
/// assert_eq!(stock.key(), ("Ghent".to_string(), 7));
/// # }
/// ```
///
/// # By hand
///
/// ```
/// # extern crate flowjoin_core as flowjoin;
/// # use flowjoin::Keyed;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Clone, Serialize, Deserialize)]
/// # struct Stock { store: String, product_id: u64 }
/// impl Keyed for Stock {
///     type Key = (String, u64);
///
///     fn key(&self) -> (String, u64) {
///         (self.store.clone(), self.product_id)
///     }
/// }
/// # fn main() {}
/// ```
///
/// In a generic struct, every type parameter gets the bound `Data`, since the struct is a row only if they are; a
/// marked field of a type that depends on a parameter also gets `Key`.
#[proc_macro_derive(Keyed, attributes(key))]
pub fn derive_keyed(input: TokenStream) -> TokenStream {
    keyed::expand(&parse_macro_input!(input as DeriveInput)).into()
}

//! Each join by its definition over complete inputs: nested loops, no indexes, nothing clever.
//!
//! For a test of a flow: [`Contents`] is what an input holds after its changes, and [`Relation`] joins such rows as
//! SQL does, two at a time and typed; [`left_deep`] is the same for any number of inputs of one type, each with its
//! [`Role`].
//!
//! The others know rows by their place in their input: hand in their keys (and times), get back which of them belong
//! together. [`regular()`] and [`unmatched`] are joins over what is held; [`ExpiringJoin`] is the same join told as a
//! changelog, with rows that leave by time-to-live; [`Interval`] is the interval join, [`WindowJoin`] the window join, and
//! [`Temporal`] says which version of a row held at a time. A key of `None` is null and matches nothing, everywhere.

mod contents;
mod expiring;
mod interval;
mod left_deep;
mod regular;
mod relation;
mod temporal;
mod window;

pub use contents::{Contents, Effect};
pub use expiring::{Event, Expectation, Expired, ExpiringJoin, Said};
pub use interval::{Interval, IntervalResult};
pub use left_deep::{Role, left_deep};
pub use regular::{Combination, regular, unmatched};
pub use relation::Relation;
pub use temporal::{AsOf, Temporal, Version};
pub use window::{WindowJoin, WindowResult, WindowRow, Windows};

//! Each join by its definition over complete inputs: nested loops, no indexes, nothing clever.
//!
//! Rows are known by their place in their input, so any rows can be asked about: hand in their keys (and times), get
//! back which of them belong together. A key of `None` is null and matches nothing. [`regular`] and [`unmatched`]
//! are joins over what is held; [`ExpiringJoin`] is the same join told as a changelog, with rows that leave by
//! time-to-live; [`Interval`] is the interval join.

mod expiring;
mod interval;
mod regular;

pub use expiring::{Event, Expectation, Expired, ExpiringJoin, Said};
pub use interval::{Interval, IntervalResult};
pub use regular::{Combination, regular, unmatched};

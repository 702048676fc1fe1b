//! Alignment: sources that are read in step, so that none runs ahead of the others in event time.
//!
//! ```text
//!   trips    ────────────────●                 slowest
//!   weather  ──────────────────────────●       read on while at most max_drift ahead
//!                            ├─max_drift─┤
//! ```
//!
//! The watermark of a join is the least over its inputs: what one of them has read ahead of the others waits in the
//! join's state. Alignment bounds that: a partition further ahead is not read until the others have come near.

use std::panic::Location;

use super::stream::Stream;
use super::table::Table;
use crate::time::Span;
use crate::watermark::Align;

impl<T, M> Stream<T, M> {
    /// Reads the source, as it was opened, in step with the others of a group, and its partitions in step with each
    /// other: a partition whose watermark is more than `max_drift` ahead of the slowest active one is not read until
    /// that has come near. An idle or ended partition holds nobody up, and one that waits does not become idle by that.
    ///
    /// All sources of a group give it the same drift. A page that has been read is not cut, so a partition may be ahead
    /// by the drift and one page.
    ///
    /// ```
    /// # use flowjoin_core::{*, io::*};
    /// # fn read<T: Event, S: StreamSource<T>>(flow: &Flow, trips: S, weather: S) -> [Stream<T>; 2] {
    /// let trips = flow.stream::<T>(trips).align("rides", hours(6));
    /// let weather = flow.stream::<T>(weather).align("rides", hours(6));
    /// # [trips, weather]
    /// # }
    /// ```
    #[track_caller]
    pub fn align(self, group: impl Into<String>, max_drift: Span) -> Stream<T, M> {
        self.out.flow.align(self.out.from, Align { group: group.into(), max_drift }, Location::caller());
        self
    }
}

impl<K, T> Table<K, T> {
    /// Reads the source that the table was opened on in step with others, as [`Stream::align`].
    #[track_caller]
    pub fn align(self, group: impl Into<String>, max_drift: Span) -> Table<K, T> {
        self.out.flow.align(self.out.from, Align { group: group.into(), max_drift }, Location::caller());
        self
    }
}

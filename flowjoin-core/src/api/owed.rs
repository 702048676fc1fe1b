//! Joins that still owe something: a time-to-live, bounds, windows, a `select`; and streams that owe a key.
//!
//! Their `select` exists only to say so: it cannot be called, and gives whatever is asked of it, so that nothing that
//! follows is an error too.

use std::panic::Location;

use super::flow::Output;
use super::input::Optional;
use super::interval::IntervalJoin;
use super::keyed::KeyedStream;
use super::multi::MultiJoin;
use super::snapshot::SnapshotJoin;
use super::stream::Stream;
use super::table::Table;
use super::temporal::TemporalJoin;
use super::window::WindowJoin;
use crate::state::{Clock, Ttl};
use crate::time::Span;

/// A join that does not say yet how long its rows are kept: `.ttl(hours(24))` or `.keep_forever()` comes next; or its
/// windows, such as `.tumbling(hours(1))`, which make it a [`WindowJoin`](super::WindowJoin).
#[must_use = "a join does nothing until `.ttl(..)` or `.keep_forever()`, and then `.select(..)`"]
pub struct NeedsTtl<J>(pub(super) J);

/// An interval join without bounds: `.between(lower, upper)` comes next.
#[must_use = "an interval join does nothing until `.between(lower, upper)`, and then `.select(..)`"]
pub struct NeedsBounds<J>(pub(super) J);

/// A window join without windows: `.tumbling(size)`, `.sliding(size, slide)` or `.session(gap)` comes next.
#[must_use = "a window join does nothing until `.tumbling(size)`, and then `.select(..)`"]
pub struct NeedsWindow<J>(pub(super) J);

/// The promise that a join says how long its rows are kept.
#[diagnostic::on_unimplemented(
    message = "this join does not say how long its rows are kept",
    label = "call `.ttl(..)` or `.keep_forever()` before this",
    note = "`.ttl(hours(24))` drops a row 24 hours after it came; `.keep_forever()` lets the state grow with the input"
)]
pub trait TtlGiven {}

/// The promise that an interval join has bounds.
#[diagnostic::on_unimplemented(
    message = "this interval join has no bounds",
    label = "call `.between(lower, upper)` before this",
    note = "`.between(-secs(5), secs(30))` pairs rows whose times differ by -5 s to 30 s, right minus left"
)]
pub trait BoundsGiven {}

/// The promise that a window join says which windows.
#[diagnostic::on_unimplemented(
    message = "this window join does not say which windows",
    label = "call `.tumbling(..)`, `.sliding(..)` or `.session(..)` before this",
    note = "`.tumbling(hours(1))` joins rows of the same hour; `.session(minutes(5))` rows with less than 5 min in between"
)]
pub trait WindowGiven {}

/// The promise that a join says what its results are.
#[diagnostic::on_unimplemented(
    message = "this join does not say what its results are",
    label = "call `.select(..)` before this",
    note = "`.select(|order, payment| ..)` makes a row of each pair; `.into_tuples()` copies the rows, `.into_rows()` ends `where_exists`"
)]
pub trait ResultGiven {}

/// The promise that a condition stands where it is looked for.
#[diagnostic::on_unimplemented(
    message = "this condition comes after the join has said how long its rows are kept",
    label = "call `.on(..)` before `.ttl(..)` or `.keep_forever()`",
    note = "a condition belongs to the input before it: `a.join(b).on(|a, b| ..).ttl(hours(24))`"
)]
pub trait ConditionInPlace {}

/// The promise that a stream is keyed.
#[diagnostic::on_unimplemented(
    message = "this stream is not keyed, and only keyed streams can be joined",
    label = "call `.keyed()` or `.key_by(|row| ..)` before this",
    note = "`.keyed()` takes the key of the row's `Keyed`, `.key_by(|row| row.user_id)` any other"
)]
pub trait KeyGiven {}

/// The promise that a join is one on the time between rows.
#[diagnostic::on_unimplemented(
    message = "this join has no bounds on the time between its rows: it is no interval join",
    label = "call `.interval_join(..)` in the place of `.join(..)`, and then this",
    note = "`.join(..)` pairs all rows of a key that are held at the same time; how long that is, `.ttl(..)` says"
)]
pub trait OnTime {}

/// The promise that a join keeps rows for a span that it is told.
#[diagnostic::on_unimplemented(
    message = "this join has no time-to-live: it keeps a row for as long as that can meet another",
    label = "leave this out",
    note = "how long that is, the bounds or the windows say, and of the rows of a table `.keep_versions(..)`",
    note = "rows without bounds in time are joined by `.join(..)` or `multi_join!`, which need a `.ttl(..)`"
)]
pub trait KeptForASpan {}

/// The promise that rows are never taken back.
#[diagnostic::on_unimplemented(
    message = "this join needs append-only input, but the rows of a table change",
    label = "updates and deletes arrive here",
    note = "to join facts with the rows of the table, `facts.temporal_join(table)` or `facts.snapshot_join(table)`",
    note = "to join the table itself, `.join(..)` or `multi_join!`, whose results can change"
)]
pub trait OfFacts {}

impl<K, T> Table<K, T> {
    /// Cannot be called: the rows of a table can be taken back.
    pub fn interval_join<I, R>(&self, _right: I) -> R
    where
        Self: OfFacts,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the rows of a table can be taken back.
    pub fn window_join<I, R>(&self, _right: I) -> R
    where
        Self: OfFacts,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the rows of a table can be taken back.
    pub fn temporal_join<I, R>(&self, _table: I) -> R
    where
        Self: OfFacts,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the rows of a table can be taken back.
    pub fn snapshot_join<I, R>(&self, _table: I) -> R
    where
        Self: OfFacts,
    {
        unreachable!("{OWED}")
    }
}

impl<A, K, T, M> NeedsTtl<MultiJoin<(A, KeyedStream<K, T, M>)>> {
    /// Cannot be called: bounds are those of an interval join.
    pub fn between<L, U, R>(self, _lower: L, _upper: U) -> R
    where
        Self: OnTime,
    {
        unreachable!("{OWED}")
    }
}

impl<A, I, P> NeedsTtl<MultiJoin<(A, Optional<I, P>)>> {
    /// Cannot be called: bounds are those of an interval join.
    pub fn between<L, U, R>(self, _lower: L, _upper: U) -> R
    where
        Self: OnTime,
    {
        unreachable!("{OWED}")
    }
}

impl<T, M> Stream<T, M> {
    /// Cannot be called: a stream has to be keyed to be an input of a join, by `.keyed()` or `.key_by(..)`.
    pub fn optional<R>(self) -> R
    where
        Self: KeyGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: a stream has to be keyed to be joined, by `.keyed()` or `.key_by(..)`.
    pub fn join<I, R>(self, _right: I) -> R
    where
        Self: KeyGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: a stream has to be keyed to be joined, by `.keyed()` or `.key_by(..)`.
    pub fn interval_join<I, R>(self, _right: I) -> R
    where
        Self: KeyGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: a stream has to be keyed to be joined, by `.keyed()` or `.key_by(..)`.
    pub fn where_exists<I, R>(self, _right: I) -> R
    where
        Self: KeyGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: a stream has to be keyed to be joined, by `.keyed()` or `.key_by(..)`.
    pub fn where_not_exists<I, R>(self, _right: I) -> R
    where
        Self: KeyGiven,
    {
        unreachable!("{OWED}")
    }
}

impl<I, X> MultiJoin<I, X> {
    /// Cannot be called: the join owes `.select(..)`.
    pub fn sink_to<S, R>(self, _sink: S) -> R
    where
        Self: ResultGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: a condition stands before `.ttl(..)` or `.keep_forever()`.
    pub fn on<F, R>(self, _condition: F) -> R
    where
        Self: ConditionInPlace,
    {
        unreachable!("{OWED}")
    }
}

impl<A, B> IntervalJoin<A, B> {
    /// Cannot be called: the join owes `.select(..)`.
    pub fn sink_to<S, R>(self, _sink: S) -> R
    where
        Self: ResultGiven,
    {
        unreachable!("{OWED}")
    }
}

macro_rules! without_ttl {
    ($($Join:ident<$($Part:ident),+>),+) => {$(
        impl<$($Part),+> $Join<$($Part),+> {
            /// Cannot be called: the join knows itself how long it needs a row.
            pub fn ttl<T>(self, _ttl: T) -> Self
            where
                Self: KeptForASpan,
            {
                unreachable!("{OWED}")
            }

            /// Cannot be called: the join knows itself how long it needs a row.
            pub fn keep_forever(self) -> Self
            where
                Self: KeptForASpan,
            {
                unreachable!("{OWED}")
            }
        }
    )+};
}
without_ttl!(IntervalJoin<A, B>, WindowJoin<I, L>, SnapshotJoin<A, B>, TemporalJoin<A, B, M>);

impl<J> NeedsTtl<J> {
    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`, and then `.select(..)`.
    pub fn sink_to<S, R>(self, _sink: S) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`.
    pub fn select<F, R>(self, _select: F) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`.
    pub fn select_with_unmatched<F, R>(self, _select: F) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`.
    pub fn into_tuples<R>(self) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`.
    pub fn into_rows<R>(self) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`.
    pub fn into_rows_with_unmatched<R>(self) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.ttl(..)` or `.keep_forever()`.
    pub fn on_expiry<X, R>(self, _policy: X) -> R
    where
        Self: TtlGiven,
    {
        unreachable!("{OWED}")
    }
}

impl<J> NeedsBounds<J> {
    /// Cannot be called: the join owes `.between(lower, upper)`.
    pub fn select<F, R>(self, _select: F) -> R
    where
        Self: BoundsGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.between(lower, upper)`.
    pub fn select_with_unmatched<F, R>(self, _select: F) -> R
    where
        Self: BoundsGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes `.between(lower, upper)`.
    pub fn into_tuples<R>(self) -> R
    where
        Self: BoundsGiven,
    {
        unreachable!("{OWED}")
    }
}

impl<J> NeedsWindow<J> {
    /// Cannot be called: the join owes its windows.
    pub fn select<F, R>(self, _select: F) -> R
    where
        Self: WindowGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes its windows.
    pub fn select_with_window<F, R>(self, _select: F) -> R
    where
        Self: WindowGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes its windows.
    pub fn select_with_unmatched<F, R>(self, _select: F) -> R
    where
        Self: WindowGiven,
    {
        unreachable!("{OWED}")
    }

    /// Cannot be called: the join owes its windows.
    pub fn into_tuples<R>(self) -> R
    where
        Self: WindowGiven,
    {
        unreachable!("{OWED}")
    }
}

/// A time-to-live that can be kept; a span of no time is reported.
pub(super) fn checked(ttl: Ttl, at: &Output, place: &'static Location<'static>) -> Ttl {
    if let Ttl::For(span, clock) = ttl
        && span <= Span::ZERO
    {
        let message = format!("a ttl of {span} ({clock}) would drop every row as it comes: give a span above zero");
        at.flow.report(message, place);
        return Ttl::For(crate::time::millis(1), Clock::Processing);
    }
    ttl
}

const OWED: &str = "no type has the promise that is asked for";

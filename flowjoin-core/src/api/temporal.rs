//! Temporal join: `orders.temporal_join(levels).select(..)`, each row with the version that held at its time.
//!
//! ```text
//!   levels  ──v1────────v2──────✗─────▶ event time        ✗: deleted
//!   orders  ────●────●──────●──────●──▶
//!               v1   v1     v2     –
//! ```
//!
//! A row waits until W > its time, so that all versions up to it have come; rows of a key come out in order of time. The
//! newest version at or before W is kept, and those after it. The result is append-only, unless late versions correct it.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::arity::Rows2;
use super::flow::{KeyMark, Output, Standing};
use super::input::{Input, JoinInput, Optional};
use super::keyed::KeyedStream;
use super::mode::{Append, Changelog, Mode};
use super::sides::{JoinDraft, Placed};
use super::stream::Stream;
use super::table::Table;
use super::unmatched::{Late, Unmatched};
use crate::key::Key;
use crate::op::kernel::Kind;
use crate::op::normalize::VERSIONS;
use crate::op::temporal_join::{Spec, TemporalJoin as TemporalJoinOp};
use crate::plan::{ChangeMode, Op};
use crate::record::{Data, Event, Keyed};
use crate::state::{Keeps, StateShape};
use crate::time::Span;

/// A join of a stream with the versions of a table; end it with `.select(..)`.
///
/// `M` is the mode of its result: facts, or a changelog if late versions correct it.
#[must_use = "a join does nothing until `.select(..)`"]
pub struct TemporalJoin<A, B, M = Append> {
    placed: Placed,
    keep: Option<Span>,
    correct: Option<Span>,
    inputs: PhantomData<fn() -> (A, B, M)>,
}

/// A table whose rows have event times, under a key of type `K`; with `.optional()`, one that may have no row.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no versions under a key of type `{K}`",
    label = "a temporal join reads a table of that key",
    note = "open it with `flow.table(..)`, or make it of facts with `.latest_by_key()`; its rows derive `Event` and `Keyed`",
    note = "the stream and the table need one key type: convert inside `.key_by(|row| ..)`"
)]
pub trait Versioned<K: Key> {
    /// Its versions, as an input of a join.
    type Versions: JoinInput<Key = K>;

    /// Those versions.
    fn versions(self, place: &'static Location<'static>) -> Self::Versions;
}

/// The versions of the rows of a table, of which one is in each result.
pub struct Versions<T> {
    output: Output,
    rows: PhantomData<fn() -> T>,
}

/// The versions of the rows of a table, of which there may be none.
pub struct OptionalVersions<T>(Versions<T>);

impl<K: Key, T: Event + Keyed<Key = K>> Versioned<K> for Table<K, T> {
    type Versions = Versions<T>;

    fn versions(self, place: &'static Location<'static>) -> Versions<T> {
        Versions::of(self.keyed(), place)
    }
}

impl<K: Key, T: Event + Keyed<Key = K>> Versioned<K> for Optional<KeyedStream<K, T, Changelog>> {
    type Versions = OptionalVersions<T>;

    fn versions(self, place: &'static Location<'static>) -> OptionalVersions<T> {
        OptionalVersions(Versions::of(self.input, place))
    }
}

impl<T: Keyed> Versions<T> {
    fn of(table: KeyedStream<T::Key, T, Changelog>, place: &'static Location<'static>) -> Versions<T> {
        let Output { flow, from, port, label, .. } = table.out;
        let told = |why: &str| {
            format!(
                "`{label}` has no versions for a temporal join: {why}; open it with `flow.table(..)`, or make it of facts \
                 with `.latest_by_key()`"
            )
        };
        if !flow.is_table(from) {
            flow.report(told("it is a changelog, and no table"), place);
        } else if !flow.has_port(from, VERSIONS) {
            flow.report(told("it is made of a changelog, whose changes are folded"), place);
        }
        if table.ttl.is_some() {
            let message = format!(
                "`{label}` has a time-to-live, which a temporal join does not know: say how long a version holds by \
                 `.keep_versions(..)` of the join"
            );
            flow.report(message, place);
        }
        let keyed = KeyMark::of::<T::Key>(T::key_name(), Standing::One);
        debug_assert_eq!(port, crate::op::Port::MAIN, "a table is read by its main port");
        Versions { output: Output { flow, from, port: VERSIONS, label, keyed }, rows: PhantomData }
    }
}

impl<T: Event + Keyed> JoinInput for Versions<T> {
    type Key = T::Key;
    // None where the version deletes.
    type Row = Option<T>;
    type Mode = Changelog;
    type Padding = Append;
    type Ref<'a> = &'a T;
    type Owned = T;

    #[inline]
    fn view(row: Option<&Option<T>>) -> &T {
        row.and_then(Option::as_ref).expect("a required version is in every result")
    }

    fn own(view: &T) -> T {
        view.clone()
    }

    fn lower(self) -> Input {
        Input {
            output: self.output,
            ttl: None,
            kind: Kind::Required,
            emit: None,
            mode: ChangeMode::Changelog,
            condition: None,
            unique: None,
            unique_is_key: false,
            key: None,
        }
    }
}

impl<T: Event + Keyed> JoinInput for OptionalVersions<T> {
    type Key = T::Key;
    type Row = Option<T>;
    type Mode = Changelog;
    type Padding = Append;
    type Ref<'a> = Option<&'a T>;
    type Owned = Option<T>;

    #[inline]
    fn view(row: Option<&Option<T>>) -> Option<&T> {
        row.and_then(Option::as_ref)
    }

    fn own(view: Option<&T>) -> Option<T> {
        view.cloned()
    }

    fn lower(self) -> Input {
        Input { kind: Kind::Optional, ..self.0.lower() }
    }
}

pub(super) fn temporal_join<K: Key, A: JoinInput<Key = K>, R: Versioned<K>>(
    probes: A,
    table: R,
    place: &'static Location<'static>,
) -> TemporalJoin<A, R::Versions> {
    let inputs = vec![probes.lower(), table.versions(place).lower()];
    let placed = JoinDraft { inputs, name: None, place }.place();
    TemporalJoin { placed, keep: None, correct: None, inputs: PhantomData }
}

impl<A, B, M> TemporalJoin<A, B, M> {
    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.placed.draft.name = Some(name.into());
        self
    }

    /// A version holds for so long at the most, from its time on: then its key has none, until the next. Without this the
    /// newest version of a key holds for ever, and so is kept.
    #[track_caller]
    pub fn keep_versions(mut self, span: Span) -> Self {
        self.keep = self.checked("keep_versions", span, Location::caller());
        self
    }

    /// Versions that come behind the watermark correct the results that they change, as long as it has not passed the time
    /// of those by more than this. All probes are kept so long, the result is a changelog, and its watermark is held back to
    /// the oldest of them.
    #[track_caller]
    pub fn correct_late(self, span: Span) -> TemporalJoin<A, B, Changelog> {
        let correct = self.checked("correct_late", span, Location::caller());
        TemporalJoin { placed: self.placed, keep: self.keep, correct, inputs: PhantomData }
    }

    fn checked(&self, verb: &str, span: Span, place: &'static Location<'static>) -> Option<Span> {
        if span <= Span::ZERO {
            let message = format!("`.{verb}({span})` leaves no time: give a span above zero, or leave it out");
            self.placed.draft.flow().report(message, place);
            return None;
        }
        Some(span)
    }

    /// The rows of the stream that came behind the watermark; to be taken before the join is ended. A version that came
    /// behind it is not here: it serves what comes after it, and is counted.
    pub fn late(&self) -> Stream<Late<A::Row>>
    where
        A: JoinInput,
    {
        self.placed.late::<A::Row>(0)
    }
}

impl<A: JoinInput, B: JoinInput<Key = A::Key>, M: Mode> TemporalJoin<A, B, M> {
    /// Makes a row of each row of the stream and its version: the function gets a reference to both, an `Option` for that of
    /// an optional table.
    pub fn select<O, F>(self, select: F) -> Stream<O, M>
    where
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
    {
        let TemporalJoin { placed, keep, correct, .. } = self;
        let optional = placed.draft.inputs[1].kind == Kind::Optional;
        let select = Arc::new(select);
        let behind = correct.unwrap_or(Span::ZERO);
        let keeps = vec![Keeps::PastTime(behind), Keeps::Newest { behind, hold: keep }];
        let op = Op::TemporalJoin { optional, keep, correct };
        Stream::at(placed.finish(op, (StateShape::Timeline, keeps), M::MODE, move |_, names| {
            let rows = Rows2::<A, B, F, O>::new(select.clone(), [None, None], (None, None), names);
            let spec = Spec { optional, keep, correct };
            Box::new(TemporalJoinOp::<A::Key>::new(spec, Box::new(rows)))
        }))
    }

    /// As [`select`](Self::select), with the rows of the stream for which there was no version, each with a
    /// [`Reason`](crate::Reason): its key was never seen, it has no version that holds at that time, or it was deleted.
    pub fn select_with_unmatched<O, F>(self, select: F) -> (Stream<O, M>, Stream<Unmatched<A::Row>>)
    where
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
    {
        let unmatched = self.placed.unmatched::<A::Row>(0);
        (self.select(select), unmatched)
    }

    /// Makes a tuple of copies of each result: for a quick start.
    pub fn into_tuples(self) -> Stream<(A::Owned, B::Owned), M>
    where
        (A::Owned, B::Owned): Data,
    {
        self.select(|row, version| (A::own(row), B::own(version)))
    }
}

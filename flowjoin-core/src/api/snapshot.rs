//! Snapshot join: `orders.snapshot_join(users).select(..)`, each row with what stands in the table when it arrives.
//!
//! ```text
//!   users   ──u1────────u2──────✗─────▶ arrival           ✗: deleted
//!   orders  ────●────●──────●──────●──▶
//!               u1   u1     u2     –
//! ```
//!
//! What was said stands: the result is append-only, and what it says depends on when rows arrive. Event time is that of the
//! stream; the table does not hold it back.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::arity::Rows2;
use super::input::{JoinInput, JoinsOn};
use super::mode::Append;
use super::sides::{JoinDraft, Placed};
use super::stream::Stream;
use super::unmatched::{Late, Unmatched};
use crate::op::kernel::Kind;
use crate::op::snapshot_join::{Loaded, SnapshotJoin as SnapshotJoinOp};
use crate::plan::{ChangeMode, Op};
use crate::record::Data;
use crate::state::{Keeps, StateShape};
use crate::time::Span;

/// A join of a stream with the rows that stand in a table; end it with `.select(..)`.
#[must_use = "a join does nothing until `.select(..)`"]
pub struct SnapshotJoin<A, B> {
    placed: Placed,
    load: Option<Loaded>,
    inputs: PhantomData<fn() -> (A, B)>,
}

pub(super) fn snapshot_join<A: JoinInput, B: JoinInput>(
    probes: A,
    table: B,
    place: &'static Location<'static>,
) -> SnapshotJoin<A, B> {
    let placed = JoinDraft { inputs: vec![probes.lower(), table.lower()], name: None, place }.place();
    if placed.draft.inputs[1].ttl.is_some() {
        let message =
            "a snapshot join keeps the rows of its table for as long as they stand: leave out the time-to-live";
        placed.draft.flow().report(message.to_string(), place);
    }
    SnapshotJoin { placed, load: None, inputs: PhantomData }
}

impl<A, B> SnapshotJoin<A, B> {
    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.placed.draft.name = Some(name.into());
        self
    }

    /// Rows of the stream wait until the table has been loaded, and then come out in the order in which they arrived.
    ///
    /// Without this they are joined with what has come of the table by then. Each task of the join decides by what it has
    /// heard of the table. What waits is held in memory.
    #[track_caller]
    pub fn after_load(mut self, loaded: Loaded) -> Self {
        if loaded.quiet().is_some_and(|span| span <= Span::ZERO) {
            let message = "a table is never quiet for no time at all: give a span above zero";
            self.placed.draft.flow().report(message.to_string(), Location::caller());
        }
        self.load = Some(loaded);
        self
    }

    /// The rows of the stream that came behind the watermark; to be taken before the join is ended.
    pub fn late(&self) -> Stream<Late<A::Row>>
    where
        A: JoinInput,
    {
        self.placed.late::<A::Row>(0)
    }

    /// Makes a row of each row of the stream and what stands under its key: the function gets a reference to both, an
    /// `Option` for that of an optional table.
    pub fn select<O, F>(self, select: F) -> Stream<O, Append>
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
    {
        let SnapshotJoin { placed, load, .. } = self;
        let optional = placed.draft.inputs[1].kind == Kind::Optional;
        let identity = placed.draft.inputs[1].identity::<B::Row>();
        let select = Arc::new(select);
        let probes = if load.is_some() { Keeps::Passing } else { Keeps::Nothing };
        let keeps = vec![probes, Keeps::Standing];
        let op = Op::SnapshotJoin { optional, load };
        Stream::at(placed.finish(op, (StateShape::KeyedRows, keeps), ChangeMode::Append, move |cx, names| {
            let rows = Rows2::<A, B, F, O>::new(select.clone(), [None, None], (None, identity.clone()), names);
            Box::new(SnapshotJoinOp::<A::Key>::new(optional, load.map(|load| (load, cx.now)), Box::new(rows)))
        }))
    }

    /// As [`select`](Self::select), with the rows of the stream for which nothing stood in the table.
    pub fn select_with_unmatched<O, F>(self, select: F) -> (Stream<O, Append>, Stream<Unmatched<A::Row>>)
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
    {
        let unmatched = self.placed.unmatched::<A::Row>(0);
        (self.select(select), unmatched)
    }

    /// Makes a tuple of copies of each result: for a quick start.
    pub fn into_tuples(self) -> Stream<(A::Owned, B::Owned), Append>
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
        (A::Owned, B::Owned): Data,
    {
        self.select(|row, standing| (A::own(row), B::own(standing)))
    }
}

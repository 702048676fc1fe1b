//! Interval join: `a.interval_join(b).between(-secs(5), secs(30))`.
//!
//! ```text
//!   left   ────────●────────────────────────▶ event time
//!                  ├─lower─┐      ┌─upper
//!   right  ────────────────[■■■■■■]─────────▶   a pair iff right.time ∈ [left.time + lower, left.time + upper]
//! ```
//!
//! Both sides keep their rows by key and time. A left row leaves when the watermark passes its time + upper, a right row
//! when it passes its time − lower: from then on a partner could only be late. A row that leaves without a partner comes
//! out once: as a result with `None` for an optional side, else on the unmatched output. So the result is append-only,
//! unless a gap is to be told earlier (`.emit(Eager)`), which a partner then takes back. Rows behind the watermark go to
//! the late output.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::arity::MergedMode;
use super::arity::Rows2;
use super::input::{JoinInput, JoinsOn, MaybeOptional, Optional};
use super::keyed::KeyedStream;
use super::mode::{Append, Mode};
use super::multi::{MultiJoin, mode_of};
use super::owed::{NeedsBounds, NeedsTtl};
use super::policy::{GapPolicy, Truth};
use super::sides::{JoinDraft, Placed};
use super::stream::Stream;
use super::unmatched::{Late, Unmatched};
use crate::key::Key;
use crate::op::interval_join::{Bounds, IntervalJoin as IntervalJoinOp, LateRows, Spec};
use crate::op::multi_join::Emit;
use crate::plan::Op;
use crate::record::Data;
use crate::state::{Keeps, StateShape};
use crate::time::{Span, ToSpan, millis};

/// An input of a join that is bounded in time, where a gap closes by itself.
pub trait ClosingInput: JoinInput {
    /// What that makes of the result: append-only, unless its gap is told earlier.
    type Closing: Mode;
}

impl<K: Key, T: Data, M: Mode> ClosingInput for KeyedStream<K, T, M> {
    type Closing = Append;
}

impl<K: Key, T: Data, M: Mode, P: GapPolicy> ClosingInput for Optional<KeyedStream<K, T, M>, P> {
    type Closing = P::Closing;
}

impl<K: Key, T: Data, M: Mode> ClosingInput for MaybeOptional<KeyedStream<K, T, M>> {
    type Closing = Append;
}

/// A join of two inputs on one key and an interval of time; end it with `.select(..)`.
#[must_use = "a join does nothing until `.select(..)`"]
pub struct IntervalJoin<A, B> {
    stage: Stage,
    inputs: PhantomData<fn() -> (A, B)>,
}

// Before and after the bounds are known.
enum Stage {
    Unbounded(JoinDraft),
    Bounded { placed: Placed, bounds: Bounds, asked: [Span; 2], late_rows: LateRows },
}

pub(super) fn interval_join<A: JoinInput, B: JoinInput>(
    left: A,
    right: B,
    place: &'static Location<'static>,
) -> NeedsBounds<IntervalJoin<A, B>> {
    let draft = JoinDraft { inputs: vec![left.lower(), right.lower()], name: None, place };
    NeedsBounds(IntervalJoin { stage: Stage::Unbounded(draft), inputs: PhantomData })
}

impl<A, B> NeedsBounds<IntervalJoin<A, B>> {
    /// Which rows make a pair: `right.time − left.time` from `lower` to `upper`, both ends included.
    #[track_caller]
    pub fn between(self, lower: impl ToSpan, upper: impl ToSpan) -> IntervalJoin<A, B> {
        self.0.bounded((lower.to_span(), upper.to_span()), Location::caller())
    }

    /// A pair is a match only where the condition holds, besides the key and the interval. `None` is unknown, which is no
    /// match. The function must answer the same for the same rows.
    pub fn on<R, F>(self, condition: F) -> Self
    where
        A: JoinInput,
        B: JoinInput,
        R: Truth,
        F: for<'a> Fn(&'a A::Row, &'a B::Row) -> R + Send + Sync + 'static,
    {
        NeedsBounds(self.0.on(condition))
    }

    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.0.set_name(name.into());
        self
    }
}

fn empty_interval(lower: Span, upper: Span) -> String {
    format!("no time is in the interval [{lower}, {upper}]: the lower bound comes first, and both are right − left")
}

impl<A, B> IntervalJoin<A, B> {
    // A semi or anti join, of rows that are near in time.
    pub(super) fn within<J>(
        join: NeedsTtl<MultiJoin<J>>,
        bounds: (Span, Span),
        place: &'static Location<'static>,
    ) -> IntervalJoin<A, B> {
        let draft = join.0.draft.expect("a join that owes its time-to-live has no place yet");
        IntervalJoin { stage: Stage::Unbounded(draft), inputs: PhantomData }.bounded(bounds, place)
    }

    fn bounded(self, (lower, upper): (Span, Span), place: &'static Location<'static>) -> IntervalJoin<A, B> {
        let stage = match self.stage {
            Stage::Unbounded(draft) => {
                if lower > upper {
                    draft.flow().report(empty_interval(lower, upper), place);
                }
                let bounds = Bounds { lower, upper };
                Stage::Bounded { placed: draft.place(), bounds, asked: [lower, upper], late_rows: LateRows::Aside }
            }
            bounded @ Stage::Bounded { .. } => bounded,
        };
        IntervalJoin { stage, inputs: PhantomData }
    }

    /// As [`NeedsBounds::on`]: a pair is a match only where the condition holds.
    pub fn on<R, F>(mut self, condition: F) -> Self
    where
        A: JoinInput,
        B: JoinInput,
        R: Truth,
        F: for<'a> Fn(&'a A::Row, &'a B::Row) -> R + Send + Sync + 'static,
    {
        self.draft_mut().inputs[1].condition = Some(Arc::new(move |rows| {
            let left = rows[0].and_then(|row| row.downcast_ref());
            let right = rows[1].and_then(|row| row.downcast_ref());
            let (left, right) = left.zip(right).expect("a condition is asked of two rows");
            condition(left, right).is_true()
        }));
        self
    }

    fn draft_mut(&mut self) -> &mut JoinDraft {
        match &mut self.stage {
            Stage::Unbounded(draft) | Stage::Bounded { placed: Placed { draft, .. }, .. } => draft,
        }
    }

    fn set_name(&mut self, name: String) {
        self.draft_mut().name = Some(name);
    }

    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.set_name(name.into());
        self
    }

    /// The lower end does not belong to the interval: it begins 1 ms later.
    #[track_caller]
    pub fn exclusive_lower(self) -> Self {
        self.shrink(|bounds| bounds.lower = bounds.lower.plus(millis(1)), Location::caller())
    }

    /// The upper end does not belong to the interval: it ends 1 ms earlier.
    #[track_caller]
    pub fn exclusive_upper(self) -> Self {
        self.shrink(|bounds| bounds.upper = bounds.upper.plus(millis(-1)), Location::caller())
    }

    fn shrink(mut self, by: impl Fn(&mut Bounds), place: &'static Location<'static>) -> Self {
        if let Stage::Bounded { placed, bounds, asked, .. } = &mut self.stage {
            let before = bounds.lower <= bounds.upper;
            by(bounds);
            if before && bounds.lower > bounds.upper {
                let [lower, upper] = *asked;
                let message = format!(
                    "no time is left in the interval [{lower}, {upper}] once its ends are excluded: [{}, {}]; widen it, or keep an end",
                    bounds.lower, bounds.upper
                );
                placed.draft.flow().report(message, place);
            }
        }
        self
    }

    /// Rows behind the watermark join what is still held, rather than going to the late output. The result's watermark
    /// is then held back by the wider bound all the time, and a late row that could have had partners that have left
    /// counts as unmatched.
    pub fn join_late_rows(mut self) -> Self {
        if let Stage::Bounded { late_rows, .. } = &mut self.stage {
            *late_rows = LateRows::Join;
        }
        self
    }

    fn placed(&self) -> &Placed {
        match &self.stage {
            Stage::Bounded { placed, .. } => placed,
            Stage::Unbounded(_) => unreachable!("an interval join with bounds has its place"),
        }
    }
}

// The bounds stand on the methods, so that an input of another key is told why.
impl<A, B> IntervalJoin<A, B> {
    /// Makes a row of each pair, and of each row without a partner where the other side is optional.
    pub fn select<O, F, M>(self, select: F) -> Stream<O, M>
    where
        A: ClosingInput,
        B: ClosingInput + JoinsOn<A::Key>,
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
        M: Mode,
        (A::Closing, B::Closing): MergedMode<Out = M>,
    {
        let Stage::Bounded { placed, bounds, late_rows, .. } = self.stage else {
            unreachable!("an interval join with bounds has its place")
        };
        let inputs = &placed.draft.inputs;
        let condition = inputs[1].condition.clone();
        let spec = Spec {
            bounds,
            kinds: [inputs[0].kind, inputs[1].kind],
            emit: [0, 1].map(|input: usize| inputs[input].emit.unwrap_or(Emit::Final)),
            condition: condition.is_some(),
            late_rows,
        };
        let select = Arc::new(select);
        let keeps = vec![Keeps::PastTime(bounds.upper), Keeps::PastTime(-bounds.lower)];
        let state = (StateShape::Timeline, keeps);
        Stream::at(placed.finish(Op::IntervalJoin(spec), state, mode_of::<M>(), move |_, names| {
            let rows = Rows2::<A, B, F, O>::new(select.clone(), [None, condition.clone()], (None, None), names);
            Box::new(IntervalJoinOp::<A::Key>::new(spec, Box::new(rows)))
        }))
    }

    /// As [`select`](Self::select), with the rows of each side whose interval closed without a partner.
    #[allow(clippy::type_complexity)]
    pub fn select_with_unmatched<O, F, M>(
        self,
        select: F,
    ) -> (Stream<O, M>, (Stream<Unmatched<A::Row>>, Stream<Unmatched<B::Row>>))
    where
        A: ClosingInput,
        B: ClosingInput + JoinsOn<A::Key>,
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
        M: Mode,
        (A::Closing, B::Closing): MergedMode<Out = M>,
    {
        let unmatched = (self.placed().unmatched::<A::Row>(0), self.placed().unmatched::<B::Row>(1));
        (self.select(select), unmatched)
    }

    /// The rows of each side that came behind the watermark; to be taken before the join is ended.
    #[allow(clippy::type_complexity)]
    pub fn late(&self) -> (Stream<Late<A::Row>>, Stream<Late<B::Row>>)
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
    {
        (self.placed().late::<A::Row>(0), self.placed().late::<B::Row>(1))
    }

    /// Makes a tuple of copies of each result: for a quick start.
    pub fn into_tuples<M>(self) -> Stream<(A::Owned, B::Owned), M>
    where
        A: ClosingInput,
        B: ClosingInput + JoinsOn<A::Key>,
        M: Mode,
        (A::Closing, B::Closing): MergedMode<Out = M>,
        (A::Owned, B::Owned): Data,
    {
        self.select(|left, right| (A::own(left), B::own(right)))
    }
}

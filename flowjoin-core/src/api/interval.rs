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
//! out once: as a result with `None` for an optional side, else on the unmatched output. So the result is append-only.
//! Rows behind the watermark go to the late output.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::arity::Rows2;
use super::input::{JoinInput, JoinsOn};
use super::mode::Append;
use super::owed::NeedsBounds;
use super::sides::{JoinDraft, Placed};
use super::stream::Stream;
use super::unmatched::{Late, Unmatched};
use crate::op::interval_join::{Bounds, IntervalJoin as IntervalJoinOp, LateRows};
use crate::op::kernel::Kind;
use crate::plan::{ChangeMode, Op};
use crate::record::Data;
use crate::state::{Keeps, StateShape};
use crate::time::{Span, millis};

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
    pub fn between(self, lower: Span, upper: Span) -> IntervalJoin<A, B> {
        let place = Location::caller();
        let stage = match self.0.stage {
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
    fn set_name(&mut self, name: String) {
        match &mut self.stage {
            Stage::Unbounded(draft) | Stage::Bounded { placed: Placed { draft, .. }, .. } => draft.name = Some(name),
        }
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
    pub fn select<O, F>(self, select: F) -> Stream<O, Append>
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
    {
        let Stage::Bounded { placed, bounds, late_rows, .. } = self.stage else {
            unreachable!("an interval join with bounds has its place")
        };
        let optional = [0, 1].map(|input: usize| placed.draft.inputs[input].kind == Kind::Optional);
        let select = Arc::new(select);
        let Bounds { lower, upper } = bounds;
        let op = Op::IntervalJoin { lower, upper, optional, joins_late: late_rows == LateRows::Join };
        let keeps = vec![Keeps::PastTime(upper), Keeps::PastTime(-lower)];
        Stream::at(placed.finish(op, (StateShape::Timeline, keeps), ChangeMode::Append, move |_| {
            let rows = Rows2::<A, B, F, O>::new(select.clone(), [None, None], (None, None));
            Box::new(IntervalJoinOp::<A::Key>::new(bounds, optional, late_rows, Box::new(rows)))
        }))
    }

    /// As [`select`](Self::select), with the rows of each side whose interval closed without a partner.
    #[allow(clippy::type_complexity)]
    pub fn select_with_unmatched<O, F>(
        self,
        select: F,
    ) -> (Stream<O, Append>, (Stream<Unmatched<A::Row>>, Stream<Unmatched<B::Row>>))
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
        O: Data,
        F: for<'a> Fn(A::Ref<'a>, B::Ref<'a>) -> O + Send + Sync + 'static,
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
    pub fn into_tuples(self) -> Stream<(A::Owned, B::Owned), Append>
    where
        A: JoinInput,
        B: JoinsOn<A::Key>,
        (A::Owned, B::Owned): Data,
    {
        self.select(|left, right| (A::own(left), B::own(right)))
    }
}

//! Window joins: `a.window_join(b).tumbling(hours(1))`, `multi_join![a, b, c].session(minutes(5))`.
//!
//! ```text
//!   a  ──●───────●──│──●────────│────▶ event time        tumbling: one window after the other
//!   b  ─────●───────│───────────│─●──▶                   sliding:  one begins every slide; a row is in several
//!        (a1, b1)   │           │                        session:  until nothing comes for a gap, for each key
//!        (a2, b1)   └ when the watermark is here
//! ```
//!
//! Rows of one key that are in the same window are joined when the watermark reaches its end. So nothing comes early and
//! nothing is taken back: gaps of optional inputs are told once, and the result is append-only. With
//! `.allowed_lateness(..)` a window that has fired takes rows for a while longer, which say what they change.

use std::marker::PhantomData;
use std::panic::Location;

use super::arity::MergedMode;
use super::exists::{Exists, NotExists};
use super::input::{Condition, Input, JoinInput};
use super::mode::{Append, AppendOnly, Mode};
use super::multi::MultiJoin;
use super::owed::{NeedsTtl, NeedsWindow};
use super::policy::Truth;
use super::sides::Placed;
use super::stream::Stream;
use super::unmatched::Unmatched;
use crate::op::window_join::{Spec, Windows};
use crate::plan::Op;
use crate::record::Data;
use crate::state::{Keeps, StateShape};
use crate::time::{Span, ToSpan, millis};

/// A join of the inputs `I` (a tuple) on one key and on windows of event time; end it with `.select(..)`.
#[must_use = "a join does nothing until `.select(..)`"]
pub struct WindowJoin<I, L = OnTime> {
    pub(super) placed: Placed,
    windows: Windows,
    lateness: Span,
    inputs: PhantomData<fn() -> (I, L)>,
}

/// Windows take no rows once they have fired: the result is append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTime {}

/// Windows take rows for a while after they have fired: where a gap was told that is filled then, the result changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AndLate {}

/// What the lateness of a window join makes of its result, given what its inputs would.
pub trait Lateness<P> {
    /// The mode of the result.
    type Out: Mode;
}

impl<P> Lateness<P> for OnTime {
    type Out = Append;
}

impl<P: MergedMode> Lateness<P> for AndLate {
    type Out = P::Out;
}

/// Inputs of a join of which none takes rows back.
pub trait AppendInputs {}

macro_rules! append_inputs {
    ($($T:ident),+) => {
        impl<$($T: JoinInput),+> AppendInputs for ($($T,)+) where $($T::Mode: AppendOnly),+ {}
    };
}

append_inputs!(A, B);
append_inputs!(A, B, C);
append_inputs!(A, B, C, D);
append_inputs!(A, B, C, D, E);
append_inputs!(A, B, C, D, E, G);
append_inputs!(A, B, C, D, E, G, H);
append_inputs!(A, B, C, D, E, G, H, I);
append_inputs!(A, B, C, D, E, G, H, I, J);
append_inputs!(A, B, C, D, E, G, H, I, J, L);
append_inputs!(A, B, C, D, E, G, H, I, J, L, N);
append_inputs!(A, B, C, D, E, G, H, I, J, L, N, P);

// The bounds stand on the methods, so that an input that takes rows back is told so.
macro_rules! windowed {
    ($Owing:ident $($bounds:tt)*) => {
        impl<I> $Owing<MultiJoin<I>> {
            /// Joins the rows of one key that are in the same window: one window of this size comes after the other, one
            /// of them begins at the epoch.
            #[track_caller]
            pub fn tumbling(self, size: impl ToSpan) -> WindowJoin<I>
            $($bounds)*
            {
                self.0.windowed(Windows::Tumbling { size: size.to_span(), offset: Span::ZERO }, Location::caller())
            }

            /// Joins the rows of one key that are in the same window: windows of this size begin one every slide, one of
            /// them at the epoch. A row is in several windows, and a pair comes once for each that both its rows are in.
            #[track_caller]
            pub fn sliding(self, size: impl ToSpan, slide: impl ToSpan) -> WindowJoin<I>
            $($bounds)*
            {
                let (size, slide) = (size.to_span(), slide.to_span());
                self.0.windowed(Windows::Sliding { size, slide, offset: Span::ZERO }, Location::caller())
            }

            /// Joins the rows of one key that are in the same session: each is less than a gap from the one before it, of
            /// whichever input that is. A session is over a gap after its newest row.
            #[track_caller]
            pub fn session(self, gap: impl ToSpan) -> WindowJoin<I>
            $($bounds)*
            {
                self.0.windowed(Windows::Session { gap: gap.to_span() }, Location::caller())
            }
        }
    };
}

windowed!(NeedsTtl where I: AppendInputs);
windowed!(NeedsWindow);

impl<I> NeedsWindow<MultiJoin<I>> {
    /// Names the join: the identity of its state and its figures.
    pub fn named(self, name: impl Into<String>) -> Self {
        NeedsWindow(self.0.named(name))
    }
}

impl<A: JoinInput, B: JoinInput> NeedsWindow<MultiJoin<(A, B)>> {
    /// Adds a condition besides the key and the window, as
    /// [`MultiJoin`'s](NeedsTtl::on) does: a row of the right input is a match only where it holds.
    pub fn on<R, F>(self, condition: F) -> Self
    where
        R: Truth,
        F: for<'a> Fn(A::Ref<'a>, &'a B::Row) -> R + Send + Sync + 'static,
    {
        NeedsWindow(NeedsTtl(self.0).on(condition).0)
    }
}

impl<I> MultiJoin<I> {
    fn windowed(mut self, windows: Windows, place: &'static Location<'static>) -> WindowJoin<I> {
        let draft = self.draft.take().expect("a join that owes something has no place yet");
        let (windows, wrong) = checked(windows);
        for message in wrong.into_iter().chain(draft.inputs.iter().filter_map(unasked)) {
            draft.flow().report(message, place);
        }
        WindowJoin { placed: draft.place(), windows, lateness: Span::ZERO, inputs: PhantomData }
    }
}

// Windows that can be, and what is wrong with those that were asked for.
fn checked(windows: Windows) -> (Windows, Option<String>) {
    let least = Windows::Tumbling { size: millis(1), offset: Span::ZERO };
    let wrong = match windows {
        Windows::Tumbling { size, .. } | Windows::Sliding { size, .. } if size <= Span::ZERO => {
            format!("a window of {size} holds no time: give a size above zero")
        }
        Windows::Sliding { slide, .. } if slide <= Span::ZERO => {
            format!("with a slide of {slide} no window comes after another: give a slide above zero")
        }
        Windows::Sliding { size, slide, .. } if slide > size => format!(
            "windows of {size} every {slide} leave time between them, and rows of that would be in no window: give a \
             slide of {size} at most"
        ),
        Windows::Sliding { size, slide, .. } if size.as_millis() / slide.as_millis() > WINDOWS_MAX => format!(
            "with windows of {size} every {slide} each row is in {} of them, and at most {WINDOWS_MAX} are allowed: give a \
             longer slide",
            size.as_millis() / slide.as_millis()
        ),
        Windows::Session { gap } if gap <= Span::ZERO => {
            format!("a session with a gap of {gap} is over before it begins: give a gap above zero")
        }
        Windows::Tumbling { .. } | Windows::Sliding { .. } | Windows::Session { .. } => return (windows, None),
    };
    (least, Some(wrong))
}

// What an input asks for that a window join does not do.
fn unasked(input: &Input) -> Option<String> {
    let name = &input.output.label;
    if input.ttl.is_some() {
        return Some(format!(
            "a window join keeps the rows of `{name}` until their windows are over: leave out its `.ttl(..)` or \
             `.keep_forever()`"
        ));
    }
    input.emit.is_some().then(|| {
        format!("a window join tells the gaps of `{name}` once, when the window fires: leave out its `.emit(..)`")
    })
}

impl<I> WindowJoin<I> {
    /// Windows take rows for so long after they have fired. A row that comes in that time says what it changes and no
    /// more: results that it makes, and gaps that it fills, which are taken back. So with optional inputs, or
    /// `where_not_exists`, the result is a changelog.
    ///
    /// The watermark of the result is then held back as far as such a row may be late.
    #[track_caller]
    pub fn allowed_lateness(self, lateness: Span) -> WindowJoin<I, AndLate> {
        if lateness.is_negative() {
            let message = format!("an allowed lateness of {lateness} is none: give a span of zero or above");
            self.placed.draft.flow().report(message, Location::caller());
        }
        let lateness = lateness.max(Span::ZERO);
        WindowJoin { placed: self.placed, windows: self.windows, lateness, inputs: PhantomData }
    }
}

impl<I, L> WindowJoin<I, L> {
    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.placed.draft.name = Some(name.into());
        self
    }

    /// One of the windows begins at this time after the epoch, rather than at the epoch: with windows of a day,
    /// `.offset(-hours(1))` begins them at 23:00 UTC.
    #[track_caller]
    pub fn offset(mut self, by: Span) -> Self {
        match &mut self.windows {
            Windows::Tumbling { offset, .. } | Windows::Sliding { offset, .. } => *offset = by,
            Windows::Session { .. } => {
                let message = "a session begins with its first row: leave out `.offset(..)`".to_string();
                self.placed.draft.flow().report(message, Location::caller());
            }
        }
        self
    }

    /// What the operator is told.
    pub(super) fn spec<const N: usize>(&self) -> Spec<N> {
        let inputs = &self.placed.draft.inputs;
        let conditions = inputs.iter().enumerate().filter(|(_, input)| input.condition.is_some());
        Spec {
            kinds: std::array::from_fn(|input| inputs[input].kind),
            conditions: conditions.fold(0, |bits, (input, _)| bits | 1 << input),
            windows: self.windows,
            lateness: self.lateness,
        }
    }

    /// The condition of each input.
    pub(super) fn conditions<const N: usize>(&self) -> [Option<Condition>; N] {
        std::array::from_fn(|input| self.placed.draft.inputs[input].condition.clone())
    }

    /// The join in the plan, and what it keeps.
    pub(super) fn op<const N: usize>(&self, spec: &Spec<N>) -> (Op, (StateShape, Vec<Keeps>)) {
        let conditions = (0..N).map(|input| spec.conditions >> input & 1 == 1).collect();
        let (windows, lateness) = (self.windows, self.lateness);
        let shape = match windows {
            Windows::Tumbling { .. } | Windows::Sliding { .. } => StateShape::Panes,
            Windows::Session { .. } => StateShape::Sessions,
        };
        let op = Op::WindowJoin { windows, lateness, kinds: spec.kinds.to_vec(), conditions };
        (op, (shape, vec![Keeps::PastWindow(lateness); N]))
    }
}

macro_rules! tested {
    ($Test:ident) => {
        impl<A: JoinInput, I: JoinInput<Key = A::Key>, L> WindowJoin<(A, $Test<I>), L> {
            /// The rows as they are, each once for each of its windows in which what is asked for holds.
            pub fn into_rows<M: Mode>(self) -> Stream<A::Owned, M>
            where
                L: Lateness<(A::Padding, <$Test<I> as JoinInput>::Padding), Out = M>,
                A::Owned: Data,
            {
                self.select(|row, ()| A::own(row))
            }

            /// As [`into_rows`](Self::into_rows), with the rows of each input whose windows are over without their having
            /// met one of the other, and without their being in the result.
            #[allow(clippy::type_complexity)]
            pub fn into_rows_with_unmatched<M: Mode>(
                self,
            ) -> (Stream<A::Owned, M>, (Stream<Unmatched<A::Row>>, Stream<Unmatched<I::Row>>))
            where
                L: Lateness<(A::Padding, <$Test<I> as JoinInput>::Padding), Out = M>,
                A::Owned: Data,
            {
                let unmatched = (self.placed.unmatched::<A::Row>(0), self.placed.unmatched::<I::Row>(1));
                (self.into_rows(), unmatched)
            }
        }
    };
}

tested!(Exists);
tested!(NotExists);

/// Windows that one row may be in.
const WINDOWS_MAX: i64 = 10_000;

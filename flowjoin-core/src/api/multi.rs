//! Regular and N-way joins: `a.join(b)`, `multi_join![a, b, c.optional()]`.
//!
//! ```text
//!   orders    ──┐
//!   payments  ──┼──▶  for each key:  orders × payments × pad(shipments)
//!   shipments ──┘      pad(x) = x, or one missing row where x is optional and empty
//! ```
//!
//! The rows of each input are kept by key for their time-to-live; there are no intermediate results, whatever the
//! number of inputs. A row is in the result as soon as it meets one row of each required input. With an optional input
//! the result is a changelog: the row with the gap is taken back (`-D`) before the first that fills it comes (`+I`).

use std::marker::PhantomData;
use std::panic::Location;

use super::input::JoinInput;
use super::mode::{MergeMode, Mode};
use super::owed::{NeedsTtl, checked};
use super::sides::{JoinDraft, Placed};
use crate::state::{Keeps, Ttl};

/// A join of the inputs `I` (a tuple) on one key, that says how long its rows are kept; end it with `.select(..)`.
#[must_use = "a join does nothing until `.select(..)`"]
pub struct MultiJoin<I> {
    pub(super) placed: Option<Placed>,
    pub(super) draft: Option<JoinDraft>,
    pub(super) ttl: Ttl,
    pub(super) inputs: PhantomData<fn() -> I>,
}

/// Begins a join of several inputs on one key; `multi_join![a, b, c]` is `multi_join(a).and(b).and(c)`.
#[track_caller]
pub fn multi_join<A: JoinInput>(first: A) -> NeedsTtl<MultiJoin<(A,)>> {
    let draft = JoinDraft { inputs: vec![first.lower()], name: None, place: Location::caller() };
    NeedsTtl(MultiJoin { placed: None, draft: Some(draft), ttl: Ttl::Forever, inputs: PhantomData })
}

/// Joins 2 to 12 keyed streams on one key: `multi_join![orders, payments, shipments.optional()]`.
///
/// It is short for `multi_join(orders).and(payments).and(shipments.optional())`.
#[macro_export]
macro_rules! multi_join {
    ($a:expr $(,)?) => {
        ::core::compile_error!("a join has at least 2 inputs: `multi_join![a, b]`")
    };
    ($a:expr, $b:expr $(, $c:expr $(, $d:expr $(, $e:expr $(, $f:expr $(, $g:expr $(, $h:expr $(, $i:expr $(, $j:expr $(, $k:expr $(, $l:expr)?)?)?)?)?)?)?)?)?)? $(,)?) => {
        $crate::api::multi_join($a).and($b)
            $(.and($c) $(.and($d) $(.and($e) $(.and($f) $(.and($g) $(.and($h) $(.and($i) $(.and($j) $(.and($k) $(.and($l))?)?)?)?)?)?)?)?)?)?
    };
    ($($many:expr),* $(,)?) => {
        ::core::compile_error!("a join has at most 12 inputs; join some of them first")
    };
}

impl<I> NeedsTtl<MultiJoin<I>> {
    /// Rows are kept so long after they came, on the clock of the machine, or on that of the watermark with
    /// `hours(24).on(Clock::Event)`; inputs with a time-to-live of their own keep that.
    ///
    /// A row has expired when its time + ttl is at or before now. It then leaves in silence: what it gave stands. If it
    /// was never in the result it comes out on the unmatched output.
    ///
    /// A row that comes again, equal and of the same time, counts as written again: the copies that are held stay as
    /// long as the new one. They are looked for among the last 8 rows of the key on that input.
    #[track_caller]
    pub fn ttl(self, ttl: impl Into<Ttl>) -> MultiJoin<I> {
        let ttl = ttl.into();
        let ttl = match &self.0.draft {
            Some(draft) => checked(ttl, &draft.inputs[0].output, Location::caller()),
            None => ttl,
        };
        self.0.kept(ttl)
    }

    /// Rows are kept for ever, but for those of inputs with a time-to-live of their own: state grows with the input.
    pub fn keep_forever(self) -> MultiJoin<I> {
        self.0.kept(Ttl::Forever)
    }

    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.0.set_name(name.into());
        self
    }

    /// Adds an input.
    pub(super) fn with<J>(self, input: impl JoinInput) -> NeedsTtl<MultiJoin<J>> {
        let mut draft = self.0.draft;
        if let Some(draft) = &mut draft {
            draft.inputs.push(input.lower());
        }
        NeedsTtl(MultiJoin { placed: None, draft, ttl: Ttl::Forever, inputs: PhantomData })
    }
}

impl<I> MultiJoin<I> {
    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.set_name(name.into());
        self
    }

    fn set_name(&mut self, name: String) {
        if let Some(draft) = self.draft.as_mut().or(self.placed.as_mut().map(|placed| &mut placed.draft)) {
            draft.name = Some(name);
        }
    }

    fn kept(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self.placed = self.draft.take().map(JoinDraft::place);
        self
    }

    pub(super) fn placed(&self) -> &Placed {
        self.placed.as_ref().expect("a join that says how long its rows are kept has its place")
    }

    /// The time-to-live of each input.
    pub(super) fn ttls<const N: usize>(&self) -> [Ttl; N] {
        let inputs = &self.placed().draft.inputs;
        std::array::from_fn(|input| inputs[input].ttl.unwrap_or(self.ttl))
    }

    /// Which inputs may be missing.
    pub(super) fn optional<const N: usize>(&self) -> [bool; N] {
        let inputs = &self.placed().draft.inputs;
        std::array::from_fn(|input| inputs[input].optional)
    }
}

/// The mode of the result of two inputs.
pub(super) type Merged<A, B> = <A as MergeMode<B>>::Out;

pub(super) fn keeps(ttls: &[Ttl]) -> Vec<Keeps> {
    ttls.iter().map(|&ttl| Keeps::Ttl(ttl)).collect()
}

pub(super) fn mode_of<M: Mode>() -> crate::plan::ChangeMode {
    M::MODE
}

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

use super::input::{Condition, JoinInput};
use super::mode::{MergeMode, Mode};
use super::owed::{NeedsTtl, checked};
use super::policy::{ExpiryPolicy, Silent};
use super::sides::{JoinDraft, Placed};
use crate::op::multi_join::{Emit, Spec};
use crate::plan::{ChangeMode, Op};
use crate::state::{Keeps, TimeToLive, Ttl};

/// A join of the inputs `I` (a tuple) on one key, that says how long its rows are kept; end it with `.select(..)`.
#[must_use = "a join does nothing until `.select(..)`"]
pub struct MultiJoin<I, X = Silent> {
    pub(super) placed: Option<Placed>,
    pub(super) draft: Option<JoinDraft>,
    pub(super) ttl: Ttl,
    pub(super) inputs: PhantomData<fn() -> (I, X)>,
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
    pub fn ttl(self, ttl: impl TimeToLive) -> MultiJoin<I> {
        let ttl = ttl.to_ttl();
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
    pub fn named(self, name: impl Into<String>) -> Self {
        NeedsTtl(self.0.named(name))
    }

    /// Adds a condition between the last input and those before it.
    pub(super) fn require(mut self, condition: Condition) -> Self {
        if let Some(input) = self.0.draft.as_mut().and_then(|draft| draft.inputs.last_mut()) {
            input.condition = Some(condition);
        }
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

impl<A: JoinInput> NeedsTtl<MultiJoin<(A,)>> {
    /// Adds an input that only has to exist, or not.
    pub(super) fn and_test<B: JoinInput<Key = A::Key>>(self, test: B) -> NeedsTtl<MultiJoin<(A, B)>> {
        self.with(test)
    }
}

impl<I> MultiJoin<I> {
    /// Says what the expiry of a row does to what it gave: nothing ([`Silent`], as without this), that its partners come
    /// out without it ([`Unmatch`](super::Unmatch)), or that it is taken back ([`Retract`](super::Retract)).
    pub fn on_expiry<X: ExpiryPolicy>(self, _: X) -> MultiJoin<I, X> {
        MultiJoin { placed: self.placed, draft: self.draft, ttl: self.ttl, inputs: PhantomData }
    }

    fn kept(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self.placed = self.draft.take().map(JoinDraft::place);
        self
    }
}

impl<I, X> MultiJoin<I, X> {
    /// Names the join: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Some(draft) = self.draft.as_mut().or(self.placed.as_mut().map(|placed| &mut placed.draft)) {
            draft.name = Some(name.into());
        }
        self
    }

    pub(super) fn placed(&self) -> &Placed {
        self.placed.as_ref().expect("a join that says how long its rows are kept has its place")
    }

    /// What the operator is told.
    pub(super) fn spec<const N: usize>(&self) -> Spec<N>
    where
        X: ExpiryPolicy,
    {
        let inputs = &self.placed().draft.inputs;
        let conditions = inputs.iter().enumerate().filter(|(_, input)| input.condition.is_some());
        Spec {
            kinds: std::array::from_fn(|input| inputs[input].kind),
            conditions: conditions.fold(0, |bits, (input, _)| bits | 1 << input),
            changes: std::array::from_fn(|input| inputs[input].mode == ChangeMode::Changelog),
            one_a_key: std::array::from_fn(|input| inputs[input].unique_is_key),
            ttls: std::array::from_fn(|input| inputs[input].ttl.unwrap_or(self.ttl)),
            on_expiry: X::ON_EXPIRY,
            emit: std::array::from_fn(|input| inputs[input].emit.unwrap_or(Emit::Eager)),
            tables: 0,
            names: std::array::from_fn(|input| inputs[input].output.label.clone()),
        }
    }

    /// The condition of each input.
    pub(super) fn conditions<const N: usize>(&self) -> [Option<Condition>; N] {
        let inputs = &self.placed().draft.inputs;
        std::array::from_fn(|input| inputs[input].condition.clone())
    }

    /// The join in the plan.
    pub(super) fn op<const N: usize>(&self, spec: &Spec<N>) -> Op {
        let inputs = &self.placed().draft.inputs;
        Op::MultiJoin {
            kinds: spec.kinds.to_vec(),
            conditions: inputs.iter().map(|input| input.condition.is_some()).collect(),
            unique: inputs.iter().map(|input| input.unique.as_ref().map(|(_, name)| name.clone())).collect(),
            emit: spec.emit.to_vec(),
            on_expiry: spec.on_expiry,
            tables: vec![false; N],
        }
    }
}

/// The mode of the result of two inputs.
pub(super) type Merged<A, B> = <A as MergeMode<B>>::Out;

pub(super) fn keeps(ttls: &[Ttl]) -> Vec<Keeps> {
    ttls.iter().map(|&ttl| Keeps::Ttl(ttl)).collect()
}

pub(super) fn mode_of<M: Mode>() -> ChangeMode {
    M::MODE
}

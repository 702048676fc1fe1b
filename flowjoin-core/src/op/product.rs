//! The kernel: an N-way join over one key is a product of lists.
//!
//! For inputs `0..N` under one key, with `rows[i]` the list of input `i`,
//!
//! ```text
//! pad(i) = rows[i]       if it is not empty and input i is shown
//!        = [MISSING]     if it is empty and input i is optional or must not exist
//!        = [MISSING]     if it is not empty and input i has to exist
//!        = []            else
//! result = pad(0) × pad(1) × … × pad(N-1)
//! ```
//!
//! and a combination in which every input is missing is no row. One row that enters or leaves input `i` changes the
//! result only through factor `i`. No types, no time, no state here; an odometer over N slices, tested with integers
//! against the definition. INNER, LEFT, RIGHT, FULL, SEMI, ANTI and N-way are this one function and two bit masks.

use super::kernel::{self, Kind, Out, Pair, is_empty};
use crate::state::{RowId, Runs};

/// How many inputs a join has, and what each does to the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    // A bit for each input.
    all: u16,
    required: u16,
    may_be_empty: u16,
    hidden: u16,
    is_inner: bool,
}

impl Shape {
    /// A join with one flag an input: whether it is optional; else it is required.
    pub fn new(optional: &[bool]) -> Shape {
        let bits = optional.iter().enumerate().map(|(input, &optional)| u16::from(optional) << input);
        Shape::of_bits(optional.len(), bits.sum(), 0)
    }

    /// A join of inputs of these kinds.
    pub fn of(kinds: &[Kind]) -> Shape {
        let bits = |is: fn(Kind) -> bool| {
            kinds.iter().enumerate().map(|(input, &kind)| u16::from(is(kind)) << input).sum::<u16>()
        };
        Shape::of_bits(kinds.len(), bits(Kind::may_be_empty), bits(|kind| !kind.shows()))
    }

    fn of_bits(inputs: usize, may_be_empty: u16, hidden: u16) -> Shape {
        let all = ((1u32 << inputs) - 1) as u16;
        let required = !may_be_empty & all;
        Shape { all, required, may_be_empty, hidden, is_inner: required == all && hidden == 0 }
    }

    /// A bit for each input that needs a row: the required ones, and those that have to exist.
    #[inline]
    pub fn required(&self) -> u16 {
        self.required
    }

    /// Whether every input is required and shown: the result has no gaps.
    #[inline]
    pub fn is_inner(&self) -> bool {
        self.is_inner
    }

    /// A bit for each input that must not have a row.
    pub fn forbidden(&self) -> u16 {
        self.may_be_empty & self.hidden
    }

    /// A bit for each input whose rows are in the result: the required and the optional ones.
    pub fn shown(&self) -> u16 {
        !self.hidden & self.all
    }

    /// What an input does to the result.
    pub fn kind(&self, input: usize) -> Kind {
        match (self.may_be_empty >> input & 1 == 1, self.hidden >> input & 1 == 1) {
            (false, false) => Kind::Required,
            (true, false) => Kind::Optional,
            (false, true) => Kind::Exists,
            (true, true) => Kind::NotExists,
        }
    }

    /// Whether an input is optional.
    pub fn is_optional(&self, input: usize) -> bool {
        self.may_be_empty & !self.hidden & 1 << input != 0
    }

    /// Whether a row of an input is in the result though no other input has any.
    pub fn stands_alone(&self, input: usize) -> bool {
        self.required() & !(1 << input) == 0 && self.shown() >> input & 1 == 1
    }
}

/// A row that enters or leaves one input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The input.
    pub input: usize,
    /// The row.
    pub row: RowId,
    /// Whether it enters.
    pub enters: bool,
    /// Whether the list of the input holds no other row: before it entered, or after it left.
    pub alone: bool,
}

/// Emits what one step changes in the result, given the lists of the key (that of the input that changes is not looked
/// at): `true` with a combination that is added, `false` with one taken back.
///
/// A gap is taken back before the first combination that fills it, and comes back after the last one has gone. The
/// time is linear in what is emitted, and nothing is collected.
pub fn delta<const N: usize>(
    shape: &Shape,
    lists: &[Runs<'_>; N],
    step: Step,
    emit: &mut impl FnMut(bool, &[RowId; N]),
) {
    if shape.hidden >> step.input & 1 == 1 {
        // Only whether there is a row counts: with one, what has to exist stands; with none, what must not.
        if step.alone {
            let stands = step.enters == (shape.kind(step.input) == Kind::Exists);
            product(shape, lists, step.input, RowId::MISSING, &mut |ids| emit(stands, ids));
        }
        return;
    }
    let edge = step.alone && shape.is_optional(step.input);
    if step.enters {
        if edge {
            product(shape, lists, step.input, RowId::MISSING, &mut |ids| emit(false, ids));
        }
        product(shape, lists, step.input, step.row, &mut |ids| emit(true, ids));
    } else {
        product(shape, lists, step.input, step.row, &mut |ids| emit(false, ids));
        if edge {
            product(shape, lists, step.input, RowId::MISSING, &mut |ids| emit(true, ids));
        }
    }
}

/// Emits what the change of many rows of one input does to the result: first all that goes, then all that is updated,
/// then all that comes. No combination both goes and comes.
///
/// The list of the input that changes holds the rows that *stay*: neither those that go nor those that come. So a
/// caller takes out the old rows, calls this, and puts in the new ones; the lists of the other inputs are as they are.
/// An optional input that holds a row before and after shows no gap in between.
///
/// The time is linear in what is emitted and in the rows that change, and nothing is collected.
///
/// # Panics
/// If a row takes its own place.
pub fn change<const N: usize>(
    shape: &Shape,
    lists: &[Runs<'_>; N],
    input: usize,
    pairs: &[Pair],
    emit: &mut impl FnMut(Out<N>),
) {
    kernel::check(lists[input], pairs);
    let none_stays = is_empty(lists[input]);
    let was_empty = none_stays && pairs.iter().all(|pair| pair.old.is_missing());
    let becomes_empty = none_stays && pairs.iter().all(|pair| pair.new.is_missing());
    let kind = shape.kind(input);
    let has_gap = |empty: bool| kind != Kind::Required && empty == kind.may_be_empty();
    let (had_gap, has_gap) = (has_gap(was_empty), has_gap(becomes_empty));
    if had_gap && !has_gap {
        product(shape, lists, input, RowId::MISSING, &mut |ids| emit(Out::Delete(*ids)));
    }
    if kind.shows() {
        for pair in pairs.iter().filter(|pair| pair.new.is_missing() && !pair.old.is_missing()) {
            product(shape, lists, input, pair.old, &mut |ids| emit(Out::Delete(*ids)));
        }
        for pair in pairs.iter().filter(|pair| !pair.new.is_missing() && !pair.old.is_missing()) {
            product(shape, lists, input, pair.old, &mut |old| {
                let mut new = *old;
                new[input] = pair.new;
                emit(Out::Update { old: *old, new });
            });
        }
        for pair in pairs.iter().filter(|pair| pair.old.is_missing() && !pair.new.is_missing()) {
            product(shape, lists, input, pair.new, &mut |ids| emit(Out::Insert(*ids)));
        }
    }
    if has_gap && !had_gap {
        product(shape, lists, input, RowId::MISSING, &mut |ids| emit(Out::Insert(*ids)));
    }
}

/// Emits the whole result of a key.
#[inline]
pub fn result<const N: usize>(shape: &Shape, lists: &[Runs<'_>; N], emit: &mut impl FnMut(&[RowId; N])) {
    // No input is fixed.
    product(shape, lists, N, RowId::MISSING, emit);
}

/// As [`result`], from a place on and until `emit` says that it is enough; returns where to go on then. The first place is
/// all zeros, and a place is good for as long as the lists stay as they are.
pub fn result_from<const N: usize>(
    shape: &Shape,
    lists: &[Runs<'_>; N],
    mut place: [usize; N],
    emit: &mut impl FnMut(&[RowId; N]) -> bool,
) -> Option<[usize; N]> {
    let factors = factors(shape, lists, N, &[])?;
    let (mut ids, wheels) = wheels(&factors);
    for (&(input, list), &turned) in wheels.lists[..wheels.len].iter().zip(&place) {
        ids[input] = at(list, turned);
    }
    (!turn_from(ids, &wheels, &mut place, emit)).then_some(place)
}

fn product<const N: usize>(
    shape: &Shape,
    lists: &[Runs<'_>; N],
    fixed: usize,
    row: RowId,
    emit: &mut impl FnMut(&[RowId; N]),
) {
    if let Some(factors) = factors(shape, lists, fixed, &[row]) {
        let (ids, wheels) = wheels(&factors);
        turn(ids, &wheels, emit);
    }
}

// What is multiplied, with the list of one input fixed to a row or a gap; nothing if nothing stands.
#[inline]
fn factors<'a, const N: usize>(
    shape: &Shape,
    lists: &[Runs<'a>; N],
    fixed: usize,
    row: &'a [RowId],
) -> Option<[Runs<'a>; N]> {
    let mut factors: [Runs<'a>; N] = [(&[], &[]); N];
    let mut any = row.first().is_some_and(|row| !row.is_missing());
    for input in 0..N {
        let empty = is_empty(lists[input]);
        factors[input] = if input == fixed {
            (row, &[])
        } else if !empty && shape.hidden >> input & 1 == 0 {
            any = true;
            lists[input]
        } else if empty == (shape.may_be_empty >> input & 1 == 1) {
            (&GAP, &[])
        } else {
            return None;
        };
    }
    any.then_some(factors)
}

static GAP: [RowId; 1] = [RowId::MISSING];

// The first row of each list, and the lists that turn: those of more than one row, which most are not.
#[inline]
fn wheels<'a, const N: usize>(factors: &[Runs<'a>; N]) -> ([RowId; N], Wheels<'a, N>) {
    let ids = std::array::from_fn(|input| at(factors[input], 0));
    let mut wheels = Wheels::default();
    for (input, &(front, back)) in factors.iter().enumerate() {
        if front.len() + back.len() > 1 {
            wheels.add(input, (front, back));
        }
    }
    (ids, wheels)
}

/// The lists of more than one row that a product is made of.
pub struct Wheels<'a, const N: usize> {
    lists: [(usize, Runs<'a>); N],
    len: usize,
}

impl<const N: usize> Default for Wheels<'_, N> {
    #[inline]
    fn default() -> Self {
        Wheels { lists: [(0, (&[], &[])); N], len: 0 }
    }
}

impl<'a, const N: usize> Wheels<'a, N> {
    /// The list of one more input. Returns its first row.
    #[inline]
    pub fn add(&mut self, input: usize, list: Runs<'a>) -> RowId {
        self.lists[self.len] = (input, list);
        self.len += 1;
        at(list, 0)
    }
}

/// Emits every choice of one row of each list, with the first of each to begin with; the rows of the other inputs stay.
#[inline]
pub fn turn<const N: usize>(ids: [RowId; N], wheels: &Wheels<'_, N>, emit: &mut impl FnMut(&[RowId; N])) {
    turn_from(ids, wheels, &mut [0; N], &mut |ids| {
        emit(ids);
        true
    });
}

// The same from a place on, which it moves, until it is enough; returns whether there is no more.
#[inline(always)]
fn turn_from<const N: usize>(
    mut ids: [RowId; N],
    wheels: &Wheels<'_, N>,
    turned: &mut [usize; N],
    emit: &mut impl FnMut(&[RowId; N]) -> bool,
) -> bool {
    let lists = &wheels.lists[..wheels.len];
    loop {
        let goes_on = emit(&ids);
        let mut wheel = lists.len();
        loop {
            if wheel == 0 {
                return true;
            }
            wheel -= 1;
            let (input, list) = lists[wheel];
            turned[wheel] += 1;
            if turned[wheel] < list.0.len() + list.1.len() {
                ids[input] = at(list, turned[wheel]);
                break;
            }
            turned[wheel] = 0;
            ids[input] = at(list, 0);
        }
        if !goes_on {
            return false;
        }
    }
}

#[inline]
fn at((front, back): Runs<'_>, n: usize) -> RowId {
    if n < front.len() { front[n] } else { back[n - front.len()] }
}

#[cfg(test)]
pub(super) mod tests;

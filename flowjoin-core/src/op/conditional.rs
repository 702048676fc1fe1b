//! The second kernel: joins with conditions beyond the key, evaluated from the left as SQL would.
//!
//! With `rows[i]` the list of input `i` under one key, and a condition for each step that has one,
//!
//! ```text
//! result[0] = rows[0]
//! result[i] = for each p in result[i - 1], with M = those r in rows[i] for which p + r holds:
//!     Required:   p + r for each r in M
//!     Optional:   p + r for each r in M, or p + MISSING if there is none
//!     Exists:     p + MISSING if there is one in M
//!     NotExists:  p + MISSING if there is none in M
//!   and, where no row of the inputs before is needed, MISSING + r for each r in rows[i] that no p matches.
//! ```
//!
//! `[a optional, b]` is a RIGHT join, `[a, b optional]` a LEFT one, both optional FULL. Where no step has a condition,
//! [`product`](super::product) says the same faster ([`Steps::is_product`]). No types, no time, no state here: lists of
//! ids, and a callback for the conditions.

use super::kernel::{self, Kind, Out, Pair, is_empty, rows};
use crate::state::{RowId, Runs};

/// The steps of a join from the left: what each input does, and which steps have a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps<const N: usize> {
    kinds: [Kind; N],
    conditions: u16,
    // The last input of which a row can stand with nothing from its left, or 0.
    apart: usize,
}

impl<const N: usize> Steps<N> {
    /// A join of inputs of these kinds, with no condition yet.
    ///
    /// # Panics
    /// If the first input shows no rows: there is then nothing to begin with.
    pub fn of(kinds: [Kind; N]) -> Steps<N> {
        const { assert!(0 < N && N <= 16, "a bit an input") };
        assert!(kinds[0].shows(), "the first input of a join shows its rows");
        let mut steps = Steps { kinds, conditions: 0, apart: 0 };
        steps.apart = (0..N).rev().find(|&step| steps.stands_apart(step)).unwrap_or(0);
        steps
    }

    /// The same join, with a condition between an input and those on its left.
    ///
    /// # Panics
    /// If there is nothing on its left.
    pub fn on(self, input: usize) -> Steps<N> {
        assert!(0 < input && input < N, "a condition is between an input and those on its left");
        Steps { conditions: self.conditions | 1 << input, ..self }
    }

    /// The kinds of the inputs.
    pub fn kinds(&self) -> &[Kind; N] {
        &self.kinds
    }

    /// Whether there is a condition between an input and those on its left.
    pub fn has_condition(&self, input: usize) -> bool {
        self.conditions >> input & 1 == 1
    }

    /// Whether this is a product of lists: no condition, and no row that stands though one on its left was filtered out.
    pub fn is_product(&self) -> bool {
        self.conditions == 0 && self.kinds[..self.apart].iter().all(|kind| kind.shows())
    }

    // Whether a row of an input can stand with nothing from its left.
    fn stands_apart(&self, step: usize) -> bool {
        step > 0 && self.kinds[step].shows() && !self.kinds[..step].contains(&Kind::Required)
    }

    // Whether nothing stands whatever the list of one input is, because another that is needed holds nothing.
    fn is_barren(&self, lists: &[Runs<'_>; N], input: usize) -> bool {
        let needed = |step: usize| match self.kinds[step] {
            Kind::Required => true,
            // Rows further to the right can stand where this filters out all.
            Kind::Exists => step > self.apart,
            Kind::Optional | Kind::NotExists => false,
        };
        (0..N).any(|step| step != input && needed(step) && is_empty(lists[step]))
    }

    // Whether a row that comes can only add to the result.
    fn only_adds(&self, input: usize) -> bool {
        input >= self.apart && (input == 0 || matches!(self.kinds[input], Kind::Required | Kind::Exists))
    }
}

/// Emits what the change of one input does to the result: first all that goes, then all that is updated, then all that
/// comes. No combination both goes and comes.
///
/// The list of the input that changes holds the rows that *stay*: neither those that go nor those that come. So a
/// caller takes out the old rows, calls this, and puts in the new ones; the lists of the other inputs are as they are.
///
/// `holds(i, ids)` answers whether the condition of step `i` holds. The row of input `i` is in `ids`; inputs before it
/// may be gaps (but not all), and those that only have to exist or not always are; inputs after it are gaps. It is
/// called only for steps that have a condition, for rows that go as well as for those that come and stay, and must
/// answer the same for the same ids.
///
/// # Cost
///
/// In calls of `holds`, for the change of input `i`:
///
/// - what it takes to list the combinations of the inputs before `i` ([`result`]);
/// - one for each of these and each row that changes;
/// - where `i` is optional, has to exist or must not: a scan of the rows that stay, until the first match, for each
///   of these that lost a match or found one, but not both;
/// - for each combination that changes, one for each row of the next input, and so on to the last.
///
/// A join of two inputs so asks once for each row that changes and each row of the other list, and scans for each
/// partner that is affected; no pair is asked twice. Nothing is asked while another input that is needed is empty.
///
/// Where rows can stand with nothing from their left (RIGHT, FULL), a row that lost a match or found one, but not both,
/// is looked for among the combinations that stay, until the first match. On the second step those are the rows that
/// stay; on later ones they are listed anew, once a step. The combinations that change on these steps are collected.
///
/// Updates and additions are held back until all that goes is known, except where nothing can go: rows only come, and
/// fill no gap.
///
/// # Panics
/// If a row takes its own place.
pub fn change<const N: usize>(
    steps: &Steps<N>,
    lists: &[Runs<'_>; N],
    input: usize,
    pairs: &[Pair],
    holds: &mut impl FnMut(usize, &[RowId; N]) -> bool,
    emit: &mut impl FnMut(Out<N>),
) {
    kernel::check(lists[input], pairs);
    let unmoved = !steps.kinds[input].shows() && !steps.has_condition(input) && !is_empty(lists[input]);
    if unmoved || steps.is_barren(lists, input) {
        return;
    }
    let in_order = steps.only_adds(input) && pairs.iter().all(|pair| pair.old.is_missing());
    let (mut updated, mut added) = (Vec::new(), Vec::new());
    let mut put = |out: Out<N>| match out {
        Out::Delete(_) => emit(out),
        Out::Insert(_) if in_order => emit(out),
        Out::Update { .. } => updated.push(out),
        Out::Insert(_) => added.push(out),
    };
    let mut walk = Walk { steps, lists, holds };
    if input > steps.apart || steps.apart == 0 {
        walk.turn(input, pairs, &mut |walk, change| walk.descend(input + 1, change, N, &mut |_, out| put(out)));
    } else {
        let mut changes = walk.turn_apart(input, pairs);
        for step in input + 1..=steps.apart {
            changes = walk.advance(step, changes, input, pairs);
        }
        for change in changes {
            walk.descend(steps.apart + 1, change, N, &mut |_, out| put(out));
        }
    }
    updated.into_iter().chain(added).for_each(emit);
}

/// Emits the whole result of a key.
///
/// Calls `holds` once for each combination of the inputs before a step and each row of that step, but stops at the
/// first match where rows only have to exist or not.
pub fn result<const N: usize>(
    steps: &Steps<N>,
    lists: &[Runs<'_>; N],
    holds: &mut impl FnMut(usize, &[RowId; N]) -> bool,
    emit: &mut impl FnMut(&[RowId; N]),
) {
    if !steps.is_barren(lists, N) {
        Walk { steps, lists, holds }.each(N, &mut |_, ids| emit(ids));
    }
}

// A walk through the steps. Combinations of the first inputs are whole ones with gaps in the place of the others.
struct Walk<'a, const N: usize, H> {
    steps: &'a Steps<N>,
    lists: &'a [Runs<'a>; N],
    holds: &'a mut H,
}

impl<const N: usize, H: FnMut(usize, &[RowId; N]) -> bool> Walk<'_, N, H> {
    // What the rows that change do to the result up to their input, a combination on its left at a time. Rows that
    // stand apart are not looked at.
    fn turn(&mut self, input: usize, pairs: &[Pair], sink: &mut impl FnMut(&mut Self, Out<N>)) {
        if input > 0 {
            return self.each(input, &mut |walk, prefix| walk.turn_one(input, pairs, prefix, sink));
        }
        for pair in pairs {
            if let Some(change) = Out::of(alone(0, pair.old), alone(0, pair.new)) {
                sink(self, change);
            }
        }
    }

    fn turn_one(
        &mut self,
        input: usize,
        pairs: &[Pair],
        prefix: &[RowId; N],
        sink: &mut impl FnMut(&mut Self, Out<N>),
    ) {
        let kind = self.steps.kinds[input];
        let (mut lost, mut found) = (false, false);
        for pair in pairs {
            let old = self.matched(input, prefix, pair.old);
            let new = self.matched(input, prefix, pair.new);
            lost |= old.is_some();
            found |= new.is_some();
            match Out::of(old, new) {
                Some(change) if kind.shows() => sink(self, change),
                _ => {}
            }
        }
        if kind != Kind::Required && lost != found && !self.any_match(input, prefix) {
            // Its matches have become none, or are none no longer.
            let stands = lost == kind.may_be_empty();
            sink(self, if stands { Out::Insert(*prefix) } else { Out::Delete(*prefix) });
        }
    }

    // The same where rows of the input, or of one on its right, stand apart.
    fn turn_apart(&mut self, input: usize, pairs: &[Pair]) -> Vec<Out<N>> {
        let mut changes = Vec::new();
        self.turn(input, pairs, &mut |_, change| changes.push(change));
        if self.steps.stands_apart(input) {
            let (lost, found) = met(&changes, input);
            let unmet = |row: RowId, met: &[RowId]| alone(input, row).filter(|_| met.binary_search(&row).is_err());
            changes.extend(pairs.iter().filter_map(|pair| Out::of(unmet(pair.old, &lost), unmet(pair.new, &found))));
        }
        changes
    }

    // What changes up to a step on the right of the input that changes, given what changes before it.
    fn advance(&mut self, step: usize, before: Vec<Out<N>>, input: usize, pairs: &[Pair]) -> Vec<Out<N>> {
        let mut changes = self.level(step, &before);
        if !self.steps.stands_apart(step) {
            return changes;
        }
        let (lost, found) = met(&changes, step);
        let only = |these: &[RowId], those: &[RowId]| {
            these.iter().copied().filter(|row| those.binary_search(row).is_err()).collect::<Vec<_>>()
        };
        let (lost, found) = (only(&lost, &found), only(&found, &lost));
        if lost.is_empty() && found.is_empty() {
            return changes;
        }
        let stay = if step > 1 { self.staying(step, &before, input, pairs) } else { Vec::new() };
        for (rows, make) in [(lost, Out::Insert as fn(_) -> _), (found, Out::Delete)] {
            for row in rows {
                if !self.is_met(step, row, &stay) {
                    changes.extend(alone(step, row).map(make));
                }
            }
        }
        changes
    }

    // Whether a combination that stays matches a row. On the second step those are the rows of the first list.
    fn is_met(&mut self, step: usize, row: RowId, stay: &[[RowId; N]]) -> bool {
        if step > 1 {
            return stay.iter().any(|prefix| self.matched(step, prefix, row).is_some());
        }
        let lists = self.lists;
        rows(lists[0]).filter_map(|first| alone(0, first)).any(|prefix| self.matched(step, &prefix, row).is_some())
    }

    // The combinations before a step that stand before and after: all that stood but for those that go.
    fn staying(&mut self, step: usize, changes: &[Out<N>], input: usize, pairs: &[Pair]) -> Vec<[RowId; N]> {
        let old = pairs.iter().map(|pair| pair.old).filter(|old| !old.is_missing());
        let stood: Vec<RowId> = rows(self.lists[input]).chain(old).collect();
        let mut lists = *self.lists;
        lists[input] = (&stood, &[]);
        let mut gone: Vec<&[RowId; N]> = changes.iter().filter_map(Out::goes).collect();
        gone.sort_unstable();
        let mut stay = Vec::new();
        let mut walk = Walk { steps: self.steps, lists: &lists, holds: &mut *self.holds };
        walk.each(step, &mut |_, prefix| {
            if gone.binary_search(&prefix).is_err() {
                stay.push(*prefix);
            }
        });
        stay
    }

    // The result of the first inputs.
    fn each(&mut self, until: usize, sink: &mut impl FnMut(&mut Self, &[RowId; N])) {
        let lists = self.lists;
        let first = rows(lists[0]).filter_map(|row| alone(0, row)).map(Out::Insert);
        let mut sink = |walk: &mut Self, change: Out<N>| {
            if let Some(ids) = change.comes() {
                sink(walk, ids);
            }
        };
        let apart = self.steps.apart.min(until - 1);
        if apart == 0 {
            return first.for_each(|change| self.descend(1, change, until, &mut sink));
        }
        let mut standing: Vec<Out<N>> = first.collect();
        for (step, &list) in lists.iter().enumerate().take(apart + 1).skip(1) {
            standing = self.level(step, &standing);
            if self.steps.stands_apart(step) {
                let (_, met) = met(&standing, step);
                let unmet = rows(list).filter(|row| met.binary_search(row).is_err());
                standing.extend(unmet.filter_map(|row| alone(step, row)).map(Out::Insert));
            }
        }
        for change in standing {
            self.descend(apart + 1, change, until, &mut sink);
        }
    }

    // What changes up to one step through what changes before it; rows that stand apart are not looked at.
    fn level(&mut self, step: usize, before: &[Out<N>]) -> Vec<Out<N>> {
        let mut changes = Vec::new();
        for &change in before {
            self.descend(step, change, step + 1, &mut |_, change| changes.push(change));
        }
        changes
    }

    // Follows a combination that changes from a step on, until before another. What goes and what comes keep together
    // as long as the same rows match both.
    fn descend(&mut self, step: usize, change: Out<N>, until: usize, sink: &mut impl FnMut(&mut Self, Out<N>)) {
        if step == until {
            return sink(self, change);
        }
        let kind = self.steps.kinds[step];
        let (mut old, mut new) = (change.goes().copied(), change.comes().copied());
        if kind.shows() {
            let lists = self.lists;
            for row in rows(lists[step]) {
                let with_old = change.goes().and_then(|prefix| self.matched(step, prefix, row));
                let with_new = change.comes().and_then(|prefix| self.matched(step, prefix, row));
                // A combination that has a match has no gap.
                old = old.filter(|_| with_old.is_none());
                new = new.filter(|_| with_new.is_none());
                if let Some(change) = Out::of(with_old, with_new) {
                    self.descend(step + 1, change, until, sink);
                }
            }
        }
        let mut keeps = |prefix: &[RowId; N]| match kind {
            Kind::Required => false,
            Kind::Optional => true,
            Kind::Exists => self.any_match(step, prefix),
            Kind::NotExists => !self.any_match(step, prefix),
        };
        if let Some(change) = Out::of(old.filter(&mut keeps), new.filter(&mut keeps)) {
            self.descend(step + 1, change, until, sink);
        }
    }

    // Whether a row of the list of a step matches a combination before it.
    fn any_match(&mut self, step: usize, prefix: &[RowId; N]) -> bool {
        let lists = self.lists;
        rows(lists[step]).any(|row| self.matched(step, prefix, row).is_some())
    }

    // The combination with a row, if there is one and the condition holds.
    fn matched(&mut self, step: usize, prefix: &[RowId; N], row: RowId) -> Option<[RowId; N]> {
        let mut ids = *prefix;
        ids[step] = row;
        let holds = !row.is_missing() && (!self.steps.has_condition(step) || (self.holds)(step, &ids));
        holds.then_some(ids)
    }
}

// A row with nothing else; nothing if there is no row.
fn alone<const N: usize>(input: usize, row: RowId) -> Option<[RowId; N]> {
    let mut ids = [RowId::MISSING; N];
    ids[input] = row;
    (!row.is_missing()).then_some(ids)
}

// The rows of an input in what goes and in what comes, each in order and once.
fn met<const N: usize>(changes: &[Out<N>], input: usize) -> (Vec<RowId>, Vec<RowId>) {
    let sorted = |ids: &mut dyn Iterator<Item = &[RowId; N]>| {
        let mut rows: Vec<RowId> = ids.map(|ids| ids[input]).filter(|row| !row.is_missing()).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    };
    (sorted(&mut changes.iter().filter_map(Out::goes)), sorted(&mut changes.iter().filter_map(Out::comes)))
}

#[cfg(test)]
mod tests;

//! What the tests of both kernels share: cases, and the legality of what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Arguments;

use super::*;

const KINDS: [Kind; 4] = [Kind::Required, Kind::Optional, Kind::Exists, Kind::NotExists];

pub(in crate::op) struct Lcg(pub u64);

impl Lcg {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    pub fn kind(&mut self) -> Kind {
        KINDS[self.below(4)]
    }
}

pub(in crate::op) fn every_kinds<const N: usize>() -> Vec<[Kind; N]> {
    (0..4usize.pow(N as u32)).map(|n| std::array::from_fn(|i| KINDS[n / 4usize.pow(i as u32) % 4])).collect()
}

// Rows of input i are numbered from 10 i on, so that no two inputs share a number.
pub(in crate::op) fn list(input: usize, rows: usize) -> Vec<RowId> {
    (0..rows).map(|n| RowId::new((10 * input + n) as u32)).collect()
}

pub(in crate::op) fn lists_up_to_two<const N: usize>() -> Vec<[Vec<RowId>; N]> {
    let rows = |n: usize, input: usize| n / 3usize.pow(input as u32) % 3;
    (0..3usize.pow(N as u32)).map(|n| std::array::from_fn(|input| list(input, rows(n, input)))).collect()
}

pub(in crate::op) fn runs<const N: usize>(lists: &[Vec<RowId>; N]) -> [Runs<'_>; N] {
    std::array::from_fn(|input| lists[input].split_at(lists[input].len() / 2))
}

pub(in crate::op) mod changes {
    use super::*;

    // Numbers beyond those of all lists.
    fn row(n: usize) -> RowId {
        RowId::new(100 + n as u32)
    }

    fn pair(which: usize, n: usize) -> Pair {
        match which {
            0 => Pair::added(row(2 * n)),
            1 => Pair::removed(row(2 * n)),
            _ => Pair::updated(row(2 * n), row(2 * n + 1)),
        }
    }

    pub fn of_up_to_two() -> Vec<Vec<Pair>> {
        let ones = (0..3).map(|which| vec![pair(which, 0)]);
        let twos =
            (0..9).filter(|which| which % 3 <= which / 3).map(|which| vec![pair(which % 3, 0), pair(which / 3, 1)]);
        ones.chain(twos).collect()
    }

    pub fn random(rng: &mut Lcg, pairs_max: usize) -> Vec<Pair> {
        (0..1 + rng.below(pairs_max)).map(|n| pair(rng.below(3), n)).collect()
    }

    pub fn before_and_after<const N: usize>(
        stay: &[Vec<RowId>; N],
        input: usize,
        pairs: &[Pair],
    ) -> [[Vec<RowId>; N]; 2] {
        [|pair: &Pair| pair.old, |pair: &Pair| pair.new].map(|side| {
            let mut lists = stay.clone();
            lists[input].extend(pairs.iter().map(side).filter(|row| !row.is_missing()));
            lists
        })
    }
}

// What stands downstream. `sides` names what must never stand on two sides at once: of an outer row (by a number and
// ids that tell it from others), its gap on the one side and its matches on the other.
pub(in crate::op) struct Standing<const N: usize, S> {
    combinations: BTreeSet<[RowId; N]>,
    counts: BTreeMap<(usize, [RowId; N]), [usize; 2]>,
    sides: S,
}

impl<const N: usize, S: Fn(&[RowId; N]) -> Vec<((usize, [RowId; N]), bool)>> Standing<N, S> {
    pub fn new(result: Vec<[RowId; N]>, sides: S) -> Self {
        let mut standing = Standing { combinations: BTreeSet::new(), counts: BTreeMap::new(), sides };
        result.into_iter().for_each(|ids| standing.add(ids));
        standing
    }

    fn add(&mut self, ids: [RowId; N]) {
        assert!(self.combinations.insert(ids), "{ids:?} stands already");
        for (outer, gap) in (self.sides)(&ids) {
            let counts = self.counts.entry(outer).or_default();
            counts[usize::from(gap)] += 1;
            assert!(counts.contains(&0), "a gap stands with what fills it: {ids:?}");
        }
    }

    fn take_back(&mut self, ids: [RowId; N]) {
        assert!(self.combinations.remove(&ids), "{ids:?} does not stand");
        for (outer, gap) in (self.sides)(&ids) {
            self.counts.entry(outer).or_default()[usize::from(gap)] -= 1;
        }
    }

    pub fn apply(&mut self, out: Out<N>) {
        out.goes().into_iter().for_each(|&ids| self.take_back(ids));
        out.comes().into_iter().for_each(|&ids| self.add(ids));
    }

    pub fn is(&self, result: Vec<[RowId; N]>, case: Arguments<'_>) {
        assert_eq!(self.combinations, result.into_iter().collect(), "{case}");
    }

    // What comes out is the difference, row for row, and every part of it from the first on is legal.
    pub fn check(
        before: Vec<[RowId; N]>,
        after: Vec<[RowId; N]>,
        input: usize,
        pairs: &[Pair],
        outs: Vec<Out<N>>,
        sides: S,
        case: Arguments<'_>,
    ) {
        let mut expected = difference(&before, &after, input, pairs);
        let mut told = outs.clone();
        expected.sort();
        told.sort();
        assert_eq!(told, expected, "{case}");
        let turn = |out: &Out<N>| match out {
            Out::Delete(_) => 0,
            Out::Update { .. } => 1,
            Out::Insert(_) => 2,
        };
        assert!(outs.is_sorted_by_key(turn), "{outs:?} {case}");
        let mut standing = Standing::new(before, sides);
        outs.into_iter().for_each(|out| standing.apply(out));
        standing.is(after, case);
    }
}

fn difference<const N: usize>(
    before: &[[RowId; N]],
    after: &[[RowId; N]],
    input: usize,
    pairs: &[Pair],
) -> Vec<Out<N>> {
    let new_of: BTreeMap<RowId, RowId> = pairs.iter().map(|pair| (pair.old, pair.new)).collect();
    let gone: Vec<_> = before.iter().filter(|ids| !after.contains(ids)).copied().collect();
    let mut come: Vec<_> = after.iter().filter(|ids| !before.contains(ids)).copied().collect();
    let mut outs = Vec::new();
    for old in gone {
        let mut new = old;
        new[input] = *new_of.get(&old[input]).filter(|_| !old[input].is_missing()).unwrap_or(&RowId::MISSING);
        match come.iter().position(|ids| *ids == new && !new[input].is_missing()) {
            Some(place) => outs.push(Out::Update { old, new: come.swap_remove(place) }),
            None => outs.push(Out::Delete(old)),
        }
    }
    outs.into_iter().chain(come.into_iter().map(Out::Insert)).collect()
}

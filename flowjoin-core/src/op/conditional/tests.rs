use std::collections::BTreeMap;

use super::*;
use crate::op::kernel::tests::{Lcg, Standing, changes, every_kinds, list, lists_up_to_two, runs};
use crate::op::product;

const GAP: RowId = RowId::MISSING;

// A truth table that is nowhere written down: of eight pairs, so many hold.
#[derive(Clone, Copy, Debug)]
struct Truth {
    seed: u64,
    eighths: usize,
}

impl Truth {
    fn holds<const N: usize>(self, step: usize, ids: &[RowId; N]) -> bool {
        let mut rng = Lcg(self.seed ^ step as u64);
        for id in ids {
            rng.0 ^= id.index() as u64 ^ (rng.below(1 << 20) as u64) << 7;
        }
        rng.below(1 << 10) % 8 < self.eighths
    }
}

// The definition, recomputed from all lists.
fn twin<const N: usize>(steps: &Steps<N>, lists: &[Vec<RowId>; N], truth: Truth) -> Vec<[RowId; N]> {
    let with = |p: &[RowId; N], step: usize, row: RowId| {
        let mut ids = *p;
        ids[step] = row;
        ids
    };
    let mut result: Vec<[RowId; N]> = lists[0].iter().map(|&row| with(&[GAP; N], 0, row)).collect();
    for (step, list) in lists.iter().enumerate().skip(1) {
        let kind = steps.kinds[step];
        let holds = |ids: &[RowId; N]| !steps.has_condition(step) || truth.holds(step, ids);
        let mut next = Vec::new();
        for p in &result {
            let matches = list.iter().map(|&row| with(p, step, row)).filter(holds).collect::<Vec<_>>();
            match (kind, matches.is_empty()) {
                (Kind::Required | Kind::Optional, false) => next.extend(matches),
                (Kind::Optional | Kind::NotExists, true) | (Kind::Exists, false) => next.push(*p),
                (Kind::Required | Kind::Exists, true) | (Kind::NotExists, false) => {}
            }
        }
        let shown = steps.kinds[..step].iter().filter(|kind| kind.shows());
        if kind.shows() && shown.copied().all(|kind| kind == Kind::Optional) {
            let unmet = list.iter().filter(|&&row| !result.iter().any(|p| holds(&with(p, step, row))));
            next.extend(unmet.map(|&row| with(&[GAP; N], step, row)));
        }
        result = next;
    }
    result
}

// Of each combination before a step its gap and its matches; of each row that can stand apart, itself and its matches.
fn sides<const N: usize>(steps: &Steps<N>, ids: &[RowId; N]) -> Vec<((usize, [RowId; N]), bool)> {
    let mut sides = Vec::new();
    for step in 1..N {
        let mut prefix = *ids;
        prefix[step..].fill(GAP);
        let is_apart = prefix == [GAP; N];
        if steps.kinds[step] == Kind::Optional && !is_apart {
            sides.push(((step, prefix), ids[step].is_missing()));
        }
        if steps.stands_apart(step) && !ids[step].is_missing() {
            let mut outer = [GAP; N];
            outer[step] = ids[step];
            sides.push(((N + step, outer), is_apart));
        }
    }
    sides
}

fn check<const N: usize>(steps: &Steps<N>, stay: &[Vec<RowId>; N], input: usize, pairs: &[Pair], truth: Truth) {
    let case = format_args!("{steps:?} {stay:?} {input} {pairs:?} {truth:?}");
    let mut asked: BTreeMap<(usize, [RowId; N]), usize> = BTreeMap::new();
    let mut holds = |step: usize, ids: &[RowId; N]| {
        let hidden = (0..step).all(|before| steps.kinds[before].shows() || ids[before].is_missing());
        let later = ids[step + 1..].iter().all(|id| id.is_missing());
        let prefix = ids[..step].iter().any(|id| !id.is_missing());
        assert!(hidden && later && prefix && !ids[step].is_missing(), "{step} {ids:?} {case}");
        assert!(steps.has_condition(step), "{step} {case}");
        *asked.entry((step, *ids)).or_default() += 1;
        truth.holds(step, ids)
    };
    let mut outs = Vec::new();
    change(steps, &runs(stay), input, pairs, &mut holds, &mut |out| outs.push(out));
    let [before, after] = changes::before_and_after(stay, input, pairs);
    let mut whole = Vec::new();
    let expected = twin(steps, &after, truth);
    result(steps, &runs(&after), &mut |step, ids| truth.holds(step, ids), &mut |ids| whole.push(*ids));
    Standing::new(whole, |_| vec![]).is(expected.clone(), case);
    assert!(N > 2 || asked.values().all(|&times| times == 1), "{asked:?} {case}");
    Standing::check(twin(steps, &before, truth), expected, input, pairs, outs, |ids| sides(steps, ids), case);
}

fn all_shapes<const N: usize>(truths: &[Truth]) {
    for kinds in every_kinds::<N>().into_iter().filter(|kinds| kinds[0].shows()) {
        for conditions in 0..1 << (N - 1) {
            let with = (1..N).filter(|input| conditions >> (input - 1) & 1 == 1);
            let steps = with.fold(Steps::of(kinds), Steps::on);
            for lists in lists_up_to_two::<N>() {
                for input in 0..N {
                    for pairs in changes::of_up_to_two() {
                        let truths = if conditions == 0 { &truths[..1] } else { truths };
                        truths.iter().for_each(|&truth| check(&steps, &lists, input, &pairs, truth));
                    }
                }
            }
        }
    }
}

#[test]
fn every_change_gives_the_difference_of_the_results_for_all_shapes_up_to_two_inputs() {
    let truths: Vec<Truth> = (0..40).map(|seed| Truth { seed, eighths: 2 + seed as usize % 5 }).collect();
    all_shapes::<1>(&truths);
    all_shapes::<2>(&truths);
}

#[test]
fn every_change_gives_the_difference_of_the_results_for_all_shapes_of_three_inputs() {
    all_shapes::<3>(&[Truth { seed: 5, eighths: 4 }]);
}

fn random_shapes<const N: usize>(cases: usize) {
    let mut rng = Lcg(N as u64);
    for seed in 0..cases as u64 {
        let mut kinds: [Kind; N] = std::array::from_fn(|_| rng.kind());
        if seed % 2 == 0 {
            // Rows that stand apart are the hard part, and rare by chance.
            let optional = 1 + rng.below(N - 1);
            kinds[..optional].fill(Kind::Optional);
        }
        if !kinds[0].shows() {
            kinds[0] = Kind::Required;
        }
        let mut steps = Steps::of(kinds);
        for input in (1..N).filter(|_| rng.below(4) > 0).collect::<Vec<_>>() {
            steps = steps.on(input);
        }
        let truth = Truth { seed, eighths: 1 + rng.below(6) };
        let stay = std::array::from_fn(|input| list(input, rng.below(5)));
        let pairs = changes::random(&mut rng, 4);
        check(&steps, &stay, rng.below(N), &pairs, truth);
    }
}

#[test]
fn every_change_gives_the_difference_of_the_results_for_random_shapes_up_to_five_inputs() {
    random_shapes::<3>(4_000);
    random_shapes::<4>(2_000);
    random_shapes::<5>(500);
}

#[test]
fn a_join_without_conditions_is_a_product_where_it_says_so() {
    for kinds in every_kinds::<4>().into_iter().filter(|kinds| kinds[0].shows()) {
        let steps = Steps::of(kinds);
        let truth = Truth { seed: 0, eighths: 8 };
        let differs = lists_up_to_two::<4>().into_iter().any(|lists| {
            let sorted = |mut result: Vec<[RowId; 4]>| {
                result.sort();
                result
            };
            sorted(twin(&steps, &lists, truth)) != sorted(product::tests::result(&kinds, &lists))
        });
        assert_eq!(steps.is_product(), !differs, "{kinds:?}");
    }
}

// How often the condition is asked when one row comes to a join of two inputs.
fn calls(kinds: [Kind; 2], rows: [usize; 2], input: usize, holds: impl Fn(&[RowId; 2]) -> bool) -> (usize, usize) {
    let lists = std::array::from_fn(|input| (0..rows[input]).map(|n| RowId::new(n as u32)).collect());
    let (mut calls, mut outs) = (0, 0);
    let mut counted = |_: usize, ids: &[RowId; 2]| {
        calls += 1;
        holds(ids)
    };
    let pairs = [Pair::added(RowId::new(1_000))];
    change(&Steps::of(kinds).on(1), &runs(&lists), input, &pairs, &mut counted, &mut |_| outs += 1);
    (calls, outs)
}

#[test]
fn a_row_asks_once_for_each_row_of_the_other_list_and_scans_for_the_partners_affected() {
    use Kind::{Exists, NotExists, Optional, Required};
    let all = |_: &[RowId; 2]| true;
    assert_eq!(calls([Required, Required], [50, 20], 1, all), (50, 50));
    assert_eq!(calls([Required, Required], [50, 20], 0, all), (20, 20));
    assert_eq!(calls([Required, Optional], [50, 20], 0, all), (20, 20));
    // Each of 50 partners has another match, which is found at once.
    assert_eq!(calls([Required, Optional], [50, 20], 1, all), (100, 50));
    assert_eq!(calls([Optional, Optional], [50, 20], 0, all), (40, 20));
    // One partner is affected: it is scanned to the end, and its gap filled.
    let one = |ids: &[RowId; 2]| ids == &[RowId::new(7), RowId::new(1_000)];
    assert_eq!(calls([Required, Optional], [50, 20], 1, one), (70, 2));
    assert_eq!(calls([Required, NotExists], [50, 20], 1, one), (70, 1));
    assert_eq!(calls([Required, Exists], [50, 20], 1, one), (70, 1));
    assert_eq!(calls([Required, Exists], [50, 20], 0, all), (1, 1));
    // Nothing can come of a row while a list that is needed is empty.
    assert_eq!(calls([Required, Required], [50, 0], 0, all), (0, 0));
}

#[test]
fn a_gap_goes_before_its_first_match_comes_and_an_updated_match_is_an_update() {
    let steps = Steps::of([Kind::Optional, Kind::Required]).on(1);
    let [left, old, new] = [1, 2, 3].map(RowId::new);
    let told = |pair: Pair, holds: fn(&[RowId; 2]) -> bool| {
        let mut outs = Vec::new();
        change(&steps, &[(&[left], &[]), (&[], &[])], 1, &[pair], &mut |_, ids| holds(ids), &mut |out| outs.push(out));
        outs
    };
    let update = Pair::updated(old, new);
    assert_eq!(told(update, |_| true), [Out::Update { old: [left, old], new: [left, new] }]);
    assert_eq!(told(update, |_| false), [Out::Update { old: [GAP, old], new: [GAP, new] }]);
    assert_eq!(told(update, |ids| ids[1].index() == 3), [Out::Delete([GAP, old]), Out::Insert([left, new])]);
    assert_eq!(told(update, |ids| ids[1].index() == 2), [Out::Delete([left, old]), Out::Insert([GAP, new])]);
}

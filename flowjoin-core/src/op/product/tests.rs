use super::*;
use crate::op::kernel::tests::{Standing, changes, every_kinds, lists_up_to_two, runs};

// The definition, recomputed from all lists.
pub(in crate::op) fn result<const N: usize>(kinds: &[Kind; N], lists: &[Vec<RowId>; N]) -> Vec<[RowId; N]> {
    let mut combinations: Vec<Vec<RowId>> = vec![vec![]];
    for input in 0..N {
        let padded = match (lists[input].is_empty(), kinds[input]) {
            (false, Kind::Required | Kind::Optional) => lists[input].clone(),
            (true, Kind::Optional | Kind::NotExists) | (false, Kind::Exists) => vec![RowId::MISSING],
            (true, Kind::Required | Kind::Exists) | (false, Kind::NotExists) => vec![],
        };
        let extend = |c: Vec<RowId>| padded.iter().map(move |&r| [c.clone(), vec![r]].concat()).collect::<Vec<_>>();
        combinations = combinations.into_iter().flat_map(extend).collect();
    }
    let real = combinations.into_iter().filter(|c| c.iter().any(|id| !id.is_missing()));
    real.map(|c| c.try_into().unwrap()).collect()
}

// A gap of an optional input, and rows of it.
fn sides<const N: usize>(kinds: &[Kind; N], ids: &[RowId; N]) -> Vec<((usize, [RowId; N]), bool)> {
    let optional = (0..N).filter(|&input| kinds[input] == Kind::Optional);
    optional.map(|input| ((input, [RowId::MISSING; N]), ids[input].is_missing())).collect()
}

fn check_step<const N: usize>(kinds: &[Kind; N], lists: &[Vec<RowId>; N], input: usize, enters: bool) {
    let row = RowId::new(99);
    let mut with_row = lists.clone();
    with_row[input].push(row);
    let (before, after) = if enters { (lists, &with_row) } else { (&with_row, lists) };
    let step = Step { input, row, enters, alone: lists[input].is_empty() };
    let mut others = lists.clone();
    others[input].clear();
    let mut standing = Standing::new(result(kinds, before), |ids| sides(kinds, ids));
    delta(&Shape::of(kinds), &runs(&others), step, &mut |adds, ids: &[RowId; N]| {
        standing.apply(if adds { Out::Insert(*ids) } else { Out::Delete(*ids) });
    });
    standing.is(result(kinds, after), format_args!("{kinds:?} {before:?} {step:?}"));
}

fn check_result<const N: usize>(kinds: &[Kind; N], lists: &[Vec<RowId>; N]) {
    let mut found = Vec::new();
    super::result(&Shape::of(kinds), &runs(lists), &mut |ids| found.push(*ids));
    let mut expected = result(kinds, lists);
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{kinds:?} {lists:?}");
}

// A result that is told so many combinations at a time is the same in the same order.
fn check_parts<const N: usize>(kinds: &[Kind; N], lists: &[Vec<RowId>; N]) {
    let (shape, lists) = (Shape::of(kinds), runs(lists));
    let mut whole = Vec::new();
    super::result(&shape, &lists, &mut |ids| whole.push(*ids));
    for part in 1..4 {
        let (mut found, mut place) = (Vec::new(), Some([0; N]));
        while let Some(from) = place {
            let until = found.len() + part;
            place = result_from(&shape, &lists, from, &mut |ids| {
                found.push(*ids);
                found.len() < until
            });
            assert!(found.len() <= until && (place.is_none() || found.len() == until));
        }
        assert_eq!(found, whole, "{kinds:?} {lists:?} {part}");
    }
}

fn check_change<const N: usize>(kinds: &[Kind; N], stay: &[Vec<RowId>; N], input: usize, pairs: &[Pair]) {
    let [before, after] = changes::before_and_after(stay, input, pairs);
    let mut outs = Vec::new();
    change(&Shape::of(kinds), &runs(stay), input, pairs, &mut |out| outs.push(out));
    let (before, after) = (result(kinds, &before), result(kinds, &after));
    let case = format_args!("{kinds:?} {stay:?} {input} {pairs:?}");
    Standing::check(before, after, input, pairs, outs, |ids| sides(kinds, ids), case);
}

fn all_shapes<const N: usize>() {
    for lists in lists_up_to_two::<N>() {
        for kinds in every_kinds::<N>() {
            check_result(&kinds, &lists);
            check_parts(&kinds, &lists);
            for input in 0..N {
                check_step(&kinds, &lists, input, true);
                check_step(&kinds, &lists, input, false);
                for pairs in changes::of_up_to_two() {
                    check_change(&kinds, &lists, input, &pairs);
                }
            }
        }
    }
}

#[test]
fn every_step_and_change_gives_the_difference_of_the_results_for_all_shapes_up_to_three_inputs() {
    all_shapes::<1>();
    all_shapes::<2>();
    all_shapes::<3>();
}

#[test]
fn every_step_gives_the_difference_of_the_results_for_four_inputs_that_are_required_or_optional() {
    for lists in lists_up_to_two::<4>() {
        for kinds in every_kinds::<4>().into_iter().filter(|kinds| kinds.iter().all(|kind| kind.shows())) {
            for input in 0..4 {
                check_step(&kinds, &lists, input, true);
                check_step(&kinds, &lists, input, false);
            }
        }
    }
}

#[test]
fn a_row_stands_alone_when_no_other_input_needs_one() {
    let shape = Shape::new(&[false, true, true]);
    assert!(shape.stands_alone(0) && !shape.stands_alone(1));
    assert_eq!(shape.required(), 0b001);
    let full = Shape::new(&[true, true]);
    assert!(full.stands_alone(0) && full.stands_alone(1));
    let anti = Shape::of(&[Kind::Required, Kind::NotExists]);
    assert!(anti.stands_alone(0) && !anti.stands_alone(1));
    assert_eq!((anti.required(), anti.forbidden(), anti.shown()), (0b01, 0b10, 0b01));
    let semi = Shape::of(&[Kind::Optional, Kind::Exists]);
    assert!(!semi.stands_alone(0) && !semi.stands_alone(1));
    assert_eq!((semi.required(), semi.forbidden(), semi.shown()), (0b10, 0b00, 0b01));
}

#[test]
fn a_shape_knows_the_kinds_that_it_was_made_of() {
    for kinds in every_kinds::<3>() {
        let shape = Shape::of(&kinds);
        assert_eq!([0, 1, 2].map(|input| shape.kind(input)), kinds);
        assert_eq!([0, 1, 2].map(|input| shape.is_optional(input)), kinds.map(|kind| kind == Kind::Optional));
    }
    assert_eq!(Shape::new(&[true, false]), Shape::of(&[Kind::Optional, Kind::Required]));
}

use super::*;
use crate::conformance::engine::{AlignmentView, Status};
use flowjoin_core::RowKind;
use serde_json::Value;

// `+I 1 a @5, -D 1 null`: kind, values, time.
fn rows(text: &str) -> Vec<OutRow> {
    let one = |text: &str| {
        let mut words = text.split_whitespace();
        let kind: RowKind = serde_json::from_value(Value::from(words.next().unwrap())).unwrap();
        let (times, values): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('@'));
        let cell = |word: &&str| Cell::from(&serde_json::from_str(word).unwrap_or(Value::from(*word)));
        OutRow { kind, row: values.iter().map(cell).collect(), ts: times.first().map(|t| t[1..].parse().unwrap()) }
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(one).collect()
}

fn judge(order: &str, changelog_check: bool) -> Judge {
    let text = format!(
        r#"{{"id":"x","operator":"o","order":"{order}","changelog_check":{changelog_check},"steps":[],
            "config":{{"inputs":[{{"fields":["k"]}},{{"fields":["v"]}}]}}}}"#
    );
    Judge::new(&serde_json::from_str(&text).unwrap())
}

fn verdict(judge: &mut Judge, expected: &str, got: &str) -> Result<(), &'static str> {
    let expected = Expected { out: rows(expected), ..Expected::default() };
    let got = Observed { out: rows(got), ..Observed::default() };
    judge.apply(&got.out).and_then(|()| judge.compare(&expected, &got)).map_err(|mismatch| mismatch.what)
}

#[test]
fn kinds_are_compared_by_sign_and_numbers_by_worth() {
    assert_eq!(verdict(&mut judge("exact", true), "+U 1 2.0", "+I 1.0 2"), Ok(()));
    assert_eq!(verdict(&mut judge("exact", true), "+I 1 2", "+I 1 3"), Err("out"));
    assert_eq!(verdict(&mut judge("exact", true), "+I 1 2", ""), Err("out"));
    assert_eq!(verdict(&mut judge("exact", true), "", "+I 1 2"), Err("out"));
}

#[test]
fn legal_sequences_with_the_same_net_are_the_same_answer() {
    let padded = "+I 1 null";
    for order in ["exact", "any"] {
        let after = |expected, got| {
            let mut judge = judge(order, true);
            verdict(&mut judge, padded, padded).unwrap();
            verdict(&mut judge, expected, got)
        };
        assert_eq!(after("-D 1 null, +I 1 a, +I 1 b", "-U 1 null, +I 1 b, +I 1 a"), Ok(()));
        assert_eq!(after("-D 1 null, +I 1 a", "-D 1 null, +I 1 b, -D 1 b, +I 1 a"), Ok(()));
        assert_eq!(after("-D 1 null, +I 1 a", "-D 1 null"), Err("out"));
        assert_eq!(after("-D 1 null, +I 1 a", "-D 1 null, +I 1 a, +I 1 a"), Err("out"));
    }
}

#[test]
fn nothing_is_taken_back_that_is_not_standing_whatever_the_order() {
    let both = "+I 1 a, -D 1 a";
    for order in ["exact", "any"] {
        assert_eq!(verdict(&mut judge(order, true), both, "-D 1 a, +I 1 a"), Err("changelog"));
        assert_eq!(verdict(&mut judge(order, true), "-D 2 a", "-D 2 a"), Err("changelog"));
    }
}

#[test]
fn without_a_legal_changelog_the_case_is_held_to_its_letter() {
    assert_eq!(verdict(&mut judge("exact", false), "-D 1 a", "-D 1 a"), Ok(()));
    assert_eq!(verdict(&mut judge("exact", false), "+I 1 a, +I 1 b", "+I 1 b, +I 1 a"), Err("out"));
    assert_eq!(verdict(&mut judge("any", false), "+I 1 a, +I 1 b", "+I 1 b, +I 1 a"), Ok(()));
    assert_eq!(verdict(&mut judge("any", false), "", "+I 1 b, -D 1 b"), Err("out"));
}

#[test]
fn padding_never_stands_beside_the_row_that_fills_it() {
    let after = |standing, got| {
        let mut judge = judge("any", true);
        verdict(&mut judge, standing, standing).unwrap();
        verdict(&mut judge, got, got)
    };
    assert_eq!(after("+I 1 null", "+I 1 a, -D 1 null"), Err("order of padding"));
    assert_eq!(after("+I 1 a", "+I 1 null, -D 1 a"), Err("order of padding"));
    assert_eq!(after("+I 1 null", "+I 2 a, -D 1 null, +I 1 a"), Ok(()));
    // Copies of one row take turns.
    assert_eq!(after("+I 1 null, +I 1 null", "-D 1 null, +I 1 a, -D 1 null, +I 1 a"), Ok(()));
}

#[test]
fn times_count_only_where_they_are_asserted() {
    assert_eq!(verdict(&mut judge("any", true), "+I 1 a", "+I 1 a @7"), Ok(()));
    assert_eq!(verdict(&mut judge("any", true), "+I 1 a @7", "+I 1 a"), Err("out"));
    assert_eq!(verdict(&mut judge("any", true), "+I 1 a @7, +I 1 a @8", "+I 1 a @8, +I 1 a @7"), Ok(()));
    assert_eq!(verdict(&mut judge("any", true), "+I 1 a @7, +I 1 a @7", "+I 1 a @8, +I 1 a @7"), Err("out"));
    assert_eq!(verdict(&mut judge("any", true), "+I 1 a @7, +I 1 a", "+I 1 a @8, +I 1 a @7"), Ok(()));
    assert_eq!(verdict(&mut judge("any", true), "+I 1 a @7", "+I 1 b @1, -D 1 b @1, +I 1 a @8"), Err("out"));
}

#[test]
fn the_other_parts_of_a_step_are_compared_where_they_are_asserted() {
    let judge = judge("any", true);
    let what = |expected: Expected, got: Observed| judge.compare(&expected, &got).map_err(|mismatch| mismatch.what);
    let late = |ts| vec![SideRow { row: vec![Cell::Null], ts }];
    let asked = || Expected { late: [late(None), vec![]], ..Expected::default() };
    assert_eq!(what(asked(), Observed { late: vec![late(Some(1))], ..Observed::default() }), Ok(()));
    assert_eq!(what(asked(), Observed::default()), Err("late left"));
    let unasked = Observed { late: vec![vec![], late(None)], ..Observed::default() };
    assert_eq!(what(Expected::default(), unasked), Err("late right"));

    let watermarks = |w: &[i64]| Observed { watermarks: w.to_vec(), ..Observed::default() };
    assert_eq!(what(Expected::default(), watermarks(&[5])), Ok(()));
    assert_eq!(what(Expected { watermarks: Some(vec![]), ..Expected::default() }, watermarks(&[5])), Err("watermark"));
    assert_eq!(what(Expected { watermarks: Some(vec![5]), ..Expected::default() }, watermarks(&[5])), Ok(()));

    let idle = Expected { statuses: Some(vec![Status::Idle]), ..Expected::default() };
    assert_eq!(what(idle, Observed::default()), Err("status"));
    let state = || Expected { state_rows: Some(vec![1, 0]), ..Expected::default() };
    assert_eq!(what(state(), Observed::default()), Err("state rows"));
    assert_eq!(what(state(), Observed { state_rows: Some(vec![0, 0]), ..Observed::default() }), Err("state rows"));
    let view = |max_allowed| Some(AlignmentView { max_allowed, paused: vec![] });
    let alignment = Expected { alignment: view(1), ..Expected::default() };
    assert_eq!(what(alignment.clone(), Observed { alignment: view(2), ..Observed::default() }), Err("alignment"));
    assert_eq!(what(alignment, Observed { alignment: view(1), ..Observed::default() }), Ok(()));
}

//! Regular and N-way joins and tables that go on after a crash, and what they tell the store: no more than has changed.

use expect_test::expect;
use flowjoin::io::TableChange;
use flowjoin::prelude::*;
use flowjoin::{EagerAfter, Final, Retract};

use super::kept_store::Kept;
use super::script::*;

#[test]
fn of_the_rows_of_a_join_only_keys_that_have_changed_are_told() {
    let mut kept = Kept::new(|flow| {
        let join = rows(flow, "a").join(rows(flow, "b").optional()).ttl(millis(10)).named("j");
        join.select(|a, b| format!("{} {}", a.name, name(b))).sink_to(sink("out"));
    });
    assert_eq!(kept.row("a", 1, 1).row("a", 2, 2).commit(), "1: +2 -0");
    assert_eq!(kept.commit(), "");
    assert_eq!(kept.row("b", 1, 3).commit(), "1: +1 -0");
    assert_eq!(kept.out(), "+I a1 -, +I a2 -, -D a1 -, +I a1 b3");
    // Both came at 0 by the clock of the machine, before the crashes, and leave at 10.
    assert_eq!(kept.clock(millis(9)).commit(), "");
    assert_eq!(kept.clock(millis(1)).commit(), "1: +0 -2");
    assert_eq!(kept.flow.figures("j").state_rows, [0, 0]);
    // What came and went in between is never told.
    assert_eq!(kept.row("a", 3, 4).clock(millis(10)).commit(), "");
    let figures = kept.flow.figures("j");
    assert_eq!(figures.accounts[0].rows, 3);
    assert!(figures.accounts.iter().all(flowjoin::Account::is_balanced));
}

#[test]
fn a_row_that_was_written_again_leaves_by_its_last_write_after_a_crash() {
    let mut kept = Kept::new(|flow| {
        let join = rows(flow, "a").join(rows(flow, "b")).ttl(millis(10)).on_expiry(Retract).named("j");
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    });
    kept.row("a", 1, 1).clock(millis(6)).row("a", 1, 1).row("b", 1, 2).commit();
    assert_eq!(kept.out(), "+I a1 b2, +I a1 b2");
    kept.clock(millis(9)).commit();
    assert_eq!(kept.out(), "");
    kept.clock(millis(1)).commit();
    assert_eq!(kept.out(), "-D a1 b2, -D a1 b2");
}

#[test]
fn gaps_that_wait_are_told_when_they_would_have_been() {
    let mut kept = Kept::new(|flow| {
        let (b, c) = (rows(flow, "b").optional(), rows(flow, "c").optional());
        let join =
            multi_join![rows(flow, "a"), b.emit(EagerAfter(millis(5))), c.emit(Final)].ttl(millis(20)).named("j");
        join.select(|a, b, c| format!("{} {} {}", a.name, name(b), name(c))).sink_to(sink("out"));
    });
    kept.row("a", 1, 1).row("c", 1, 1).row("a", 2, 2).clock(millis(3)).commit();
    kept.clock(millis(1)).commit();
    assert_eq!(kept.out(), "");
    // Beside `c` only the gap of `b` waits, for 5; without it that of `c` waits for the end of `a`.
    kept.clock(millis(1)).commit();
    assert_eq!(kept.out(), "+I a1 - c1");
    kept.row("b", 1, 3).commit();
    assert_eq!(kept.out(), "-D a1 - c1, +I a1 b3 c1");
    kept.clock(millis(15)).commit();
    assert_eq!(kept.out(), "+I a2 - -");
}

fn with_tables(flow: &Flow) {
    let users = flow.table::<Row>(flowjoin_testkit::TestSource::new("u")).named("j");
    users.changes().map(|row| row.name).sink_to(sink("out"));
}

#[test]
fn of_a_table_only_rows_that_have_changed_are_told() {
    let put = |key: u64, name: &str| {
        TableChange::Put(Row { key: Some(key), name: name.to_string(), at: EventTime::from_millis(1) })
    };
    let mut kept = Kept::new(with_tables);
    kept.flow.change_all::<Row>("u", vec![put(1, "ann"), put(2, "bob"), put(3, "cid"), TableChange::delete(Some(3))]);
    assert_eq!(kept.commit(), "1: +2 -0");
    kept.flow.change_all::<Row>("u", vec![put(2, "ben")]);
    assert_eq!((kept.commit().as_str(), kept.out().as_str()), ("1: +1 -0", "+I ann, +I bob, -U bob, +U ben"));
    kept.flow.change_all::<Row>("u", vec![TableChange::delete(Some(1)), put(4, "dan"), TableChange::delete(Some(4))]);
    assert_eq!((kept.commit().as_str(), kept.out().as_str()), ("1: +0 -1", "-D ann"));
    expect!["rows 8, matched 8"].assert_eq(&format!(
        "rows {}, matched {}",
        kept.flow.figures("j").accounts[0].rows,
        kept.flow.figures("j").accounts[0].matched
    ));
}

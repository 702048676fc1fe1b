//! Window joins that go on after a crash, and what they tell the store: no more than has changed.

use flowjoin::prelude::*;
use flowjoin_testkit::crashing;

use super::script::*;
use super::{kept_store, window};

struct Kept(kept_store::Kept);

impl Kept {
    fn new(build: impl Fn(&Flow) + 'static) -> Kept {
        Kept(kept_store::Kept::new(build))
    }

    fn row(&mut self, source: &str, key: u64, at: i64) -> &mut Kept {
        self.0.row(source, key, at);
        self
    }

    fn time(&mut self, at: i64) -> &mut Kept {
        self.0.time("a", at).time("b", at);
        self
    }

    // How many keys got a value in this commit, and how many lost theirs. What comes out after a crash is the same.
    fn commit(&mut self) -> (usize, usize) {
        self.0.commit();
        let seen = self.0.seen.lock().expect("no test fails while it looks");
        let puts = seen.changes.iter().filter(|(_, _, puts)| *puts).count();
        (puts, seen.changes.len() - puts)
    }
}

#[test]
fn all_that_windows_say_they_say_with_a_crash_after_each_step() {
    crashing(|| {
        window::a_window_fires_when_the_watermark_reaches_its_end_and_then_its_rows_are_late();
        window::windows_at_the_ends_of_time_are_as_all_others();
        window::with_sliding_windows_a_pair_comes_once_for_each_common_one();
        window::rows_of_any_input_make_a_session_longer_and_bridge_two();
        window::a_late_row_that_is_allowed_says_what_it_changes_and_no_more();
        window::sessions_that_have_fired_and_become_one_say_the_difference();
        window::any_of_several_inputs_may_be_missing_and_a_null_key_is_alone();
        window::existence_is_asked_of_the_window();
        window::a_gap_is_taken_back_with_the_window_of_the_session_that_it_was_told_with();
        window::gaps_of_sessions_that_are_bridged_are_taken_back_each_with_its_window();
        window::a_gap_that_is_told_again_is_taken_back_with_the_window_of_the_second_time();
    });
}

#[test]
fn of_rows_in_windows_only_what_has_changed_is_told() {
    let mut kept = Kept::new(|flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b").optional()).tumbling(millis(10)).named("j");
        let join = join.allowed_lateness(millis(5));
        join.select(|a, b| format!("{} {}", a.name, name(b))).sink_to(sink("out"));
    });
    assert_eq!(kept.row("a", 1, 1).row("a", 2, 2).commit(), (2, 0));
    assert_eq!(kept.commit(), (0, 0));
    // The window fires, and nothing else is known of its rows by that.
    assert_eq!(kept.time(10).commit(), (0, 0));
    // A late row comes, and the other has met it.
    assert_eq!(kept.row("b", 1, 3).commit(), (2, 0));
    assert_eq!(kept.row("b", 1, 4).commit(), (1, 0));
    // What came and went is not told of; neither is what it met.
    assert_eq!(kept.row("a", 2, 11).row("b", 2, 12).time(25).commit(), (0, 4));
    assert_eq!(kept.0.flow.text("out").lines().count(), 6);
    let figures = kept.0.flow.figures("j");
    assert_eq!((figures.accounts[0].matched, figures.accounts[0].unmatched), (2, 1));
    assert_eq!(figures.accounts[1].matched, 3);
}

#[test]
fn a_row_whose_windows_were_over_before_the_crash_is_late_after_it() {
    let mut kept = Kept::new(|flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).sliding(millis(10), millis(5)).named("j");
        let (late, _) = join.late();
        sink_late(late, "late");
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    });
    assert_eq!(kept.row("b", 1, 8).time(10).commit(), (1, 0));
    // It has fired once, and is in one window more; a row is late where all of its windows have fired.
    assert_eq!(kept.row("a", 1, 4).row("a", 1, 5).commit(), (1, 0));
    assert_eq!(kept.0.flow.text("late"), "+I a4 behind 10");
    // The pair has met when the window fires, and goes with it.
    assert_eq!(kept.time(15).commit(), (0, 2));
    assert_eq!(kept.0.flow.text("out"), "+I a5 b8");
}

#[test]
fn windows_fire_in_the_order_in_which_keys_had_come() {
    let mut kept = Kept::new(|flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).sliding(millis(10), millis(5)).named("j");
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    });
    let keys: Vec<u64> = (0..20).map(|key| key * 7 % 20).collect();
    for (&key, at) in keys.iter().zip(5..) {
        kept.row("a", key, at % 5 + 5).row("b", key, at % 5 + 5);
        assert_eq!(kept.commit(), (2, 0));
    }
    // Each has a name by its time alone, of which four have the same.
    kept.time(10);
    let pair = |at: i64| format!("+I a{at} b{at}");
    let expected: Vec<String> = (5..25).map(|at| pair(at % 5 + 5)).collect();
    assert_eq!(kept.0.flow.text("out"), expected.join("\n"));
    assert_eq!(kept.0.flow.figures("j").emitted, 20);
    assert_eq!((kept.commit(), kept.0.flow.figures("j").emitted), ((40, 0), 20));
}

#[test]
fn what_came_out_of_a_session_is_taken_back_by_the_longer_one_after_a_crash() {
    let mut kept = Kept::new(|flow: &Flow| {
        let join = rows(flow, "a").optional().window_join(rows(flow, "b").optional()).session(millis(5)).named("j");
        let join = join.allowed_lateness(millis(100));
        join.select(|a, b| format!("{} {}", name(a), name(b))).sink_to(sink("out"));
    });
    kept.row("a", 1, 0).row("b", 1, 8).time(10).commit();
    assert_eq!(kept.0.flow.text("out"), "+I a0 -");
    // One that has fired goes into one that has not.
    assert_eq!(kept.row("a", 1, 4).commit(), (1, 1));
    kept.time(13);
    assert_eq!(kept.0.flow.text("out"), "-D a0 -\n+I a0 b8\n+I a4 b8");
}

#[test]
fn a_session_is_told_whole_when_it_changes_and_under_one_number() {
    let mut kept = Kept::new(|flow: &Flow| {
        let join = rows(flow, "a").optional().window_join(rows(flow, "b").optional()).session(millis(5)).named("j");
        let join = join.allowed_lateness(millis(100));
        join.select(|a, b| format!("{} {}", name(a), name(b))).sink_to(sink("out"));
    });
    assert_eq!(kept.row("a", 1, 10).row("b", 1, 18).row("b", 2, 18).commit(), (3, 0));
    assert_eq!(kept.row("a", 1, 9).row("b", 1, 7).commit(), (1, 0));
    assert_eq!(kept.commit(), (0, 0));
    assert_eq!(kept.time(30).commit(), (3, 0));
    // Time alone that makes nothing fire or go tells nothing.
    assert_eq!(kept.time(40).commit(), (0, 0));
    // Two become one.
    assert_eq!(kept.row("a", 1, 14).commit(), (1, 1));
    // One that opens again and is bridged within an epoch.
    assert_eq!(kept.row("a", 2, 22).row("a", 2, 26).commit(), (1, 0));
    assert_eq!(kept.time(200).commit(), (0, 2));
    let figures = kept.0.flow.figures("j");
    assert_eq!(figures.accounts.iter().map(|account| account.matched).collect::<Vec<_>>(), [5, 3]);
    assert_eq!(figures.state_rows, [0, 0]);
}

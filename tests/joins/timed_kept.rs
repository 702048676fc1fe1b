//! Interval, temporal and snapshot joins that go on after a crash, and what they tell the store: no more than has changed.

use expect_test::expect;
use flowjoin::prelude::*;
use flowjoin::{EagerAfter, Loaded, Progress};
use flowjoin_core::ProcTime;
use flowjoin_testkit::{TestFlow, crashing};

use super::kept_store::Kept;
use super::script::*;
use super::{interval, interval_kinds, snapshot, temporal};

#[test]
fn all_that_interval_joins_say_they_say_with_a_crash_after_each_step() {
    crashing(|| {
        interval::a_row_leaves_when_its_partners_could_only_be_late_and_comes_out_once();
        interval::end_of_input_closes_every_interval();
        interval::the_watermark_of_the_result_waits_for_rows_that_may_still_come_out_padded();
        interval::a_null_key_comes_out_padded_at_once_where_the_other_side_is_optional();
        interval::negative_times_and_the_earliest_are_ordinary_times();
        interval::the_latest_times_are_ordinary_times();
        interval::a_row_whose_partners_could_only_be_late_is_joined_and_not_kept();
        interval_kinds::a_semi_join_gives_a_row_once_with_its_first_partner();
        interval_kinds::a_row_of_a_semi_join_is_as_old_as_the_earliest_partner_that_waited_for_it();
        interval_kinds::an_anti_join_gives_a_row_once_when_no_partner_can_come_any_more();
        interval_kinds::an_eager_gap_is_told_at_once_and_taken_back_by_the_first_partner();
        interval_kinds::a_delay_that_is_over_after_the_interval_tells_nothing_twice();
        interval_kinds::a_pair_has_to_fulfil_the_condition_and_unknown_is_no_match();
    });
}

#[test]
fn all_that_temporal_joins_say_they_say_with_a_crash_after_each_step() {
    crashing(|| {
        temporal::a_row_without_a_version_says_why();
        temporal::a_late_version_serves_what_comes_after_it_and_never_hides_a_newer_one();
        temporal::a_version_ends_when_it_has_been_kept_for_its_time();
        temporal::late_versions_correct_what_was_said_as_long_as_that_was_asked_for();
        temporal::what_can_be_corrected_comes_out_unmatched_when_it_no_longer_can();
        temporal::the_ends_of_time_are_ordinary_times();
    });
}

#[test]
fn all_that_snapshot_joins_say_they_say_with_a_crash_after_each_step() {
    crashing(|| {
        snapshot::a_row_meets_what_stands_when_it_arrives_whatever_the_times();
        snapshot::rows_wait_until_the_table_has_caught_up();
        snapshot::rows_wait_until_the_watermark_of_the_table_has_come_so_far();
        snapshot::rows_wait_until_the_table_is_quiet();
        snapshot::rows_of_a_changelog_are_a_bag();
    });
}

fn delayed(flow: &Flow) {
    let right = rows(flow, "b").optional().emit(EagerAfter(secs(1)));
    let join = rows(flow, "a").interval_join(right).between(-millis(10), millis(10)).named("j");
    join.select(|a, b| format!("{} {}", a.name, name(b))).sink_to(sink("out"));
}

// A delay goes on while there is no process: its end is a time of the clock. The gap beside 1 stands before the crash,
// that beside 2 is due behind it.
#[test]
fn a_gap_stands_or_waits_after_a_crash_as_before() {
    crashing(|| {
        check(
            delayed,
            "a 1 x @100
             clock 600ms
             a 2 y @101
             clock 400ms
             b 1 s @104
             clock 600ms
             b 2 t @105
             a 3 z @106
             clock 1s
             wm 200
             account j",
            expect![[r#"
                a 1 x @100
                clock 600ms
                a 2 y @101
                clock 400ms
                  out +I x - @100
                b 1 s @104
                  out -D x - @104
                  out +I x s @104
                clock 600ms
                  out +I y - @101
                b 2 t @105
                  out -D y - @105
                  out +I y t @105
                a 3 z @106
                clock 1s
                  out +I z - @106
                wm 200
                account j
                  a: rows 3, matched 2, unmatched 1
                  b: rows 2, matched 2"#]],
        );
    });
}

#[test]
fn an_interval_join_tells_what_has_changed_and_no_more() {
    let mut kept = Kept::new(delayed);
    kept.row("a", 1, 100).row("b", 1, 105);
    assert_eq!(kept.commit(), "1: +1 -0");
    assert_eq!(kept.commit(), "", "nothing has come since");
    // A row that is closed within the epoch leaves nothing behind, and the key with it that was sealed.
    kept.row("a", 2, 101).row("a", 3, 130).time("a", 120).time("b", 120);
    assert_eq!(kept.commit(), "1: +1 -1");
    assert_eq!(kept.out(), "+I a100 b105, +I a101 -");
    kept.clock(secs(1));
    assert_eq!((kept.commit().as_str(), kept.out().as_str()), ("1: +1 -0", "+I a130 -"), "a gap has been told");
    assert_eq!(kept.commit(), "");
    kept.time("a", 200).time("b", 200);
    assert_eq!(kept.commit(), "1: +0 -1");
}

// No row has come since the crash by which the join could see who reads what it sends.
#[test]
fn the_watermark_waits_after_a_crash_for_rows_that_may_come_out_unmatched() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-millis(10), millis(10)).named("j");
        let (out, (left, _)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, b.name));
        out.sink_to(sink("out"));
        sink_unmatched(left, "alone");
    };
    crashing(|| {
        check(
            flow,
            "a 1 x @100
             b 2 y @101
             wm 105
             reached out
             reached alone
             wm 112
             reached alone",
            expect![[r#"
                a 1 x @100
                b 2 y @101
                wm 105
                reached out
                  out 100
                reached alone
                  alone 100
                wm 112
                  alone +I x interval_closed @100
                reached alone
                  alone 112"#]],
        );
    });
}

// The row is met by one that is not held, as the watermark has gone too far for others to meet that one.
#[test]
fn a_row_that_is_met_by_one_that_does_not_stay_has_changed() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-millis(10), -millis(5)).named("j");
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    };
    let mut kept = Kept::new(flow);
    kept.row("b", 1, 93).time("a", 96).time("b", 96);
    assert_eq!(kept.commit(), "1: +1 -0");
    kept.row("a", 1, 100);
    assert_eq!((kept.commit().as_str(), kept.out().as_str()), ("1: +1 -0", "+I a100 b93"));
    kept.row("a", 2, 100);
    assert_eq!(kept.commit(), "", "it has met none");
}

fn corrected(flow: &Flow) {
    let join = rows(flow, "a").temporal_join(table(flow, "t").optional()).named("j").correct_late(millis(50));
    join.select(|a, t| format!("{} {}", a.name, name(t))).sink_to(sink("out"));
}

#[test]
fn a_probe_is_told_to_the_store_once_whatever_becomes_of_it() {
    let mut kept = Kept::new(corrected);
    kept.put(1, 10).row("a", 1, 20).row("a", 1, 30);
    assert_eq!(kept.commit(), "1: +1 -0, 2: +2 -0");
    assert_eq!(kept.commit(), "");
    // One of them is told: that its version has served is all that is new.
    kept.time("a", 25).time("t", 25);
    assert_eq!(kept.commit(), "1: +1 -0");
    // It is corrected, by a version that comes late.
    kept.put(1, 15);
    assert_eq!(kept.commit(), "1: +1 -0");
    // It leaves, and the older version with it; and so does one of three that have come since the last commit.
    kept.row("a", 1, 26).row("a", 1, 28).row("a", 1, 90).time("a", 77).time("t", 77);
    assert_eq!(kept.commit(), "1: +1 -0, 2: +2 -1");
    assert_eq!(kept.commit(), "");
    kept.flow.end_all();
    assert_eq!(kept.commit(), "2: +0 -3");
    let told = "+I a20 t10, -U a20 t10, +U a20 t15, +I a26 t15, +I a28 t15, +I a30 t15, +I a90 t15";
    assert_eq!(kept.out(), told);
}

#[test]
fn probes_that_came_and_went_within_an_epoch_are_not_told_to_the_store() {
    let mut kept = Kept::new(|flow| {
        let join = rows(flow, "a").temporal_join(table(flow, "t").optional()).named("j");
        join.select(|a, t| format!("{} {}", a.name, name(t))).sink_to(sink("out"));
    });
    kept.row("a", 1, 20).row("a", 2, 20).time("a", 21).time("t", 21);
    assert_eq!(kept.commit(), "");
    kept.row("a", 1, 30);
    assert_eq!(kept.commit(), "2: +1 -0");
    kept.row("a", 1, 31).time("a", 32).time("t", 32);
    assert_eq!(kept.commit(), "2: +0 -1");
}

fn loading(flow: &Flow) {
    let loaded = Loaded::caught_up().or_quiet_for(secs(10));
    let join = rows(flow, "a").snapshot_join(table(flow, "t").optional()).named("j").after_load(loaded);
    join.select(|a, t| format!("{} {}", a.name, name(t))).sink_to(sink("out"));
}

#[test]
fn probes_that_wait_for_a_table_are_told_to_the_store_once_each() {
    let mut kept = Kept::new(loading);
    kept.put(1, 0).row("a", 1, 20).row("a", 2, 21);
    assert_eq!(kept.commit(), "1: +1 -0, 2: +2 -0");
    assert_eq!(kept.commit(), "");
    kept.row("a", 2, 22);
    assert_eq!(kept.commit(), "2: +1 -0");
    // The table has been loaded: all that wait leave at once, in their order, and its row has met one.
    kept.row("a", 1, 23).flow.say("t", Progress::Idle);
    assert_eq!(kept.out(), "+I a20 t0, +I a21 -, +I a22 -, +I a23 t0");
    assert_eq!(kept.commit(), "1: +1 -0, 2: +0 -3");
    kept.row("a", 1, 24);
    assert_eq!((kept.commit().as_str(), kept.out().as_str()), ("", "+I a24 t0"));
}

#[test]
fn the_time_without_a_process_is_no_time_in_which_a_table_is_quiet() {
    let mut kept = Kept::new(loading);
    kept.row("a", 1, 20).clock(secs(7));
    kept.commit();
    let store = kept.seen.lock().expect("no test fails while it looks").store.clone();
    let mut later = TestFlow::new(loading);
    later.set_processing(ProcTime::from_millis(3_600_000));
    let mut kept = Kept::on(later, store);
    kept.clock(millis(2_999));
    assert_eq!(kept.out(), "");
    kept.clock(millis(1));
    assert_eq!(kept.out(), "+I a20 -");
}

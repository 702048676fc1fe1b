//! Temporal joins: which version a row meets, when it comes out, and what becomes of those left alone, late or too old.

use super::script::*;
use expect_test::expect;
use flowjoin::io::{Patch, TableChange};
use flowjoin::prelude::*;
use flowjoin_testkit::{TestFlow, TestSink, TestSource};

fn told(probe: &Row, version: Option<&Row>) -> String {
    format!("{} {}", probe.name, name(version))
}

fn inner(flow: &Flow) {
    let join = rows(flow, "a").temporal_join(table(flow, "t")).named("j");
    join.late().map(|late| format!("{} behind {}", late.row.name, late.watermark.as_millis())).sink_to(sink("late"));
    let (out, alone) = join.select_with_unmatched(|a, t| told(a, Some(t)));
    out.sink_to(sink("out"));
    sink_unmatched(alone, "alone");
}

fn left(flow: &Flow) {
    let join = rows(flow, "a").temporal_join(table(flow, "t").optional()).named("j");
    join.select(told).sink_to(sink("out"));
}

#[test]
fn a_row_meets_the_newest_version_at_or_before_its_time_once_all_of_them_have_come() {
    check(
        inner,
        "put t 1 v10 @10, 1 v20 @20
         a 1 p20 @20, 1 p19 @19, 1 p10 @10
         wm a 21
         wm t 20
         wm t 21
         reached out
         put t 1 v30 @30
         a 1 p29 @29, 1 p30 @30
         wm 31
         account j",
        expect![[r#"
            put t 1 v10 @10, 1 v20 @20
            a 1 p20 @20, 1 p19 @19, 1 p10 @10
            wm a 21
            wm t 20
              out +I p10 v10 @10
              out +I p19 v10 @19
            wm t 21
              out +I p20 v20 @20
            reached out
              out 21
            put t 1 v30 @30
            a 1 p29 @29, 1 p30 @30
            wm 31
              out +I p29 v20 @29
              out +I p30 v30 @30
            account j
              a: rows 5, matched 5
              t: rows 3, matched 3"#]],
    );
}

#[test]
fn versions_of_one_batch_are_told_apart_and_may_come_in_any_order() {
    check(
        inner,
        "put t 1 v30 @30, 1 v10 @10, 1 v20 @20, 1 w20 @20
         a 1 p15 @15, 1 p25 @25, 1 p35 @35
         end",
        expect![[r#"
            put t 1 v30 @30, 1 v10 @10, 1 v20 @20, 1 w20 @20
            a 1 p15 @15, 1 p25 @25, 1 p35 @35
            end
              out +I p15 v10 @15
              out +I p25 w20 @25
              out +I p35 v30 @35"#]],
    );
}

#[test]
pub fn a_row_without_a_version_says_why() {
    check(
        inner,
        "put t 1 v10 @10
         a 1 early @9, 2 unknown @10, - null @10
         del t 1 @20
         a 1 seen @19, 1 gone @20
         put t 1 back @30
         a 1 again @30
         end
         account j",
        expect![[r#"
            put t 1 v10 @10
            a 1 early @9, 2 unknown @10, - null @10
              alone +I null null_key @10
            del t 1 @20
            a 1 seen @19, 1 gone @20
            put t 1 back @30
            a 1 again @30
            end
              out +I seen v10 @19
              out +I again back @30
              alone +I unknown never_seen @10
              alone +I early no_version @9
              alone +I gone deleted @20
            account j
              a: rows 6, matched 2, unmatched 3, null_key 1, of these never seen 1, of these without version 1
              t: rows 3, matched 3"#]],
    );
}

#[test]
fn with_an_optional_table_each_row_comes_out_once() {
    check(
        left,
        "put t 1 v10 @10, - nothing @1
         a 1 early @9, 2 unknown @10, - null @10, 1 seen @11
         wm 10
         wm 12
         put t 2 late @5
         a 2 now @12
         end
         account j",
        expect![[r#"
            put t 1 v10 @10, - nothing @1
            a 1 early @9, 2 unknown @10, - null @10, 1 seen @11
              out +I null - @10
            wm 10
              out +I early - @9
            wm 12
              out +I unknown - @10
              out +I seen v10 @11
            put t 2 late @5
            a 2 now @12
            end
              out +I now late @12
            account j
              a: rows 5, matched 2, unmatched 2, null_key 1, of these never seen 1, of these without version 1
              t: rows 3, matched 1, late 1, null_key 1"#]],
    );
}

#[test]
pub fn a_late_version_serves_what_comes_after_it_and_never_hides_a_newer_one() {
    check(
        inner,
        "put t 1 v10 @10
         wm 20
         a 1 p25 @25
         put t 1 w15 @15, 1 w5 @5
         wm 26
         a 1 p20 @20, 1 p30 @30
         del t 1 @26
         put t 1 w25 @25
         end
         account j",
        expect![[r#"
            put t 1 v10 @10
            wm 20
            a 1 p25 @25
            put t 1 w15 @15, 1 w5 @5
            wm 26
              out +I p25 w15 @25
            a 1 p20 @20, 1 p30 @30
              late +I p20 behind 26 @20
            del t 1 @26
            put t 1 w25 @25
            end
              alone +I p30 deleted @30
            account j
              a: rows 3, matched 1, unmatched 1, late 1
              t: rows 5, matched 1, unmatched 1, late 3"#]],
    );
}

#[test]
fn a_quiet_table_does_not_hold_the_rows_up() {
    check(
        inner,
        "put t 1 v10 @10
         a 1 p50 @50
         wm a 60
         idle t
         wake t
         a 1 p70 @70
         put t 1 v55 @55
         wm a 80
         wm t 80",
        expect![[r#"
            put t 1 v10 @10
            a 1 p50 @50
            wm a 60
            idle t
              out +I p50 v10 @50
            wake t
            a 1 p70 @70
            put t 1 v55 @55
            wm a 80
            wm t 80
              out +I p70 v55 @70"#]],
    );
}

#[test]
pub fn a_version_ends_when_it_has_been_kept_for_its_time() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").temporal_join(table(flow, "t").optional()).named("j").keep_versions(millis(10));
        join.select(told).sink_to(sink("out"));
    };
    check(
        flow,
        "put t 1 v10 @10
         a 1 p19 @19, 1 p20 @20
         wm 21
         a 1 p21 @21
         wm 22
         account j",
        expect![[r#"
            put t 1 v10 @10
            a 1 p19 @19, 1 p20 @20
            wm 21
              out +I p19 v10 @19
              out +I p20 - @20
            a 1 p21 @21
            wm 22
              out +I p21 - @21
            account j
              a: rows 3, matched 1, unmatched 2, of these never seen 1, of these without version 1
              t: rows 1, matched 1"#]],
    );
}

fn corrected(flow: &Flow) {
    let join = rows(flow, "a").temporal_join(table(flow, "t")).named("j").correct_late(millis(10));
    let (out, alone) = join.select_with_unmatched(|a, t| told(a, Some(t)));
    out.sink_to(sink("out"));
    sink_unmatched(alone, "alone");
}

#[test]
pub fn late_versions_correct_what_was_said_as_long_as_that_was_asked_for() {
    check(
        corrected,
        "put t 1 v10 @10
         a 1 p20 @20, 1 p25 @25, 2 q20 @20
         wm 26
         reached out
         put t 1 w21 @21
         put t 2 w0 @0
         del t 1 @15
         wm 30
         put t 1 x20 @20
         wm 31
         reached out
         put t 1 y20 @20
         wm 36
         put t 1 z22 @22
         account j",
        expect![[r#"
            put t 1 v10 @10
            a 1 p20 @20, 1 p25 @25, 2 q20 @20
            wm 26
              out +I p20 v10 @20
              out +I p25 v10 @25
            reached out
              out 20
            put t 1 w21 @21
              out -U p25 v10 @25
              out +U p25 w21 @25
            put t 2 w0 @0
              out +I q20 w0 @20
            del t 1 @15
              out -D p20 v10 @20
            wm 30
            put t 1 x20 @20
              out +I p20 x20 @20
            wm 31
            reached out
              out 25
            put t 1 y20 @20
            wm 36
            put t 1 z22 @22
            account j
              a: rows 3, matched 3
              t: rows 7, matched 1, late 6"#]],
    );
}

#[test]
pub fn what_can_be_corrected_comes_out_unmatched_when_it_no_longer_can() {
    check(
        corrected,
        "put t 1 v10 @10
         a 1 p20 @20, 2 q20 @20
         wm 21
         del t 1 @20
         wm 30
         wm 31
         reached out
         account j",
        expect![[r#"
            put t 1 v10 @10
            a 1 p20 @20, 2 q20 @20
            wm 21
              out +I p20 v10 @20
            del t 1 @20
              out -D p20 v10 @20
            wm 30
            wm 31
              alone +I q20 never_seen @20
              alone +I p20 deleted @20
            reached out
              out 31
            account j
              a: rows 2, unmatched 2, of these never seen 1
              t: rows 2, matched 1, late 1"#]],
    );
}

#[test]
fn facts_make_a_table_of_versions() {
    let flow = |flow: &Flow| {
        let facts = flow.stream::<Row>(TestSource::new("f"));
        let join = rows(flow, "a").temporal_join(facts.latest_by_key()).named("j");
        join.select(|a, f| told(a, Some(f))).sink_to(sink("out"));
    };
    check(
        flow,
        "f 1 v10 @10, 1 v20 @20, - nothing @1
         a 1 p15 @15, 1 p20 @20
         end
         account j",
        expect![[r#"
            f 1 v10 @10, 1 v20 @20, - nothing @1
            a 1 p15 @15, 1 p20 @20
            end
              out +I p15 v10 @15
              out +I p20 v20 @20
            account j
              a: rows 2, matched 2
              f: rows 3, matched 2, null_key 1"#]],
    );
}

#[test]
pub fn the_ends_of_time_are_ordinary_times() {
    check(
        left,
        "put t 1 first @min, 1 last @9223372036854775806
         a 1 p @min, 1 q @0, 1 r @9223372036854775806
         wm 1
         wm 2
         end",
        expect![[r#"
            put t 1 first @min, 1 last @9223372036854775806
            a 1 p @min, 1 q @0, 1 r @9223372036854775806
            wm 1
              out +I p first @-9223372036854775808
              out +I q first @0
            wm 2
            end
              out +I r last @9223372036854775806"#]],
    );
}

#[test]
fn a_row_that_is_told_in_part_is_a_version_of_its_own_and_all_can_be_deleted_at_once() {
    let mut t = TestFlow::parallel(4, |flow| {
        let versions = flow.table::<Row>(TestSource::new("t").with_patches());
        rows(flow, "a").temporal_join(versions.optional()).select(told).sink_to(sink("out"));
    });
    let row = |name: &str, at: i64| Row { key: Some(1), name: name.to_string(), at: EventTime::from_millis(at) };
    let patch = Patch::new(|before: Option<&Row>| match before {
        Some(before) => Ok(Row { at: EventTime::from_millis(20), name: format!("{}+", before.name), ..before.clone() }),
        None => Err("there is nothing to patch".to_string()),
    });
    let at = |time: i64| Some(EventTime::from_millis(time));
    t.change_all(
        "t",
        vec![
            TableChange::Put(row("v10", 10)),
            // The row says itself from when on it holds.
            TableChange::Patch { key: Some(1), time: at(99), patch: Box::new(patch.clone()) },
            TableChange::Patch { key: Some(2), time: at(99), patch: Box::new(patch) },
            TableChange::Truncate { time: at(30) },
        ],
    );
    assert_eq!(t.take_bad().len(), 1, "there is no row of the second key");
    t.send_all("a", vec![row("p19", 19), row("p20", 20), row("p30", 30)]);
    t.end_all();
    assert_eq!(t.text("out"), "+I p19 v10\n+I p20 v10+\n+I p30 -");
}

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = at)]
struct Dated {
    #[key]
    id: u64,
    at: EventTime,
}

// The clock of the test stands at 0, and rows may be a day ahead of it.
#[test]
fn a_delete_too_far_ahead_of_the_clock_is_a_bad_record_as_a_row_is() {
    let far = EventTime::from_millis(1_700_000_000_000_000);
    let changes = [
        TableChange::Delete { key: 1, time: Some(far), row: None },
        TableChange::Truncate { time: Some(far) },
        TableChange::Put(Dated { id: 1, at: far }),
    ];
    for change in changes {
        let mut t = TestFlow::new(|flow| {
            flow.table::<Dated>(TestSource::new("dated")).sink_to(TestSink::new("out"));
        });
        t.put("dated", Dated { id: 1, at: EventTime::from_millis(1_000) });
        assert_eq!(t.text("out"), "+I id 1, at 1970-01-01T00:00:01.000Z");
        t.change_all("dated", vec![change.clone()]);
        let bad = t.take_bad();
        assert!(matches!(&bad[..], [bad] if bad.reason.contains("too far ahead of the clock")), "{change:?}: {bad:?}");
        assert_eq!((t.text("out"), t.figures("dated").accounts[0].bad), (String::new(), 0), "{change:?}");
    }
}

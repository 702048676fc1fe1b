//! Snapshot joins: each row with what stands when it arrives, or when the table has been loaded.

use super::script::*;
use expect_test::expect;
use flowjoin::Loaded;
use flowjoin::prelude::*;

fn inner(flow: &Flow) {
    let join = rows(flow, "a").snapshot_join(table(flow, "t")).named("j");
    join.late().map(|late| format!("{} behind {}", late.row.name, late.watermark.as_millis())).sink_to(sink("late"));
    let (out, alone) = join.select_with_unmatched(|a, t| format!("{} {}", a.name, t.name));
    out.sink_to(sink("out"));
    sink_unmatched(alone, "alone");
}

fn left(flow: &Flow) {
    let join = rows(flow, "a").snapshot_join(table(flow, "t").optional()).named("j");
    join.select(|a, t| format!("{} {}", a.name, name(t))).sink_to(sink("out"));
}

#[test]
pub fn a_row_meets_what_stands_when_it_arrives_whatever_the_times() {
    check(
        inner,
        "a 1 p1 @10, - null @10
         put t 1 v1 @99
         a 1 p2 @11
         put t 1 v2 @5
         a 1 p3 @12
         del t 1
         a 1 p4 @13
         account j",
        expect![[r#"
            a 1 p1 @10, - null @10
              alone +I p1 no_version @10
              alone +I null null_key @10
            put t 1 v1 @99
            a 1 p2 @11
              out +I p2 v1 @11
            put t 1 v2 @5
            a 1 p3 @12
              out +I p3 v2 @12
            del t 1
            a 1 p4 @13
              alone +I p4 no_version @13
            account j
              a: rows 5, matched 2, unmatched 2, null_key 1, of these without version 2
              t: rows 4, matched 4"#]],
    );
}

#[test]
fn what_was_said_stands_and_an_optional_table_may_have_no_row() {
    check(
        left,
        "a 1 p1 @10, - null @10
         put t 1 v1 @10
         a 1 p2 @10
         end",
        expect![[r#"
            a 1 p1 @10, - null @10
              out +I p1 - @10
              out +I null - @10
            put t 1 v1 @10
            a 1 p2 @10
              out +I p2 v1 @10
            end"#]],
    );
}

#[test]
fn the_table_does_not_hold_event_time_back() {
    check(
        inner,
        "wm t 5
         reached out
         wm a 10
         reached out
         put t 1 v1 @1
         a 1 old @9, 1 new @10
         wm t 99
         reached out",
        expect![[r#"
            wm t 5
            reached out
              out none
            wm a 10
            reached out
              out 10
            put t 1 v1 @1
            a 1 old @9, 1 new @10
              late +I old behind 10 @9
              out +I new v1 @10
            wm t 99
            reached out
              out 10"#]],
    );
}

fn loading(loaded: Loaded) -> impl Fn(&Flow) {
    move |flow| {
        let join = rows(flow, "a").snapshot_join(table(flow, "t").optional()).named("j").after_load(loaded);
        join.select(|a, t| format!("{} {}", a.name, name(t))).sink_to(sink("out"));
    }
}

#[test]
pub fn rows_wait_until_the_table_has_caught_up() {
    for end in ["end t", "idle t"] {
        let script = "a 1 p1 @10, 2 p2 @9
             put t 1 v1 @1
             wm a 50
             reached out
             wm t 99
             a 1 p3 @50, - null @50
             LOADED
             reached out
             a 1 p4 @51";
        let told = r#"
            a 1 p1 @10, 2 p2 @9
            put t 1 v1 @1
            wm a 50
            reached out
              out 9
            wm t 99
            a 1 p3 @50, - null @50
              out +I null - @50
            LOADED
              out +I p1 v1 @10
              out +I p2 - @9
              out +I p3 v1 @50
            reached out
              out 50
            a 1 p4 @51
              out +I p4 v1 @51"#;
        let told = told.replace("\n            ", "\n").replace("LOADED", end);
        check_text(loading(Loaded::caught_up()), &script.replace("LOADED", end), told.trim_start());
    }
}

#[test]
pub fn rows_wait_until_the_watermark_of_the_table_has_come_so_far() {
    check(
        loading(Loaded::at(EventTime::from_millis(100))),
        "a 1 p1 @10
         put t 1 v1 @1
         wm t 99
         wm t 100
         a 1 p2 @11",
        expect![[r#"
            a 1 p1 @10
            put t 1 v1 @1
            wm t 99
            wm t 100
              out +I p1 v1 @10
            a 1 p2 @11
              out +I p2 v1 @11"#]],
    );
}

#[test]
pub fn rows_wait_until_the_table_is_quiet() {
    check(
        loading(Loaded::at(EventTime::from_millis(100)).or_quiet_for(millis(50))),
        "a 1 p1 @10
         clock 49ms
         wm t 20
         clock 49ms
         clock 1ms
         a 1 p2 @11",
        expect![[r#"
            a 1 p1 @10
            clock 49ms
            wm t 20
            clock 49ms
            clock 1ms
              out +I p1 - @10
            a 1 p2 @11
              out +I p2 - @11"#]],
    );
}

#[test]
pub fn rows_of_a_changelog_are_a_bag() {
    let flow = |flow: &Flow| {
        let changes = flow.stream::<Row>(flowjoin_testkit::TestSource::new("c")).as_changelog(|row| {
            let kind = if row.name.starts_with('-') { flowjoin::RowKind::Delete } else { flowjoin::RowKind::Insert };
            (kind, Row { name: row.name.trim_start_matches('-').to_string(), at: EventTime::MIN, ..row })
        });
        let join = rows(flow, "a").snapshot_join(changes.key_by(|row| row.key)).named("j");
        join.select(|a, c| format!("{} {}", a.name, c.name)).sink_to(sink("out"));
    };
    check(
        flow,
        "c 1 b @1, 1 b @1, 1 d @1
         a 1 p @1
         c 1 -b @2, 1 -x @2
         a 1 q @2
         account j",
        expect![[r#"
            c 1 b @1, 1 b @1, 1 d @1
            a 1 p @1
              out +I p b @1
              out +I p b @1
              out +I p d @1
            c 1 -b @2, 1 -x @2
            a 1 q @2
              out +I q b @2
              out +I q d @2
            account j
              a: rows 2, matched 2
              c: rows 5, matched 4, orphan 1"#]],
    );
}

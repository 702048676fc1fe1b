//! Window joins: which rows are in one window, when it fires, and what becomes of rows that come after it.

use super::script::*;
use expect_test::expect;
use flowjoin::api::{Window, multi_join};
use flowjoin::prelude::*;

fn inner(flow: &Flow) {
    let join = rows(flow, "a").window_join(rows(flow, "b")).tumbling(millis(10)).named("j");
    let (late_a, late_b) = join.late();
    let (out, (left, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, b.name));
    out.sink_to(sink("out"));
    sink_unmatched(left, "alone-a");
    sink_unmatched(right, "alone-b");
    sink_late(late_a, "late-a");
    sink_late(late_b, "late-b");
}

#[test]
pub fn a_window_fires_when_the_watermark_reaches_its_end_and_then_its_rows_are_late() {
    check(
        inner,
        "a 1 x @0, 2 y @9
         b 1 r @9, 1 s @10
         wm 9
         wm 10
         b 1 t @9
         wm 20
         account j
         end",
        expect![[r#"
            a 1 x @0, 2 y @9
            b 1 r @9, 1 s @10
            wm 9
            wm 10
              out +I x r @9
              alone-a +I y window_closed @9
            b 1 t @9
              late-b +I t behind 10 @9
            wm 20
              alone-b +I s window_closed @19
            account j
              a: rows 2, matched 1, unmatched 1
              b: rows 3, matched 1, unmatched 1, late 1
            end"#]],
    );
}

#[test]
fn a_row_behind_the_watermark_is_not_late_while_its_window_has_not_fired() {
    check(
        inner,
        "wm 8
         a 1 x @1
         b 1 r @0
         wm 10",
        expect![[r#"
            wm 8
            a 1 x @1
            b 1 r @0
            wm 10
              out +I x r @9"#]],
    );
}

#[test]
fn an_offset_moves_the_windows_and_times_before_the_epoch_are_rounded_down() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).tumbling(millis(10)).offset(millis(-3));
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @-4, 1 y @-3, 1 z @7
         b 1 r @-13, 1 s @6, 1 t @16
         wm 17",
        expect![[r#"
            a 1 x @-4, 1 y @-3, 1 z @7
            b 1 r @-13, 1 s @6, 1 t @16
            wm 17
              out +I x r @-4
              out +I y s @6
              out +I z t @16"#]],
    );
}

#[test]
pub fn windows_at_the_ends_of_time_are_as_all_others() {
    check(
        inner,
        "a 1 x @min, 1 y @9223372036854775806
         b 1 r @-9223372036854775801, 1 s @-9223372036854775800, 1 t @9223372036854775806
         wm -9223372036854775800
         wm 0
         end
         account j",
        expect![[r#"
            a 1 x @min, 1 y @9223372036854775806
            b 1 r @-9223372036854775801, 1 s @-9223372036854775800, 1 t @9223372036854775806
            wm -9223372036854775800
              out +I x r @-9223372036854775801
            wm 0
              alone-b +I s window_closed @-9223372036854775791
            end
              out +I y t @9223372036854775807
            account j
              a: rows 2, matched 2
              b: rows 3, matched 2, unmatched 1"#]],
    );
}

#[test]
pub fn with_sliding_windows_a_pair_comes_once_for_each_common_one() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b").optional()).sliding(millis(10), millis(5)).named("j");
        let (out, (_, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, name(b)));
        out.sink_to(sink("out"));
        sink_unmatched(right, "alone-b");
    };
    check(
        flow,
        "a 1 x @7
         b 1 r @11
         wm 10
         wm 15
         a 1 y @12, 1 z @9
         wm 20
         account j",
        expect![[r#"
            a 1 x @7
            b 1 r @11
            wm 10
              out +I x - @9
            wm 15
              out +I x r @14
            a 1 y @12, 1 z @9
            wm 20
              out +I y r @19
            account j
              a: rows 3, matched 2, late 1
              b: rows 1, matched 1"#]],
    );
}

#[test]
pub fn rows_of_any_input_make_a_session_longer_and_bridge_two() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).session(millis(5)).named("j");
        let (out, (left, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, b.name));
        out.sink_to(sink("out"));
        sink_unmatched(left, "alone-a");
        sink_unmatched(right, "alone-b");
    };
    check(
        flow,
        "a 1 x @0
         b 1 r @8, 1 s @17
         a 1 y @4, 1 z @22
         wm 13
         wm 22
         wm 27",
        // The last two rows are just a gap apart.
        expect![[r#"
            a 1 x @0
            b 1 r @8, 1 s @17
            a 1 y @4, 1 z @22
            wm 13
              out +I x r @12
              out +I y r @12
            wm 22
              alone-b +I s window_closed @21
            wm 27
              alone-a +I z window_closed @26"#]],
    );
}

#[test]
pub fn a_late_row_that_is_allowed_says_what_it_changes_and_no_more() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b").optional()).tumbling(millis(10)).named("j");
        let (_, late) = join.late();
        let join = join.allowed_lateness(millis(5));
        join.select(|a, b| format!("{} {}", a.name, name(b))).sink_to(sink("out"));
        sink_late(late, "late-b");
    };
    check(
        flow,
        "a 1 x @1
         wm 10
         reached out
         b 1 r @2
         a 1 y @3
         wm 15
         b 1 s @4
         reached out
         account j",
        expect![[r#"
            a 1 x @1
            wm 10
              out +I x - @9
            reached out
              out 9
            b 1 r @2
              out -D x - @9
              out +I x r @9
            a 1 y @3
              out +I y r @9
            wm 15
            b 1 s @4
              late-b +I s behind 15 @4
            reached out
              out 15
            account j
              a: rows 2, matched 2
              b: rows 2, matched 1, late 1"#]],
    );
}

#[test]
pub fn sessions_that_have_fired_and_become_one_say_the_difference() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").optional().window_join(rows(flow, "b").optional()).session(millis(5)).named("j");
        let join = join.allowed_lateness(millis(100));
        join.select(|a, b| format!("{} {}", name(a), name(b))).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @0
         b 1 r @8
         wm 20
         a 1 y @4
         b 1 s @15
         a 1 z @17
         wm 22
         end
         account j",
        expect![[r#"
            a 1 x @0
            b 1 r @8
            wm 20
              out +I x - @4
              out +I - r @12
            a 1 y @4
              out -D x - @12
              out -D - r @12
              out +I x r @12
              out +I y r @12
            b 1 s @15
              out +I - s @19
            a 1 z @17
            wm 22
              out -D - s @21
              out +I z s @21
            end
            account j
              a: rows 3, matched 3
              b: rows 2, matched 2"#]],
    );
}

#[test]
pub fn any_of_several_inputs_may_be_missing_and_a_null_key_is_alone() {
    let flow = |flow: &Flow| {
        let join = multi_join![rows(flow, "a"), rows(flow, "b").optional(), rows(flow, "c").optional()];
        let join = join.tumbling(millis(10)).named("j");
        let select = |a: &Row, b: Option<&Row>, c: Option<&Row>| format!("{} {} {}", a.name, name(b), name(c));
        let (out, (_, _, left)) = join.select_with_unmatched(select);
        out.sink_to(sink("out"));
        sink_unmatched(left, "alone-c");
    };
    check(
        flow,
        "a 1 x @1, - n @2
         c 1 s @3, 1 t @4, 2 u @5, - m @6
         wm 10
         account j",
        expect![[r#"
            a 1 x @1, - n @2
              out +I n - - @9
            c 1 s @3, 1 t @4, 2 u @5, - m @6
              alone-c +I m null_key @9
            wm 10
              out +I x - s @9
              out +I x - t @9
              alone-c +I u window_closed @9
            account j
              a: rows 2, matched 1, null_key 1
              b: 
              c: rows 4, matched 2, unmatched 1, null_key 1"#]],
    );
}

#[test]
pub fn existence_is_asked_of_the_window() {
    let flow = |flow: &Flow| {
        let (a, b) = (rows(flow, "a"), rows(flow, "b"));
        let join = a.clone().where_exists(b.clone()).tumbling(millis(10)).named("j");
        join.into_rows().map(|row| row.name).sink_to(sink("out"));
        let join = a.where_not_exists(b).tumbling(millis(10)).named("k");
        let join = join.allowed_lateness(millis(5));
        let (out, (_, unmatched)) = join.into_rows_with_unmatched();
        out.map(|row| row.name).sink_to(sink("without"));
        sink_unmatched(unmatched, "alone-b");
    };
    check(
        flow,
        "a 1 x @1, 2 y @1, 1 z @11
         b 1 r @5, 1 s @6, 3 t @7
         wm 10
         b 2 u @8
         wm 15
         account j
         account k",
        expect![[r#"
            a 1 x @1, 2 y @1, 1 z @11
            b 1 r @5, 1 s @6, 3 t @7
            wm 10
              out +I x @9
              without +I y @9
            b 2 u @8
              without -D y @9
            wm 15
              alone-b +I t window_closed @9
            account j
              a: rows 3, matched 1, unmatched 1, open 1
              b: rows 4, matched 2, unmatched 1, late 1
            account k
              a: rows 3, matched 2, open 1
              b: rows 4, matched 3, unmatched 1"#]],
    );
}

#[test]
fn a_condition_is_asked_of_rows_in_one_window() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b").optional()).on(|a, b| a.name < b.name);
        join.tumbling(millis(10)).select(|a, b| format!("{} {}", a.name, name(b))).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 d @1, 1 p @1, 1 d @11
         b 1 k @2, 1 a @3
         wm 20",
        expect![[r#"
            a 1 d @1, 1 p @1, 1 d @11
            b 1 k @2, 1 a @3
            wm 20
              out +I d k @9
              out +I p - @9
              out +I d - @19"#]],
    );
}

#[test]
fn results_can_say_their_window() {
    let text = |window: Window, a: &Row, b: Option<&Row>| {
        let [start, end] = [window.start(), window.end()].map(EventTime::as_millis);
        format!("[{start}, {end}) {} {}", a.name, name(b))
    };
    let flow = move |flow: &Flow| {
        let (a, b) = (rows(flow, "a"), rows(flow, "b"));
        let join = a.clone().window_join(b.clone().optional()).sliding(millis(10), millis(5)).named("sliding");
        join.allowed_lateness(millis(5)).select_with_window(text).sink_to(sink("sliding"));
        let join = a.window_join(b.optional()).session(millis(5)).named("session");
        join.select_with_window(text).sink_to(sink("session"));
    };
    check(
        flow,
        "a 1 x @7, - n @3
         b 1 r @8, 2 s @1
         a 2 y @2
         wm 14
         b 2 t @6",
        expect![[r#"
            a 1 x @7, - n @3
              sliding +I [-5, 5) n - @4
              sliding +I [0, 10) n - @9
              session +I [3, 8) n - @7
            b 1 r @8, 2 s @1
            a 2 y @2
            wm 14
              sliding +I [-5, 5) y s @4
              sliding +I [0, 10) y s @9
              sliding +I [0, 10) x r @9
              session +I [1, 7) y s @6
              session +I [7, 13) x r @12
            b 2 t @6
              sliding +I [0, 10) y t @9"#]],
    );
}

fn in_session(window: Window, a: Option<&Row>, b: Option<&Row>) -> String {
    format!("[{}, {}) {} {}", window.start().as_millis(), window.end().as_millis(), name(a), name(b))
}

#[test]
pub fn a_gap_is_taken_back_with_the_window_of_the_session_that_it_was_told_with() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b").optional()).session(millis(5)).named("j");
        let join = join.allowed_lateness(millis(100));
        join.select_with_window(|window, a, b| in_session(window, Some(a), b)).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @10
         wm 20
         a 1 y @8
         a 1 z @13
         b 1 r @9, 1 s @16
         wm 21",
        // The second row of b makes the session longer, which is then open until 21.
        expect![[r#"
            a 1 x @10
            wm 20
              out +I [10, 15) x - @14
            a 1 y @8
              out +I [8, 15) y - @14
            a 1 z @13
              out +I [8, 18) z - @17
            b 1 r @9, 1 s @16
              out -D [8, 18) z - @17
              out -D [8, 15) y - @17
              out -D [10, 15) x - @17
              out +I [8, 18) x r @17
              out +I [8, 18) y r @17
              out +I [8, 18) z r @17
            wm 21
              out +I [8, 21) x s @20
              out +I [8, 21) y s @20
              out +I [8, 21) z s @20"#]],
    );
}

#[test]
pub fn gaps_of_sessions_that_are_bridged_are_taken_back_each_with_its_window() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").optional().window_join(rows(flow, "b").optional());
        let join = join.on(|a, b| a.is_some_and(|a| a.name <= b.name)).session(millis(5)).named("j");
        join.allowed_lateness(millis(100)).select_with_window(in_session).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 k @10
         b 1 a @18
         wm 30
         b 1 p @14
         a 1 a @22
         a 1 q @9",
        expect![[r#"
            a 1 k @10
            b 1 a @18
            wm 30
              out +I [10, 15) k - @14
              out +I [18, 23) - a @22
            b 1 p @14
              out -D [10, 15) k - @22
              out +I [10, 23) k p @22
            a 1 a @22
              out -D [18, 23) - a @26
              out +I [10, 27) a a @26
              out +I [10, 27) a p @26
            a 1 q @9
              out +I [9, 27) q - @26"#]],
    );
}

#[test]
pub fn a_gap_that_is_told_again_is_taken_back_with_the_window_of_the_second_time() {
    let flow = |flow: &Flow| {
        let [a, b, c] = ["a", "b", "c"].map(|source| rows(flow, source).optional());
        let join = multi_join(a).and(b).on(|a, b| a.is_some_and(|a| a.name <= b.name));
        let join = join.and(c).on(|a, b, c| match (a, b) {
            (_, Some(b)) => b.name < c.name,
            (a, None) => a.is_some_and(|a| a.name >= c.name),
        });
        let text = |window: Window, a: Option<&Row>, b: Option<&Row>, c: Option<&Row>| {
            format!("{} {}", in_session(window, a, b), name(c))
        };
        let join = join.session(millis(5)).allowed_lateness(millis(100));
        join.select_with_window(text).sink_to(sink("out"));
    };
    check(
        flow,
        "c 1 m @10
         wm 30
         a 1 p @9
         b 1 q @8
         a 1 z @7",
        // The row of b takes its match from that of c, which gets another by the second one of a.
        expect![[r#"
            c 1 m @10
            wm 30
              out +I [10, 15) - - m @14
            a 1 p @9
              out -D [10, 15) - - m @14
              out +I [9, 15) p - m @14
            b 1 q @8
              out -D [9, 15) p - m @14
              out +I [8, 15) p q - @14
              out +I [8, 15) - - m @14
            a 1 z @7
              out -D [8, 15) - - m @14
              out +I [7, 15) z - m @14"#]],
    );
}

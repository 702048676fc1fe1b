//! Interval joins: which times make a pair, when a row leaves, and what becomes of it.

use super::script::*;
use expect_test::expect;
use flowjoin::prelude::*;

// right − left from −5 ms to 10 ms.
fn inner(flow: &Flow) {
    let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-millis(5), millis(10)).named("j");
    let (late_a, late_b) = join.late();
    let (out, (left, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, b.name));
    out.sink_to(sink("out"));
    sink_unmatched(left, "alone-a");
    sink_unmatched(right, "alone-b");
    sink_late(late_a, "late-a");
    sink_late(late_b, "late-b");
}

fn full(flow: &Flow) {
    let join = rows(flow, "a").optional().interval_join(rows(flow, "b").optional());
    let out = join.between(-millis(5), millis(10)).named("j").select(|a, b| format!("{} {}", name(a), name(b)));
    out.sink_to(sink("out"));
}

fn left(flow: &Flow) {
    let join = rows(flow, "a").interval_join(rows(flow, "b").optional()).between(-millis(5), millis(10)).named("j");
    let (out, (_, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, name(b)));
    out.sink_to(sink("out"));
    sink_unmatched(right, "alone-b");
}

#[test]
fn both_ends_belong_to_the_interval() {
    check(
        inner,
        "a 1 x @100
         b 1 r94 @94, 1 r95 @95, 1 r110 @110, 1 r111 @111
         b 2 other @100
         a 1 y @105
         b 3 s99 @99, 3 s100 @100, 3 s115 @115, 3 s116 @116
         a 3 z @105
         account j",
        expect![[r#"
            a 1 x @100
            b 1 r94 @94, 1 r95 @95, 1 r110 @110, 1 r111 @111
              out +I x r95 @100
              out +I x r110 @110
            b 2 other @100
            a 1 y @105
              out +I y r110 @110
              out +I y r111 @111
            b 3 s99 @99, 3 s100 @100, 3 s115 @115, 3 s116 @116
            a 3 z @105
              out +I z s100 @105
              out +I z s115 @115
            account j
              a: rows 3, matched 3
              b: rows 9, matched 5, open 4"#]],
    );
}

#[test]
fn excluded_ends_do_not() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-millis(5), millis(10));
        let join = join.exclusive_lower().exclusive_upper();
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @100
         b 1 r95 @95, 1 r96 @96, 1 r109 @109, 1 r110 @110
         b 2 s100 @100, 2 s101 @101, 2 s114 @114, 2 s115 @115
         a 2 y @105",
        expect![[r#"
            a 1 x @100
            b 1 r95 @95, 1 r96 @96, 1 r109 @109, 1 r110 @110
              out +I x r96 @100
              out +I x r109 @109
            b 2 s100 @100, 2 s101 @101, 2 s114 @114, 2 s115 @115
            a 2 y @105
              out +I y s101 @105
              out +I y s114 @114"#]],
    );
}

#[test]
pub fn a_row_leaves_when_its_partners_could_only_be_late_and_comes_out_once() {
    check(
        inner,
        "a 1 x @100, 2 y @100
         b 1 r @110, 3 s @110
         wm 110
         a 1 z @110
         wm 111
         wm 115
         wm 116
         account j
         wm 120
         wm 121
         end
         account j",
        expect![[r#"
            a 1 x @100, 2 y @100
            b 1 r @110, 3 s @110
              out +I x r @110
            wm 110
            a 1 z @110
              out +I z r @110
            wm 111
              alone-a +I y interval_closed @100
            wm 115
            wm 116
              alone-b +I s interval_closed @110
            account j
              a: rows 3, matched 2, unmatched 1
              b: rows 2, matched 1, unmatched 1
            wm 120
            wm 121
            end
            account j
              a: rows 3, matched 2, unmatched 1
              b: rows 2, matched 1, unmatched 1"#]],
    );
}

#[test]
pub fn end_of_input_closes_every_interval() {
    check(
        inner,
        "a 1 x @100
         b 2 r @100
         end a
         end b
         account j",
        expect![[r#"
            a 1 x @100
            b 2 r @100
            end a
            end b
              alone-a +I x interval_closed @100
              alone-b +I r interval_closed @100
            account j
              a: rows 1, unmatched 1
              b: rows 1, unmatched 1"#]],
    );
}

#[test]
fn a_row_before_the_watermark_is_late_and_one_at_it_is_not() {
    check(
        inner,
        "a 1 x @100
         wm 100
         b 1 r99 @99, 1 r100 @100
         a 1 y @99
         account j",
        expect![[r#"
            a 1 x @100
            wm 100
            b 1 r99 @99, 1 r100 @100
              out +I x r100 @100
              late-b +I r99 behind 100 @99
            a 1 y @99
              late-a +I y behind 100 @99
            account j
              a: rows 2, matched 1, late 1
              b: rows 2, matched 1, late 1"#]],
    );
}

#[test]
fn an_unmatched_row_comes_out_padded_when_its_interval_has_closed() {
    check(
        full,
        "a 1 x @100
         b 2 r @100
         wm 105
         wm 106
         wm 110
         wm 111
         reached out
         account j",
        expect![[r#"
            a 1 x @100
            b 2 r @100
            wm 105
            wm 106
              out +I - r @100
            wm 110
            wm 111
              out +I x - @100
            reached out
              out 111
            account j
              a: rows 1, unmatched 1
              b: rows 1, unmatched 1"#]],
    );
}

#[test]
pub fn the_watermark_of_the_result_waits_for_rows_that_may_still_come_out_padded() {
    check(
        left,
        "a 1 x @100, 2 y @103
         b 1 r @100
         wm 111
         reached out
         wm 113
         reached out
         wm 114
         reached out",
        expect![[r#"
            a 1 x @100, 2 y @103
            b 1 r @100
              out +I x r @100
            wm 111
            reached out
              out 103
            wm 113
            reached out
              out 103
            wm 114
              out +I y - @103
            reached out
              out 114"#]],
    );
}

#[test]
fn a_padded_row_is_not_late_in_the_join_behind() {
    let chain = |flow: &Flow| {
        let first =
            rows(flow, "a").interval_join(rows(flow, "b").optional()).between(-millis(5), millis(10)).named("j");
        let padded = first.select(|a, b| Row { name: format!("{} {}", a.name, name(b)), ..a.clone() });
        let second = padded.key_by(|row| row.key).interval_join(rows(flow, "c")).between(millis(0), millis(0));
        let second = second.named("k");
        let (late_ab, late_c) = second.late();
        second.select(|ab, c| format!("{} {}", ab.name, c.name)).sink_to(sink("out"));
        sink_late(late_ab, "late-ab");
        sink_late(late_c, "late-c");
    };
    check(
        chain,
        "a 1 x @100
         wm 110
         c 1 k @100
         wm a 111
         wm b 111
         wm c 111
         account k",
        expect![[r#"
            a 1 x @100
            wm 110
            c 1 k @100
            wm a 111
            wm b 111
              out +I x - k @100
            wm c 111
            account k
              j: rows 1, matched 1
              c: rows 1, matched 1"#]],
    );
}

#[test]
fn a_null_key_matches_nothing_not_even_another_null() {
    check(
        inner,
        "a - x @100
         b - r @100
         account j
         end",
        expect![[r#"
            a - x @100
              alone-a +I x null_key @100
            b - r @100
              alone-b +I r null_key @100
            account j
              a: rows 1, null_key 1
              b: rows 1, null_key 1
            end"#]],
    );
}

#[test]
pub fn a_null_key_comes_out_padded_at_once_where_the_other_side_is_optional() {
    check(
        left,
        "a - x @100
         b - r @100
         account j
         end",
        expect![[r#"
            a - x @100
              out +I x - @100
            b - r @100
              alone-b +I r null_key @100
            account j
              a: rows 1, null_key 1
              b: rows 1, null_key 1
            end"#]],
    );
}

#[test]
pub fn negative_times_and_the_earliest_are_ordinary_times() {
    check(
        inner,
        "a 1 lowest @min
         b 1 l10 @-9223372036854775798, 1 l11 @-9223372036854775797
         a 2 below @-100
         b 2 m105 @-105, 2 m106 @-106, 2 m90 @-90, 2 m89 @-89
         wm -9223372036854775798
         wm -9223372036854775797
         wm -9223372036854775792
         wm -9223372036854775791
         wm -89
         wm -83
         account j",
        expect![[r#"
            a 1 lowest @min
            b 1 l10 @-9223372036854775798, 1 l11 @-9223372036854775797
              out +I lowest l10 @-9223372036854775798
            a 2 below @-100
            b 2 m105 @-105, 2 m106 @-106, 2 m90 @-90, 2 m89 @-89
              out +I below m105 @-100
              out +I below m90 @-90
            wm -9223372036854775798
            wm -9223372036854775797
            wm -9223372036854775792
            wm -9223372036854775791
              alone-b +I l11 interval_closed @-9223372036854775797
            wm -89
              alone-b +I m106 interval_closed @-106
            wm -83
              alone-b +I m89 interval_closed @-89
            account j
              a: rows 2, matched 2
              b: rows 6, matched 3, unmatched 3"#]],
    );
}

#[test]
pub fn the_latest_times_are_ordinary_times() {
    check(
        inner,
        "a 1 x @9223372036854775806
         b 1 h5 @9223372036854775801, 1 h6 @9223372036854775800, 1 h0 @9223372036854775806
         wm 9223372036854775805
         end
         account j",
        expect![[r#"
            a 1 x @9223372036854775806
            b 1 h5 @9223372036854775801, 1 h6 @9223372036854775800, 1 h0 @9223372036854775806
              out +I x h5 @9223372036854775806
              out +I x h0 @9223372036854775806
            wm 9223372036854775805
            end
              alone-b +I h6 interval_closed @9223372036854775800
            account j
              a: rows 1, matched 1
              b: rows 3, matched 2, unmatched 1"#]],
    );
}

// right − left from −10 ms to −5 ms: when a left row comes, its partners may all be past already.
#[test]
pub fn a_row_whose_partners_could_only_be_late_is_joined_and_not_kept() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-millis(10), -millis(5)).named("j");
        let (out, (left, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, b.name));
        out.sink_to(sink("out"));
        sink_unmatched(left, "alone-a");
        sink_unmatched(right, "alone-b");
    };
    check(
        flow,
        "b 1 r @93
         wm 96
         a 1 x @100
         a 1 y @104, 2 z @100
         wm 103
         wm 104
         account j",
        expect![[r#"
            b 1 r @93
            wm 96
            a 1 x @100
              out +I x r @100
            a 1 y @104, 2 z @100
              alone-a +I z interval_closed @100
            wm 103
              alone-a +I y interval_closed @104
            wm 104
            account j
              a: rows 3, matched 1, unmatched 2
              b: rows 1, matched 1"#]],
    );
}

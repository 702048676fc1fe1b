//! Interval joins that give a row for what is there or is not, tell gaps early, or have conditions.

use super::script::*;
use expect_test::expect;
use flowjoin::prelude::*;
use flowjoin::{Eager, EagerAfter};

// right − left from −5 ms to 10 ms, in all of them.
fn semi(flow: &Flow) {
    let join = rows(flow, "a").where_exists(rows(flow, "b")).between(-millis(5), millis(10)).named("j");
    let (out, (left, right)) = join.into_rows_with_unmatched();
    out.map(|row| row.name).sink_to(sink("out"));
    sink_unmatched(left, "alone-a");
    sink_unmatched(right, "alone-b");
}

fn anti(flow: &Flow) {
    let join = rows(flow, "a").where_not_exists(rows(flow, "b")).between(-millis(5), millis(10)).named("j");
    let (late, _) = join.late();
    sink_late(late, "late-a");
    join.into_rows().map(|row| row.name).sink_to(sink("out"));
}

fn eager(flow: &Flow) {
    let join = rows(flow, "a").interval_join(rows(flow, "b").optional().emit(Eager)).between(-millis(5), millis(10));
    let out = join.named("j").select(|a, b| format!("{} {}", a.name, name(b)));
    out.sink_to(sink("out"));
}

fn delayed(flow: &Flow) {
    let left = rows(flow, "a").optional();
    let join = left.interval_join(rows(flow, "b").optional().emit(EagerAfter(secs(1)))).between(-millis(5), millis(10));
    let out = join.named("j").select(|a, b| format!("{} {}", name(a), name(b)));
    out.sink_to(sink("out"));
}

// A name is a match for one that begins with the same letter; of a name of one letter nothing is known.
fn conditional(flow: &Flow) {
    let join = rows(flow, "a").interval_join(rows(flow, "b").optional()).between(-millis(5), millis(10)).named("j");
    let join = join.on(|a, b| (a.name.len() > 1 && b.name.len() > 1).then(|| a.name[..1] == b.name[..1]));
    let (out, (_, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, name(b)));
    out.sink_to(sink("out"));
    sink_unmatched(right, "alone-b");
}

#[test]
pub fn a_semi_join_gives_a_row_once_with_its_first_partner() {
    check(
        semi,
        "a 1 x @100, 2 y @100, - n @100
         b 1 r @104, 1 s @103
         b 1 t @110
         b 2 u @94
         a 1 z @105
         wm 111
         end
         account j",
        expect![[r#"
            a 1 x @100, 2 y @100, - n @100
              alone-a +I n null_key @100
            b 1 r @104, 1 s @103
              out +I x @104
            b 1 t @110
            b 2 u @94
            a 1 z @105
              out +I z @105
            wm 111
              alone-a +I y interval_closed @100
              alone-b +I u interval_closed @94
            end
            account j
              a: rows 4, matched 2, unmatched 1, null_key 1
              b: rows 4, matched 3, unmatched 1"#]],
    );
}

#[test]
pub fn a_row_of_a_semi_join_is_as_old_as_the_earliest_partner_that_waited_for_it() {
    check(
        semi,
        "b 1 r @110, 1 s @103, 1 t @95
         a 1 x @100
         b 1 u @100",
        expect![[r#"
            b 1 r @110, 1 s @103, 1 t @95
            a 1 x @100
              out +I x @100
            b 1 u @100"#]],
    );
}

#[test]
pub fn an_anti_join_gives_a_row_once_when_no_partner_can_come_any_more() {
    check(
        anti,
        "a 1 x @100, 2 y @101, - n @102
         b 1 r @110
         wm 111
         reached out
         wm 112
         reached out
         a 2 z @90
         b 3 s @112
         a 3 v @112
         end
         account j",
        expect![[r#"
            a 1 x @100, 2 y @101, - n @102
              out +I n @102
            b 1 r @110
            wm 111
            reached out
              out 101
            wm 112
              out +I y @101
            reached out
              out 112
            a 2 z @90
              late-a +I z behind 112 @90
            b 3 s @112
            a 3 v @112
            end
            account j
              a: rows 5, matched 2, unmatched 1, late 1, null_key 1
              b: rows 2, matched 2"#]],
    );
}

#[test]
pub fn an_eager_gap_is_told_at_once_and_taken_back_by_the_first_partner() {
    check(
        eager,
        "a 1 x @100, 2 y @101, - n @102
         b 1 r @104, 1 s @103
         reached out
         wm 105
         reached out
         b 2 u @106
         wm 150
         reached out
         b 3 v @150
         a 3 z @150
         a 4 w @150
         end
         account j",
        expect![[r#"
            a 1 x @100, 2 y @101, - n @102
              out +I x - @100
              out +I y - @101
              out +I n - @102
            b 1 r @104, 1 s @103
              out -D x - @104
              out +I x r @104
              out +I x s @103
            reached out
              out none
            wm 105
            reached out
              out 105
            b 2 u @106
              out -D y - @106
              out +I y u @106
            wm 150
            reached out
              out 150
            b 3 v @150
            a 3 z @150
              out +I z v @150
            a 4 w @150
              out +I w - @150
            end
            account j
              a: rows 5, matched 3, unmatched 1, null_key 1
              b: rows 4, matched 4"#]],
    );
}

#[test]
fn a_delayed_gap_is_told_once_and_holds_the_watermark_until_then() {
    check(
        delayed,
        "a 1 x @100, 2 y @101, 3 z @102
         b 4 r @103
         clock 999ms
         b 1 s @104
         wm 106
         reached out
         clock 1ms
         reached out
         wm 108
         reached out
         b 2 t @108
         wm 113
         wm 120
         account j",
        expect![[r#"
            a 1 x @100, 2 y @101, 3 z @102
            b 4 r @103
            clock 999ms
            b 1 s @104
              out +I x s @104
            wm 106
            reached out
              out 101
            clock 1ms
              out +I y - @101
              out +I z - @102
            reached out
              out 103
            wm 108
            reached out
              out 103
            b 2 t @108
              out -D y - @108
              out +I y t @108
            wm 113
              out +I - r @103
            wm 120
            account j
              a: rows 3, matched 2, unmatched 1
              b: rows 3, matched 2, unmatched 1"#]],
    );
}

#[test]
pub fn a_delay_that_is_over_after_the_interval_tells_nothing_twice() {
    check(
        delayed,
        "a 1 x @100
         wm 111
         a 1 y @111
         clock 1s
         account j",
        expect![[r#"
            a 1 x @100
            wm 111
              out +I x - @100
            a 1 y @111
            clock 1s
              out +I y - @111
            account j
              a: rows 2, unmatched 1, open 1
              b:"#]],
    );
}

#[test]
pub fn a_pair_has_to_fulfil_the_condition_and_unknown_is_no_match() {
    check(
        conditional,
        "a 1 xa @100, 1 ya @100, 1 x @100
         b 1 xb @101, 1 xc @102, 1 z @103
         end
         account j",
        expect![[r#"
            a 1 xa @100, 1 ya @100, 1 x @100
            b 1 xb @101, 1 xc @102, 1 z @103
              out +I xa xb @101
              out +I xa xc @102
            end
              out +I ya - @100
              out +I x - @100
              alone-b +I z interval_closed @103
            account j
              a: rows 3, matched 1, unmatched 2
              b: rows 3, matched 2, unmatched 1"#]],
    );
}

// The rows of the first join come out padded long after their time; those of the second after theirs.
fn chain(flow: &Flow) {
    let row = |a: &Row, b: Option<&Row>| Row { name: format!("{}{}", a.name, name(b)), ..a.clone() };
    let first = rows(flow, "a").interval_join(rows(flow, "b").optional()).between(millis(0), millis(20)).named("first");
    let first = first.select(row).key_by(|row| row.key);
    let second = first.where_not_exists(rows(flow, "c")).between(millis(0), millis(5)).named("second").into_rows();
    let third =
        second.key_by(|row| row.key).interval_join(rows(flow, "d")).between(-millis(1), millis(1)).named("third");
    let (late, _) = third.late();
    sink_late(late, "late");
    third.select(|ab, d| format!("{} {}", ab.name, d.name)).sink_to(sink("out"));
}

#[test]
fn nothing_that_comes_out_of_one_is_late_for_the_next() {
    check(
        chain,
        "a 1 x @100, 2 y @103, 3 z @100
         d 1 d1 @101, 2 d2 @103
         c 3 c3 @101
         wm 120
         reached out
         wm 121
         reached out
         wm 124
         reached out
         account second
         account third",
        expect![[r#"
            a 1 x @100, 2 y @103, 3 z @100
            d 1 d1 @101, 2 d2 @103
            c 3 c3 @101
            wm 120
            reached out
              out 100
            wm 121
            reached out
              out 100
            wm 124
              out +I x- d1 @101
              out +I y- d2 @103
            reached out
              out 124
            account second
              first: rows 3, matched 1, unmatched 2
              c: rows 1, matched 1
            account third
              second: rows 2, matched 2
              d: rows 2, matched 2"#]],
    );
}

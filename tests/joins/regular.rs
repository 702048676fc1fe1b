//! Regular and N-way joins: padding, null keys, times-to-live and rows behind the watermark.

use super::script::*;
use expect_test::expect;
use flowjoin::Clock;
use flowjoin::prelude::*;

fn left(flow: &Flow) {
    let join = rows(flow, "a").join(rows(flow, "b").optional()).keep_forever().named("j");
    let (out, (_, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, name(b)));
    out.sink_to(sink("out"));
    sink_unmatched(right, "alone-b");
}

fn inner(flow: &Flow, ttl: flowjoin::Ttl) {
    let join = rows(flow, "a").join(rows(flow, "b")).ttl(ttl).named("j");
    let (late_a, late_b) = join.late();
    let (out, (left, right)) = join.select_with_unmatched(|a, b| format!("{} {}", a.name, b.name));
    out.sink_to(sink("out"));
    sink_unmatched(left, "alone-a");
    sink_unmatched(right, "alone-b");
    sink_late(late_a, "late-a");
    sink_late(late_b, "late-b");
}

fn full(flow: &Flow) {
    let join = rows(flow, "a").optional().join(rows(flow, "b").optional()).keep_forever().named("j");
    join.select(|a, b| format!("{} {}", name(a), name(b))).sink_to(sink("out"));
}

#[test]
fn a_null_key_of_an_inner_join_comes_out_unmatched_at_once() {
    check(
        |flow| inner(flow, flowjoin::Ttl::Forever),
        "a - x @1
         b - r @2
         a 1 y @3
         b 1 s @4
         account j
         end",
        expect![[r#"
            a - x @1
              alone-a +I x null_key @1
            b - r @2
              alone-b +I r null_key @2
            a 1 y @3
            b 1 s @4
              out +I y s @4
            account j
              a: rows 2, matched 1, null_key 1
              b: rows 2, matched 1, null_key 1
            end"#]],
    );
}

#[test]
fn a_null_key_comes_out_padded_at_once_where_all_others_are_optional() {
    check(
        left,
        "a - x @1
         b - r @2
         account j
         end",
        expect![[r#"
            a - x @1
              out +I x - @1
            b - r @2
              alone-b +I r null_key @2
            account j
              a: rows 1, null_key 1
              b: rows 1, null_key 1
            end"#]],
    );
    check(
        full,
        "a - x @1
         b - r @2
         account j
         end",
        expect![[r#"
            a - x @1
              out +I x - @1
            b - r @2
              out +I - r @2
            account j
              a: rows 1, null_key 1
              b: rows 1, null_key 1
            end"#]],
    );
}

#[test]
fn a_key_of_which_one_part_is_null_is_null() {
    let flow = |flow: &Flow| {
        let part = |row: &Row| (row.name.len() as u64, row.key);
        let a = flow.stream::<Row>(flowjoin_testkit::TestSource::new("a")).key_by(part);
        let b = flow.stream::<Row>(flowjoin_testkit::TestSource::new("b")).key_by(part);
        let join = a.join(b).keep_forever().named("j");
        join.select(|a, b| format!("{} {}", a.name, b.name)).sink_to(sink("out"));
    };
    check(
        flow,
        "a - x @1, 1 y @1
         b - r @2, 1 s @2
         account j",
        expect![[r#"
            a - x @1, 1 y @1
            b - r @2, 1 s @2
              out +I y s @2
            account j
              a: rows 2, matched 1, null_key 1
              b: rows 2, matched 1, null_key 1"#]],
    );
}

#[test]
fn padding_is_taken_back_before_the_first_match() {
    check(
        full,
        "b 1 r @1
         a 1 x @2
         a 1 y @3
         b 1 s @4
         account j
         end",
        expect![[r#"
            b 1 r @1
              out +I - r @1
            a 1 x @2
              out -D - r @2
              out +I x r @2
            a 1 y @3
              out +I y r @3
            b 1 s @4
              out +I x s @4
              out +I y s @4
            account j
              a: rows 2, matched 2
              b: rows 2, matched 2
            end"#]],
    );
}

#[test]
fn equal_rows_are_a_bag_and_each_copy_joins() {
    check(
        left,
        "a 1 x @1, 1 x @1
         b 1 r @2, 1 r @2
         account j",
        expect![[r#"
            a 1 x @1, 1 x @1
              out +I x - @1
              out +I x - @1
            b 1 r @2, 1 r @2
              out -D x - @2
              out -D x - @2
              out +I x r @2
              out +I x r @2
              out +I x r @2
              out +I x r @2
            account j
              a: rows 2, matched 2
              b: rows 2, matched 2"#]],
    );
}

#[test]
fn a_row_expires_on_the_clock_of_the_machine_without_traffic() {
    check(
        |flow| inner(flow, millis(10).into()),
        "a 1 x @1
         clock 9ms
         b 1 r @2
         clock 1ms
         b 1 s @3
         a 1 y @4
         clock 9ms
         a 1 z @5
         clock 1ms
         account j
         a 2 alone @6
         clock 9ms
         account j
         clock 1ms
         end
         account j",
        expect![[r#"
            a 1 x @1
            clock 9ms
            b 1 r @2
              out +I x r @2
            clock 1ms
            b 1 s @3
            a 1 y @4
              out +I y r @4
              out +I y s @4
            clock 9ms
            a 1 z @5
              out +I z s @5
            clock 1ms
            account j
              a: rows 3, matched 3
              b: rows 2, matched 2
            a 2 alone @6
            clock 9ms
            account j
              a: rows 4, matched 3, open 1
              b: rows 2, matched 2
            clock 1ms
              alone-a +I alone expired @6
            end
            account j
              a: rows 4, matched 3, expired 1
              b: rows 2, matched 2"#]],
    );
}

#[test]
fn a_row_expires_on_the_clock_of_the_watermark() {
    check(
        |flow| inner(flow, millis(10).on(Clock::Event)),
        "a 1 x @100
         clock 1h
         wm 109
         b 1 r @109
         wm 110
         b 1 s @110
         a 2 late @109
         wm 119
         wm 120
         account j",
        expect![[r#"
            a 1 x @100
            clock 1h
            wm 109
            b 1 r @109
              out +I x r @109
            wm 110
            b 1 s @110
            a 2 late @109
              late-a +I late behind 110 @109
            wm 119
            wm 120
              alone-b +I s expired @110
            account j
              a: rows 2, matched 1, late 1
              b: rows 2, matched 1, expired 1"#]],
    );
}

#[test]
fn each_input_may_have_a_time_to_live_of_its_own() {
    let flow = |flow: &Flow| {
        let (a, b, c) = (rows(flow, "a").ttl(millis(5)), rows(flow, "b"), rows(flow, "c").keep_forever());
        let join = multi_join![a, b, c].ttl(millis(10)).named("j");
        join.select(|a, b, c| format!("{} {} {}", a.name, b.name, c.name)).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @1
         b 1 r @1
         c 1 k @1
         clock 5ms
         a 1 y @2
         clock 5ms
         a 1 z @3
         b 1 s @4
         clock 1h
         a 1 w @5
         b 1 t @6
         account j",
        expect![[r#"
            a 1 x @1
            b 1 r @1
            c 1 k @1
              out +I x r k @1
            clock 5ms
            a 1 y @2
              out +I y r k @2
            clock 5ms
            a 1 z @3
            b 1 s @4
              out +I z s k @4
            clock 1h
            a 1 w @5
            b 1 t @6
              out +I w t k @6
            account j
              a: rows 4, matched 4
              b: rows 3, matched 3
              c: rows 1, matched 1"#]],
    );
}

#[test]
fn after_a_match_expired_only_the_padding_that_stands_is_taken_back() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").join(rows(flow, "b").optional().ttl(millis(10))).keep_forever().named("j");
        join.select(|a, b| format!("{} {}", a.name, name(b))).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @1
         b 1 r @2
         clock 10ms
         a 1 y @3
         b 1 s @4
         clock 10ms
         b 1 t @5
         account j",
        expect![[r#"
            a 1 x @1
              out +I x - @1
            b 1 r @2
              out -D x - @2
              out +I x r @2
            clock 10ms
            a 1 y @3
              out +I y - @3
            b 1 s @4
              out -D y - @4
              out +I x s @4
              out +I y s @4
            clock 10ms
            b 1 t @5
              out +I x t @5
              out +I y t @5
            account j
              a: rows 2, matched 2
              b: rows 3, matched 3"#]],
    );
}

#[test]
fn a_gap_that_was_never_told_is_not_taken_back_by_another_input() {
    let flow = |flow: &Flow| {
        let (a, b, c) = (rows(flow, "a"), rows(flow, "b").optional().ttl(millis(10)), rows(flow, "c").optional());
        let join = multi_join![a, b, c].keep_forever().named("j");
        join.select(|a, b, c| format!("{} {} {}", a.name, name(b), name(c))).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @1
         b 1 r @2
         clock 10ms
         c 1 k @3
         b 1 s @4
         account j",
        expect![[r#"
            a 1 x @1
              out +I x - - @1
            b 1 r @2
              out -D x - - @2
              out +I x r - @2
            clock 10ms
            c 1 k @3
              out +I x - k @3
            b 1 s @4
              out -D x - k @4
              out +I x s k @4
            account j
              a: rows 1, matched 1
              b: rows 2, matched 2
              c: rows 1, matched 1"#]],
    );
}

#[test]
fn a_left_join_b_inner_c_keeps_silent_until_c_is_there() {
    let flow = |flow: &Flow| {
        let join = multi_join![rows(flow, "a"), rows(flow, "b").optional(), rows(flow, "c")].keep_forever().named("j");
        let (out, (left, middle, right)) =
            join.select_with_unmatched(|a, b, c| format!("{} {} {}", a.name, name(b), c.name));
        out.sink_to(sink("out"));
        sink_unmatched(left, "alone-a");
        sink_unmatched(middle, "alone-b");
        sink_unmatched(right, "alone-c");
    };
    check(
        flow,
        "a 1 x @1
         c 1 k @2
         b 1 r @3
         a 2 y @4
         b 2 s @5
         b 3 t @6
         c 3 l @7
         account j
         end
         account j",
        expect![[r#"
            a 1 x @1
            c 1 k @2
              out +I x - k @2
            b 1 r @3
              out -D x - k @3
              out +I x r k @3
            a 2 y @4
            b 2 s @5
            b 3 t @6
            c 3 l @7
            account j
              a: rows 2, matched 1, open 1
              b: rows 3, matched 1, open 2
              c: rows 2, matched 1, open 1
            end
              alone-a +I y end_of_input @4
              alone-b +I s end_of_input @5
              alone-b +I t end_of_input @6
              alone-c +I l end_of_input @7
            account j
              a: rows 2, matched 1, unmatched 1
              b: rows 3, matched 1, unmatched 2
              c: rows 2, matched 1, unmatched 1"#]],
    );
}

#[test]
fn rows_behind_the_watermark_go_to_the_late_output() {
    check(
        |flow| inner(flow, flowjoin::Ttl::Forever),
        "a 1 x @5
         wm 10
         b 1 r @9, 1 s @10
         a 1 y @-1
         account j",
        expect![[r#"
            a 1 x @5
            wm 10
            b 1 r @9, 1 s @10
              out +I x s @10
              late-b +I r behind 10 @9
            a 1 y @-1
              late-a +I y behind 10 @-1
            account j
              a: rows 2, matched 1, late 1
              b: rows 2, matched 1, late 1"#]],
    );
}

#[test]
fn twelve_inputs_are_one_join() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "k", "l", "m"];
    let flow = move |flow: &Flow| {
        let [a, b, c, d, e, f, g, h, i, k, l, m] = names.map(|name| rows(flow, name));
        multi_join![a, b, c.optional(), d, e, f.optional(), g, h, i, k, l, m.optional()]
            .keep_forever()
            .named("j")
            .select(|a, b, c, d, e, f, g, h, i, k, l, m| {
                let required = [a, b, d, e, g, h, i, k, l].map(|row| row.name.as_str()).concat();
                format!("{required} {} {} {}", name(c), name(f), name(m))
            })
            .sink_to(sink("out"));
    };
    check(
        flow,
        "l 1 L @1
         k 1 K @2
         i 1 I @3
         h 1 H @4
         g 1 G @5
         f 1 F @6
         e 1 E @7
         d 1 D @8
         b 1 B @9
         a 1 A @10
         c 1 C @11
         a 1 x @12
         m 1 M @0
         account j",
        expect![[r#"
            l 1 L @1
            k 1 K @2
            i 1 I @3
            h 1 H @4
            g 1 G @5
            f 1 F @6
            e 1 E @7
            d 1 D @8
            b 1 B @9
            a 1 A @10
              out +I ABDEGHIKL - F - @10
            c 1 C @11
              out -D ABDEGHIKL - F - @11
              out +I ABDEGHIKL C F - @11
            a 1 x @12
              out +I xBDEGHIKL C F - @12
            m 1 M @0
              out -D ABDEGHIKL C F - @11
              out -D xBDEGHIKL C F - @12
              out +I ABDEGHIKL C F M @11
              out +I xBDEGHIKL C F M @12
            account j
              a: rows 2, matched 2
              b: rows 1, matched 1
              c: rows 1, matched 1
              d: rows 1, matched 1
              e: rows 1, matched 1
              f: rows 1, matched 1
              g: rows 1, matched 1
              h: rows 1, matched 1
              i: rows 1, matched 1
              k: rows 1, matched 1
              l: rows 1, matched 1
              m: rows 1, matched 1"#]],
    );
}

//! Joins of the results of joins: corrections, padded rows and unmatched rows flow on.

use super::script::*;
use expect_test::expect;
use flowjoin::prelude::*;

// a LEFT JOIN b, and the result joined with c.
fn retractions_flow(flow: &Flow, ttl: Option<Span>) {
    let first = rows(flow, "a").join(rows(flow, "b").optional()).keep_forever().named("first");
    let ab = first.select(|a, b| Row { name: format!("{} {}", a.name, name(b)), ..a.clone() });
    let second = ab.key_by(|row| row.key).join(rows(flow, "c"));
    let second = match ttl {
        Some(ttl) => second.ttl(ttl),
        None => second.keep_forever(),
    };
    let (out, (left, right)) = second.named("second").select_with_unmatched(|ab, c| format!("{} {}", ab.name, c.name));
    out.sink_to(sink("out"));
    sink_unmatched(left, "alone-ab");
    sink_unmatched(right, "alone-c");
}

#[test]
fn a_correction_of_the_first_join_corrects_the_second() {
    check(
        |flow| retractions_flow(flow, None),
        "a 1 x @1
         c 1 k @2, 1 l @3
         b 1 r @4
         b 1 s @5
         account first
         account second
         a 2 y @6
         b 2 t @7
         account second
         end
         account second",
        expect![[r#"
            a 1 x @1
            c 1 k @2, 1 l @3
              out +I x - k @2
              out +I x - l @3
            b 1 r @4
              out -D x - k @4
              out -D x - l @4
              out +I x r k @4
              out +I x r l @4
            b 1 s @5
              out +I x s k @5
              out +I x s l @5
            account first
              a: rows 1, matched 1
              b: rows 2, matched 2
            account second
              first: rows 4, matched 4
              c: rows 2, matched 2
            a 2 y @6
            b 2 t @7
            account second
              first: rows 7, matched 4, retracted 2, open 1
              c: rows 2, matched 2
            end
              alone-ab +I y t end_of_input @7
            account second
              first: rows 7, matched 4, unmatched 1, retracted 2
              c: rows 2, matched 2"#]],
    );
}

#[test]
fn what_has_expired_is_not_taken_back() {
    check(
        |flow| retractions_flow(flow, Some(millis(10))),
        "a 1 x @1
         c 1 k @2
         clock 10ms
         b 1 r @3
         c 1 l @4
         account second",
        expect![[r#"
            a 1 x @1
            c 1 k @2
              out +I x - k @2
            clock 10ms
            b 1 r @3
            c 1 l @4
              out +I x r l @4
            account second
              first: rows 3, matched 2, orphan 1
              c: rows 2, matched 2"#]],
    );
}

// The second join is keyed by what the first may not know: null until b comes.
#[test]
fn a_padded_null_key_is_taken_back_when_the_key_becomes_known() {
    let flow = |flow: &Flow| {
        let first = rows(flow, "a").join(rows(flow, "b").optional()).keep_forever().named("first");
        let ab = first.select(|a, b| (a.name.clone(), b.map(|b| b.name.len() as u64)));
        let second = ab.key_by(|(_, key)| *key).join(rows(flow, "c").optional()).keep_forever().named("second");
        second.select(|(a, key), c| format!("{a} {} {}", key.unwrap_or(0), name(c))).sink_to(sink("out"));
    };
    check(
        flow,
        "a 1 x @1
         c 2 k @2
         b 1 rr @3
         c 2 l @4
         account second",
        expect![[r#"
            a 1 x @1
              out +I x 0 - @1
            c 2 k @2
            b 1 rr @3
              out -D x 0 - @3
              out +I x 2 k @3
            c 2 l @4
              out +I x 2 l @4
            account second
              first: rows 3, matched 1, null_key 2
              c: rows 2, matched 2"#]],
    );
}

//! What expiry does to results: its policies, rows without a key, and what is remembered of rows that went in silence.

use expect_test::expect;
use flowjoin::prelude::*;
use flowjoin::{Retract, Unmatch};
use flowjoin_testkit::{TestSink, TestSource};

use super::script;
use super::tables::{Order, check, users};

#[test]
fn expiry_may_unmatch_or_retract() {
    let script = "a user=1 item=x
         clock 1s
         b user=1 item=z
         clock 10s
         clock 11s";
    check(
        |flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user).ttl(secs(5));
            let join = left.join(right.optional()).ttl(secs(10)).on_expiry(Unmatch);
            join.select(|a, b| (a.item.clone(), b.map(|b| b.item.clone()))).sink_to(TestSink::new("out"));
        },
        script,
        expect![[r#"
            a user=1 item=x
              out: +I x, -
            clock 1s
            b user=1 item=z
              out: -D x, -
              out: +I x, z
            clock 10s
              out: -D x, z
              out: +I x, -
            clock 11s
        "#]],
    );
    check(
        |flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user);
            let join = left.join(right).ttl(secs(10)).on_expiry(Retract);
            join.select(|a, b| (a.item.clone(), b.item.clone())).sink_to(TestSink::new("out"));
        },
        script,
        expect![[r#"
            a user=1 item=x
            clock 1s
            b user=1 item=z
              out: +I x, z
            clock 10s
              out: -D x, z
            clock 11s
        "#]],
    );
}

fn left_unmatch(flow: &Flow) {
    let a = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
    let b = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user);
    let join = a.join(b.optional()).ttl(millis(10)).on_expiry(Unmatch);
    join.select(|a, b| (a.item.clone(), b.map(|b| b.item.clone()))).sink_to(TestSink::new("out"));
}

// What a required row was in as it left stands for ever, and who leaves first decides what that is.
#[test]
fn what_a_required_row_was_in_as_it_left_stands_whoever_leaves_later() {
    check(
        left_unmatch,
        "a user=1 item=a
         clock 5ms
         b user=1 item=b
         clock 12ms
         clock 20ms",
        expect![[r#"
            a user=1 item=a
              out: +I a, -
            clock 5ms
            b user=1 item=b
              out: -D a, -
              out: +I a, b
            clock 12ms
            clock 20ms
        "#]],
    );
    // The clock moves beyond both at once: still the one that expired first has left first.
    check(
        left_unmatch,
        "b user=1 item=b
         clock 5ms
         a user=1 item=a
         clock 20ms",
        expect![[r#"
            b user=1 item=b
            clock 5ms
            a user=1 item=a
              out: +I a, b
            clock 20ms
              out: -D a, b
              out: +I a, -
        "#]],
    );
}

#[test]
fn of_rows_that_expire_at_the_same_instant_that_of_the_input_that_is_written_first_leaves_first() {
    let script = "b user=1 item=b
         a user=1 item=a
         clock 10ms";
    check(
        left_unmatch,
        script,
        expect![[r#"
            b user=1 item=b
            a user=1 item=a
              out: +I a, b
            clock 10ms
        "#]],
    );
    check(
        |flow| {
            let a = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let b = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user);
            let join = a.optional().join(b).ttl(millis(10)).on_expiry(Unmatch);
            join.select(|a, b| (a.map(|a| a.item.clone()), b.item.clone())).sink_to(TestSink::new("out"));
        },
        script,
        expect![[r#"
            b user=1 item=b
              out: +I -, b
            a user=1 item=a
              out: -D -, b
              out: +I a, b
            clock 10ms
              out: -D a, b
              out: +I -, b
        "#]],
    );
}

#[test]
fn what_a_row_without_a_key_gave_is_taken_back_as_it_expires() {
    check(
        |flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user).optional();
            let join = left.join(right).ttl(secs(10)).on_expiry(Retract);
            join.select(|a, b| (a.item.clone(), b.map(|b| b.item.clone()))).sink_to(TestSink::new("out"));
        },
        "a item=x
         clock 1s
         a user=1 item=y
         clock 10s
         clock 11s",
        expect![[r#"
            a item=x
              out: +I x, -
            clock 1s
            a user=1 item=y
              out: +I y, -
            clock 10s
              out: -D x, -
            clock 11s
              out: -D y, -
        "#]],
    );
}

#[test]
fn what_expired_in_silence_is_remembered_in_joins_of_two() {
    // A row that was shown because a partner existed stands after that has expired, is not shown twice, and is taken
    // back when it goes itself.
    check(
        |flow| {
            let left = users(flow).key_by(|user| Some(user.id));
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user).ttl(secs(5));
            let known = left.where_exists(right).keep_forever().into_rows();
            known.map(|user| user.name).sink_to(TestSink::new("out"));
        },
        "users id=1 name=ann
         b user=1 item=x
         clock 6s
         b user=1 item=y
         clock 12s
         users id=1 name=bob
         users op=-D id=1 name=bob",
        expect![[r#"
            users id=1 name=ann
            b user=1 item=x
              out: +I ann
            clock 6s
            b user=1 item=y
            clock 12s
            users id=1 name=bob
              out: -D ann
            users op=-D id=1 name=bob
        "#]],
    );
    // With a condition, a gap that was filled by a row that has expired since was not told.
    check(
        |flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user).ttl(secs(5));
            let join = left.join(right.optional()).on(|a, b| a.item < b.item).keep_forever();
            join.select(|a, b| (a.item.clone(), b.map(|b| b.item.clone()))).sink_to(TestSink::new("out"));
        },
        "a user=1 item=m
         b user=1 item=a
         b user=1 item=z
         clock 4s
         b user=1 item=b
         clock 6s
         a user=1 item=n
         b user=1 item=y",
        expect![[r#"
            a user=1 item=m
              out: +I m, -
            b user=1 item=a
            b user=1 item=z
              out: -D m, -
              out: +I m, z
            clock 4s
            b user=1 item=b
            clock 6s
            a user=1 item=n
              out: +I n, -
            b user=1 item=y
              out: -D n, -
              out: +I m, y
              out: +I n, y
        "#]],
    );
}

// A list of rows that has gone round the end of its memory is two runs, of which either may begin with the row in the slot.
#[test]
fn all_rows_of_a_long_list_that_lost_its_first_ones_have_met_who_joins_them() {
    for first in 1..40usize {
        let mut t = flowjoin_testkit::TestFlow::new(|flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user);
            let join = left.join(right).ttl(secs(5)).named("join");
            let (out, (_, alone)) = join.select_with_unmatched(|a, b| (a.item.clone(), b.item.clone()));
            out.sink_to(TestSink::new("out"));
            alone.sink_to(TestSink::new("alone"));
        });
        let order = |item: &str| Order { user: Some(1), item: item.to_string() };
        t.send("b", order("old"));
        t.advance(secs(1));
        for n in 0..first {
            t.send("b", order(&format!("old{n}")));
        }
        t.advance(secs(4));
        t.send("b", order("new0")).send("b", order("new1"));
        t.advance(secs(1)).send("a", order("x"));
        t.end_all();
        let account = t.figures("join").accounts[1];
        assert_eq!((account.matched, account.expired), (2, first as u64 + 1), "{first}");
    }
}

// The second `a` has nobody to meet: that the first has met `b`, which has expired since, does not count for it.
#[test]
fn a_row_that_comes_when_those_that_others_met_have_expired_has_not_met() {
    script::check(
        |flow| {
            let (b, c) = (script::rows(flow, "b").optional(), script::rows(flow, "c").optional());
            let join = multi_join![script::rows(flow, "a"), b, c].ttl(millis(10).on(Clock::Event)).named("j");
            let joined = join.select(|a, b, c| format!("{} {} {}", a.name, script::name(b), script::name(c)));
            joined.sink_to(script::sink("out"));
        },
        "a 1 x @24
         b 1 r @10
         wm 20
         a 1 y @21
         account j",
        expect![[r#"
            a 1 x @24
              out +I x - - @24
            b 1 r @10
              out -D x - - @24
              out +I x r - @24
            wm 20
            a 1 y @21
              out +I y - - @21
            account j
              a: rows 2, matched 1, open 1
              b: rows 1, matched 1
              c:"#]],
    );
}

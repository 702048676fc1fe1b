//! One key with very many rows: what a row costs is what it changes, and not what is there.
//!
//! Each of these would take minutes, at the least, if rows were looked for among all rows of their key.

use flowjoin::prelude::*;
use flowjoin::{Final, Retract, RowKind};
use flowjoin_testkit::{TestFlow, TestSink};

use super::script::{Row, name, rows};

const MANY: i64 = 50_000;

fn row(name: &str, at: i64) -> Row {
    Row { key: Some(1), name: name.to_string(), at: EventTime::from_millis(at) }
}

// In an order that is neither that of time nor its reverse; each once.
fn scattered(n: i64, of: i64) -> i64 {
    n * 7_919 % of
}

// Rows of a source, a thousand at a time.
fn send(t: &mut TestFlow, source: &str, times: impl Iterator<Item = i64>) {
    let mut batch: Vec<Row> = Vec::with_capacity(1_000);
    for at in times {
        batch.push(row(source, at));
        if batch.len() == 1_000 {
            t.send_all(source, std::mem::take(&mut batch));
        }
    }
    t.send_all(source, batch);
}

fn wm(t: &mut TestFlow, at: i64) {
    t.watermark("a", EventTime::from_millis(at)).watermark("b", EventTime::from_millis(at));
}

fn kinds(t: &mut TestFlow) -> (usize, usize) {
    let out = t.take("out");
    let adds = out.iter().filter(|row| row.kind == RowKind::Insert).count();
    (adds, out.len() - adds)
}

fn buckets(t: &TestFlow, input: usize) -> (u64, u64) {
    let account = t.figures("j").accounts[input];
    (account.matched, account.unmatched)
}

// Rows of both sides come by turns, all of them in reach of each other.
fn interval(condition: bool, exists: bool) -> (usize, TestFlow) {
    let mut t = TestFlow::new(|flow| {
        let (a, b) = (rows(flow, "a"), rows(flow, "b"));
        let out = TestSink::new("out");
        match (condition, exists) {
            (false, true) => {
                let join = a.where_exists(b).between(-hours(1), hours(1)).named("j");
                join.into_rows().sink_to(out);
            }
            (true, true) => {
                let join = a.where_exists(b).between(-hours(1), hours(1)).on(|a, b| a.at <= b.at).named("j");
                join.into_rows().sink_to(out);
            }
            (_, false) => {
                let join = a.where_not_exists(b).between(-hours(1), hours(1)).named("j");
                join.into_rows().sink_to(out);
            }
        }
    });
    for part in 0..MANY / 1_000 {
        let times = || (part * 1_000..(part + 1) * 1_000).map(|n| scattered(n, MANY));
        send(&mut t, "a", times());
        send(&mut t, "b", times().map(|at| at + MANY));
    }
    (kinds(&mut t).0, t)
}

#[test]
fn an_interval_semi_join_visits_a_row_once() {
    for condition in [false, true] {
        let (out, t) = interval(condition, true);
        assert_eq!(out, MANY as usize);
        assert_eq!((buckets(&t, 0), buckets(&t, 1)), ((MANY as u64, 0), (MANY as u64, 0)));
    }
}

#[test]
fn an_interval_anti_join_visits_a_row_once() {
    let (out, mut t) = interval(false, false);
    assert_eq!(out, 0);
    // A day later there is a row with no partner.
    t.send("a", row("a", 86_400_000)).end_all();
    assert_eq!(kinds(&mut t), (1, 0));
    assert_eq!((buckets(&t, 0), buckets(&t, 1)), ((MANY as u64, 1), (MANY as u64, 0)));
}

// A window of a thousand seconds has fired with a row of each input, and very many come late.
fn late(times: impl Fn(i64) -> i64, build: impl Fn(&Flow)) -> TestFlow {
    let mut t = TestFlow::new(build);
    send(&mut t, "a", [0].into_iter());
    send(&mut t, "b", [0].into_iter());
    wm(&mut t, 1_000_000);
    send(&mut t, "a", (1..MANY).map(times));
    t
}

#[test]
fn a_late_row_of_a_window_costs_the_results_that_it_makes() {
    let mut t = late(
        |n| scattered(n, MANY),
        |flow| {
            let join = rows(flow, "a").window_join(rows(flow, "b").optional()).tumbling(secs(1_000)).named("j");
            let out = join.allowed_lateness(hours(1)).select(|a, b| format!("{} {}", a.name, name(b)));
            out.sink_to(TestSink::new("out"));
        },
    );
    assert_eq!(kinds(&mut t), (MANY as usize, 0));
    t.end_all();
    assert_eq!((buckets(&t, 0), buckets(&t, 1)), ((MANY as u64, 0), (1, 0)));
}

#[test]
fn a_late_row_of_a_test_asks_for_one_partner_and_not_for_all() {
    for exists in [true, false] {
        let mut t = late(
            |n| scattered(n, MANY),
            |flow| {
                let (a, b) = (rows(flow, "a"), rows(flow, "b"));
                macro_rules! finish {
                    ($join:expr) => {{
                        let join = $join.on(|_, _| true).sliding(secs(1_000), secs(500)).named("j");
                        join.allowed_lateness(hours(1)).into_rows().sink_to(TestSink::new("out"));
                    }};
                }
                match exists {
                    true => finish!(a.where_exists(b)),
                    false => finish!(a.where_not_exists(b)),
                }
            },
        );
        send(&mut t, "b", (1..MANY).map(|n| scattered(n, MANY)));
        // Each row is in two windows that have fired, and has partners in both.
        assert_eq!(kinds(&mut t), (if exists { 2 * MANY as usize } else { 0 }, 0));
        t.end_all();
        assert_eq!((buckets(&t, 0), buckets(&t, 1)), ((MANY as u64, 0), (MANY as u64, 0)));
    }
}

#[test]
fn a_late_row_of_a_session_costs_the_results_that_it_makes() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).session(secs(400)).named("j");
        let out = join.allowed_lateness(hours(10)).select(|a, b| format!("{} {}", a.name, b.name));
        out.sink_to(TestSink::new("out"));
    };
    let mut t = TestFlow::new(flow);
    send(&mut t, "a", [0].into_iter());
    send(&mut t, "b", [0].into_iter());
    wm(&mut t, 500_000);
    send(&mut t, "a", (1..MANY).map(|n| scattered(n, MANY)));
    assert_eq!(kinds(&mut t), (MANY as usize, 0));
    // Each of these makes the session longer, and it fires again: it says what is new, and not all that it was.
    for n in 0..1_000 {
        send(&mut t, "a", [100_001 + n * 100].into_iter());
        wm(&mut t, 500_001 + n * 100);
    }
    assert_eq!(kinds(&mut t), (1_000, 0));
    t.end_all();
    assert_eq!((buckets(&t, 0), buckets(&t, 1)), ((MANY as u64 + 1_000, 0), (1, 0)));
}

// One after the other, rows bridge sessions that have fired into one, from the newest to the oldest.
#[test]
fn a_session_that_takes_in_others_says_what_they_make_together() {
    let mut t = TestFlow::new(|flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b").optional()).session(secs(10)).named("j");
        let out = join.allowed_lateness(hours(1_000)).select(|a, b| format!("{} {}", a.name, name(b)));
        out.sink_to(TestSink::new("out"));
    });
    let many = MANY / 2;
    send(&mut t, "a", (0..many).map(|n| 15_000 * scattered(n, many)));
    wm(&mut t, 15_000 * many);
    assert_eq!(kinds(&mut t), (many as usize, 0));
    send(&mut t, "a", (1..many).rev().map(|n| 15_000 * n - 7_500));
    assert_eq!(kinds(&mut t), (many as usize - 1, 0));
    t.end_all();
    assert_eq!(buckets(&t, 0), (0, 2 * many as u64 - 1));
}

// By event time rows expire in another order than they came in.
#[test]
fn rows_expire_and_are_taken_back_in_any_order() {
    let mut t = TestFlow::new(|flow| {
        let join = rows(flow, "a").join(rows(flow, "b").optional().emit(Final)).ttl(secs(1_000).on(Clock::Event));
        join.named("j").select(|a, b| format!("{} {}", a.name, name(b))).sink_to(TestSink::new("out"));
    });
    send(&mut t, "a", (0..MANY).map(|n| scattered(n, MANY)));
    wm(&mut t, 1_000_000 + MANY / 2);
    assert_eq!(kinds(&mut t), (MANY as usize / 2 + 1, 0));
    t.end_all();
    assert_eq!((kinds(&mut t), t.figures("j").accounts[0].open), ((MANY as usize / 2 - 1, 0), 0));
}

#[test]
fn rows_whose_expiry_takes_back_what_they_gave_leave_in_any_order() {
    let mut t = TestFlow::new(|flow| {
        let join = rows(flow, "a").join(rows(flow, "b")).ttl(secs(1_000).on(Clock::Event)).on_expiry(Retract);
        join.named("j").select(|a, b| format!("{} {}", a.name, b.name)).sink_to(TestSink::new("out"));
    });
    send(&mut t, "a", (0..MANY).map(|n| scattered(n, MANY)));
    send(&mut t, "b", [MANY].into_iter());
    for part in 0..MANY / 5_000 {
        wm(&mut t, 1_000_000 + part * 5_000);
    }
    assert_eq!(kinds(&mut t), (MANY as usize, MANY as usize - 4_999));
}

#[test]
fn a_watermark_that_goes_far_is_told_behind_all_that_it_makes() {
    let flow = |flow: &Flow| {
        let first = rows(flow, "a").window_join(rows(flow, "b")).tumbling(secs(1)).named("j");
        let made = first.select(|a, b| Row { key: a.key, name: b.name.clone(), at: a.at });
        let last = made.key_by(|row| row.key).where_exists(rows(flow, "c")).between(-hours(1), hours(1)).named("last");
        last.into_rows().sink_to(TestSink::new("out"));
    };
    for tasks in [1, 2] {
        let mut t = TestFlow::parallel(tasks, flow);
        t.send("c", row("c", 0)).end("c");
        for second in 0..10i64 {
            send(&mut t, "a", (0..100).map(|n| second * 1_000 + n));
            send(&mut t, "b", (0..100).map(|n| second * 1_000 + n));
        }
        wm(&mut t, 1_000_000);
        let last = t.figures("last").accounts[0];
        assert_eq!((last.rows, last.late, last.matched), (100_000, 0, 100_000));
        t.end_all();
        assert_eq!(kinds(&mut t), (100_000, 0));
    }
}

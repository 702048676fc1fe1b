//! A change with very many matches: they go on as they are made, and who takes them slowly holds the join back.

use flowjoin::op::{Cx, InputId, Operator, Outbox, Port};
use flowjoin::plan::{Build, BuildCx};
use flowjoin::prelude::*;
use flowjoin::{AnyBatch, KeyedBatch, KeyedRow, ProcTime, RowKind, Watermark, millis};
use flowjoin_testkit::{TestSink, TestSource};

use super::script::{Row, rows};

fn join(build: impl Fn(&Flow)) -> Box<dyn Operator> {
    let flow = Flow::new("test");
    build(&flow);
    let plan = flow.plan().expect("the flow can run");
    let node = plan.nodes().iter().find(|node| node.op.is_join()).expect("the flow joins");
    let Build::Operator(make) = &node.build else { unreachable!("a join is an operator") };
    let batching = flowjoin::op::key_by::Batching { rows_max: 1, linger: millis(1) };
    make(&BuildCx { task: 0, tasks: 1, batching, tables: 0, now: ProcTime::default() })
}

fn batch(count: usize) -> AnyBatch {
    let mut batch = KeyedBatch::<Option<u64>, Row>::default();
    for n in 0..count {
        let row = Row { key: Some(7), name: n.to_string(), at: EventTime::from_millis(0) };
        batch.push(KeyedRow { key: Some(7), hash: 77, time: row.at, row }, RowKind::Insert);
    }
    AnyBatch::new(batch)
}

// What a join is called for first.
#[derive(Clone, Copy)]
enum First {
    // So many rows of an input.
    Rows(usize, usize),
    // A watermark.
    At(Watermark),
}

// The rows that came out of a call, and the most that came out at once; on the main output and the unmatched ones.
fn play(op: &mut dyn Operator, first: First) -> (usize, usize) {
    let (mut all, mut most) = (0, 0);
    let mut out = Outbox::new(0b111);
    out.limit(true);
    let mut first = Some(first);
    while first.is_some() || op.has_more() {
        let watermark = if let Some(First::At(watermark)) = first { watermark } else { Watermark::NONE };
        let mut cx = Cx { now: ProcTime::from_millis(0), watermark, out: &mut out };
        match first.take() {
            Some(First::Rows(input, rows)) => op.on_batch(InputId(input), batch(rows), &mut cx),
            Some(First::At(_)) => op.on_watermark(&mut cx),
            None => op.on_more(&mut cx),
        }
        .expect("the join goes on");
        let sent: usize = out.take_sent().iter().filter(|(port, _)| *port <= Port(2)).map(|(_, it)| it.len()).sum();
        all += sent;
        most = most.max(sent);
    }
    (all, most)
}

// Plays this into a join, and says how many rows come out at each step, none of them many at once.
fn played(build: impl Fn(&Flow), steps: &[First]) -> Vec<usize> {
    let mut op = join(build);
    let count = |&step: &First| {
        let (all, most) = play(op.as_mut(), step);
        assert!(most < 20_000, "{most} rows came out in one call");
        all
    };
    steps.iter().map(count).collect()
}

#[test]
fn the_matches_of_a_batch_come_out_in_parts() {
    for condition in [false, true] {
        let mut op = join(|flow| {
            let join = rows(flow, "a").join(rows(flow, "b").optional());
            let out = TestSink::new("out");
            match condition {
                true => join.on(|_, _| true).keep_forever().select(|a, _| a.name.clone()).sink_to(out),
                false => join.keep_forever().select(|a, _| a.name.clone()).sink_to(out),
            }
        });
        assert_eq!(play(op.as_mut(), First::Rows(0, 1_000)).0, 1_000);
        let (all, most) = play(op.as_mut(), First::Rows(1, 300));
        // The gaps of the left rows are taken back, and each row of one side meets each of the other.
        assert_eq!(all, 1_000 + 300_000);
        assert!(most < 20_000, "{most} rows came out in one call");
    }
}

const END: First = First::At(Watermark::END);

#[test]
fn the_pairs_of_an_interval_join_and_the_rows_that_leave_come_out_in_parts() {
    let pairs = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b")).between(millis(0), millis(10));
        join.select(|a, _| a.name.clone()).sink_to(TestSink::new("out"));
    };
    assert_eq!(played(pairs, &[First::Rows(0, 1_000), First::Rows(1, 300), END]), [0, 300_000, 0]);
    // Left rows come out padded, right ones aside.
    let alone = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b").optional()).between(millis(10), millis(20));
        let (out, (_, right)) = join.select_with_unmatched(|a, _| a.name.clone());
        out.sink_to(TestSink::new("out"));
        right.map(|it| it.row.name).sink_to(TestSink::new("aside"));
    };
    assert_eq!(played(alone, &[First::Rows(0, 60_000), First::Rows(1, 60_000), END]), [0, 0, 120_000]);
}

#[test]
fn what_the_windows_of_a_watermark_make_comes_out_in_parts() {
    for session in [false, true] {
        let flow = |flow: &Flow| {
            let join = rows(flow, "a").window_join(rows(flow, "b"));
            let join = if session { join.session(millis(10)) } else { join.sliding(millis(10), millis(5)) };
            let (out, (left, _)) = join.select_with_unmatched(|a, _| a.name.clone());
            out.sink_to(TestSink::new("out"));
            left.map(|it| it.row.name).sink_to(TestSink::new("aside"));
        };
        let windows = if session { 1 } else { 2 };
        let steps = [First::Rows(0, 700), First::Rows(1, 500), END];
        assert_eq!(played(flow, &steps), [0, 0, windows * 350_000]);
        assert_eq!(played(flow, &[First::Rows(0, 90_000), END]), [0, 90_000]);
    }
}

#[test]
fn late_rows_of_a_window_say_what_they_change_in_parts() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).tumbling(millis(10)).allowed_lateness(secs(1));
        join.select(|a, _| a.name.clone()).sink_to(TestSink::new("out"));
    };
    let at = First::At(Watermark::at(EventTime::from_millis(20)));
    let steps = [First::Rows(0, 1_000), at, First::Rows(1, 300), END];
    assert_eq!(played(flow, &steps), [0, 0, 300_000, 0]);
}

#[test]
fn the_probes_of_a_watermark_come_out_in_parts() {
    let flow = |flow: &Flow| {
        let join = rows(flow, "a").temporal_join(super::script::table(flow, "b").optional());
        join.select(|a, _| a.name.clone()).sink_to(TestSink::new("out"));
    };
    assert_eq!(played(flow, &[First::Rows(0, 90_000), END]), [0, 90_000]);
    // Those that are kept to be corrected come out aside when they no longer are.
    let corrected = |flow: &Flow| {
        let join = rows(flow, "a").temporal_join(super::script::table(flow, "b")).correct_late(secs(1));
        let (out, left) = join.select_with_unmatched(|a, _| a.name.clone());
        out.sink_to(TestSink::new("out"));
        left.map(|it| it.row.name).sink_to(TestSink::new("aside"));
    };
    let at = First::At(Watermark::at(EventTime::from_millis(20)));
    assert_eq!(played(corrected, &[First::Rows(0, 90_000), at, END]), [0, 0, 90_000]);
}

#[test]
fn what_waits_behind_many_matches_comes_after_them_and_whole() {
    let mut t = flowjoin_testkit::TestFlow::new(|flow| {
        let left = flow.stream::<Row>(TestSource::new("a")).key_by(|row| row.key);
        let join = left.join(rows(flow, "b").optional()).keep_forever();
        join.select(|a, b| (a.name.clone(), b.map(|b| b.name.clone()))).sink_to(TestSink::new("out"));
    });
    let many = |name: &str, count: usize| -> Vec<Row> {
        let row = |n| Row { key: Some(1), name: format!("{name}{n}"), at: EventTime::from_millis(0) };
        (0..count).map(row).collect()
    };
    t.send_all("a", many("a", 400)).send_all("b", many("b", 100)).end_all();
    let out = t.take("out");
    let adds = out.iter().filter(|row| row.kind.adds()).count();
    assert_eq!((out.len(), adds), (400 + 400 + 40_000, 400 + 40_000));
}

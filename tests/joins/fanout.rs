//! A change with very many matches: they go on as they are made, and who takes them slowly holds the join back.

use flowjoin::op::{Cx, InputId, Operator, Outbox, Port};
use flowjoin::plan::{Build, BuildCx, Op};
use flowjoin::prelude::*;
use flowjoin::{AnyBatch, KeyedBatch, KeyedRow, ProcTime, RowKind, Watermark, millis};
use flowjoin_testkit::{TestSink, TestSource};

use super::script::{Row, rows};

fn join(build: impl Fn(&Flow)) -> Box<dyn Operator> {
    let flow = Flow::new("test");
    build(&flow);
    let plan = flow.plan().expect("the flow can run");
    let node = plan.nodes().iter().find(|node| matches!(node.op, Op::MultiJoin { .. })).expect("the flow joins");
    let Build::Operator(make) = &node.build else { unreachable!("a join is an operator") };
    let batching = flowjoin::op::key_by::Batching { rows_max: 1, linger: millis(1) };
    make(&BuildCx { task: 0, tasks: 1, batching, tables: 0 })
}

fn batch(count: usize) -> AnyBatch {
    let mut batch = KeyedBatch::<Option<u64>, Row>::default();
    for n in 0..count {
        let row = Row { key: Some(7), name: n.to_string(), at: EventTime::from_millis(0) };
        batch.push(KeyedRow { key: Some(7), hash: 77, time: row.at, row }, RowKind::Insert);
    }
    AnyBatch::new(batch)
}

// The rows that came out of a call, and the most that came out at once.
fn play(op: &mut dyn Operator, input: usize, rows: usize) -> (usize, usize) {
    let (mut all, mut most) = (0, 0);
    let mut out = Outbox::new(1);
    out.limit(true);
    let mut first = Some(batch(rows));
    while first.is_some() || op.has_more() {
        let mut cx = Cx { now: ProcTime::from_millis(0), watermark: Watermark::NONE, out: &mut out };
        match first.take() {
            Some(batch) => op.on_batch(InputId(input), batch, &mut cx).expect("the join takes rows"),
            None => op.on_more(&mut cx).expect("the join goes on"),
        }
        let sent: usize = out.take_sent().iter().filter(|(port, _)| *port == Port::MAIN).map(|(_, it)| it.len()).sum();
        all += sent;
        most = most.max(sent);
    }
    (all, most)
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
        assert_eq!(play(op.as_mut(), 0, 1_000).0, 1_000);
        let (all, most) = play(op.as_mut(), 1, 300);
        // The gaps of the left rows are taken back, and each row of one side meets each of the other.
        assert_eq!(all, 1_000 + 300_000);
        assert!(most < 20_000, "{most} rows came out in one call");
    }
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

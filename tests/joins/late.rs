//! Late rows of every kind of join: how late they were, on which input, and of which join.

use super::script::{Row, rows, sink, table};
use flowjoin::prelude::*;
use flowjoin_testkit::TestFlow;

fn sink_late(late: Stream<Late<Row>>) {
    let told = |late: &Late<Row>| {
        let Late { row, watermark, late_by, input, operator } = late;
        format!("{} on {input} of {operator}, {late_by} behind {}", row.name, watermark.as_millis())
    };
    late.map(move |late| told(&late)).sink_to(sink("late"));
}

// What comes of a row of input `b` that is seven milliseconds behind the watermark.
#[track_caller]
fn check(build: impl Fn(&Flow), source: &str, expected: &str) {
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, &build);
        let sources: Vec<String> = t.plan().nodes().iter().map(|node| node.name.clone()).collect();
        for name in sources.iter().filter(|name| ["a", "b", "c", "t"].contains(&name.as_str())) {
            t.watermark(name, EventTime::from_millis(100));
        }
        let row = |name: &str, at| Row { key: Some(1), name: name.to_string(), at: EventTime::from_millis(at) };
        t.send(source, row("late", 93)).send(source, row("in time", 100)).end_all();
        assert_eq!(t.text("late"), format!("+I {expected}"), "with {tasks} tasks a stage");
    }
}

#[test]
fn a_late_row_is_told_with_its_lateness_its_input_and_its_join() {
    let regular = |flow: &Flow| {
        let join = rows(flow, "a").join(rows(flow, "b").optional()).keep_forever();
        sink_late(join.late().1);
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    };
    check(regular, "b", "late on b of a-b-join, 7ms behind 100");
    let multi = |flow: &Flow| {
        let join = multi_join![rows(flow, "a"), rows(flow, "b"), rows(flow, "c")].ttl(hours(1)).named("three");
        sink_late(join.late().2);
        join.select(|a, _, _| a.name.clone()).sink_to(sink("out"));
    };
    check(multi, "c", "late on c of three, 7ms behind 100");
    let interval = |flow: &Flow| {
        let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-millis(5), millis(5));
        sink_late(join.late().0);
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    };
    check(interval, "a", "late on a of a-b-interval, 7ms behind 100");
    // The windows of the row are over, and the last of them has been for three milliseconds only.
    let window = |flow: &Flow| {
        let join = rows(flow, "a").window_join(rows(flow, "b")).sliding(millis(4), millis(2)).named("windows");
        sink_late(join.late().1);
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    };
    check(window, "b", "late on b of windows, 7ms behind 100");
}

#[test]
fn so_is_a_late_row_that_asks_a_table() {
    let temporal = |flow: &Flow| {
        let join = rows(flow, "a").temporal_join(table(flow, "t")).named("as of");
        sink_late(join.late());
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    };
    check(temporal, "a", "late on a of as of, 7ms behind 100");
    let snapshot = |flow: &Flow| {
        let join = rows(flow, "a").snapshot_join(table(flow, "t"));
        sink_late(join.late());
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    };
    check(snapshot, "a", "late on a of a-t-snapshot, 7ms behind 100");
}

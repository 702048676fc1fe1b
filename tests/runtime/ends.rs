//! How flows end: by themselves, stopped from outside, with inputs that are empty, idle, or end one by one.

use super::flow::*;
use flowjoin::connectors::{FromStream, Generate, Memory, MemorySink, ToChannel};
use flowjoin::prelude::*;
use flowjoin::{Account, Unmatched};
use futures::StreamExt;
use tokio::sync::mpsc;

#[test]
fn the_answer_and_the_accounting_are_the_same_on_any_number_of_tasks() {
    let answer = |tasks: usize| {
        let (pairs, lonely, stray) = (MemorySink::new("pairs"), MemorySink::new("lonely"), MemorySink::new("stray"));
        let sinks = (pairs.clone(), lonely.clone(), stray.clone());
        let report = run_flow(tasks, move |flow| {
            let (lefts, rights) = generated(flow, 3);
            let join = lefts.join(rights).keep_forever().named("join");
            let (both, (left, right)) = join.select_with_unmatched(|a, b| (a.id, b.at));
            both.sink_to(sinks.0);
            left.map(|left: Unmatched<Left>| (left.row.id, left.reason.to_string())).sink_to(sinks.1);
            right.map(|right: Unmatched<Right>| right.row.id).sink_to(sinks.2);
        })
        .unwrap();
        assert!(report.is_balanced() && !report.stopped, "{report}");
        let accounts = (account(&report, "join", 0), account(&report, "join", 1), account(&report, "lefts", 0));
        (standing(&pairs), standing(&lonely), standing(&stray), accounts)
    };
    let (pairs, lonely, stray, accounts) = answer(1);
    assert_eq!(pairs, (0..334).map(|i| (3 * i, 3 * i as i64)).collect::<Vec<_>>());
    let alone = (0..1_000).filter(|id| id % 3 != 0).map(|id| (id, "end_of_input".to_string()));
    assert_eq!(lonely, alone.collect::<Vec<_>>());
    assert_eq!(stray, (334..434).map(|i| 10_000 + i).collect::<Vec<u64>>());
    let expected = (
        Account { rows: 1_000, matched: 334, unmatched: 666, ..Account::default() },
        Account { rows: 434, matched: 334, unmatched: 100, ..Account::default() },
        Account { rows: 1_000, matched: 1_000, ..Account::default() },
    );
    assert_eq!(accounts, expected);
    for tasks in [2, 4] {
        assert_eq!(answer(tasks), (pairs.clone(), lonely.clone(), stray.clone(), expected), "{tasks} tasks");
    }
}

#[test]
fn a_changelog_leaves_the_same_standing_on_any_number_of_tasks() {
    let answer = |tasks: usize| {
        let out = MemorySink::new("out");
        let sink = out.clone();
        let report = run_flow(tasks, move |flow| {
            let (lefts, rights) = generated(flow, 2);
            let join = lefts.join(rights.optional()).ttl(hours(1)).named("join");
            join.select(|a, b| (a.id, b.map(|b| b.at))).sink_to(sink);
        });
        assert!(report.unwrap().is_balanced());
        standing(&out)
    };
    let expected: Vec<(u64, Option<i64>)> = (0..1_000).map(|i| (i, (i % 3 == 0).then_some(i as i64))).collect();
    for tasks in [1, 2, 4] {
        assert_eq!(answer(tasks), expected, "{tasks} tasks");
    }
}

#[test]
fn empty_inputs_end_at_once() {
    for tasks in [1, 4] {
        let out = MemorySink::new("out");
        let sink = out.clone();
        let report = run_flow(tasks, |flow| {
            let lefts = flow.stream(Memory::<Left>::rows("lefts", Vec::new())).keyed();
            let rights = flow.stream(Memory::<Right>::partitions("rights", vec![Vec::new(); 3])).keyed();
            let join = lefts.optional().interval_join(rights.optional()).between(secs(0), secs(1)).named("join");
            join.into_tuples().sink_to(sink);
        });
        assert_eq!(account(&report.unwrap(), "join", 0), Account::default());
        assert!(out.changes().is_empty());
    }
}

#[test]
fn an_unmatched_row_comes_out_although_the_other_input_never_says_a_word() {
    run(async {
        let (to, mut out) = mpsc::channel(16);
        let flow = Flow::new("test");
        let lefts = futures::stream::iter([left(1), left(10_000_000)]).chain(futures::stream::pending());
        let lefts = flow.stream(FromStream::new("lefts", lefts)).keyed();
        let rights = flow.stream(FromStream::new("rights", futures::stream::pending::<Right>())).keyed();
        let join = lefts.interval_join(rights.optional()).between(secs(0), secs(1)).named("join");
        join.select(|a, b| (a.id, b.is_some())).sink_to(ToChannel::rows("out", to));
        let running = flow.start(quiet(2)).unwrap();
        // `rights` is idle after 50 ms, and then the watermark of `lefts` alone counts.
        assert_eq!(out.recv().await, Some((1, false)));
        running.stop();
        let report = running.wait().await.unwrap();
        assert_eq!(account(&report, "join", 0), Account { rows: 2, unmatched: 1, open: 1, ..Account::default() });
    });
}

#[test]
fn a_partition_that_has_ended_holds_nothing_back() {
    run(async {
        let (to, mut out) = mpsc::channel(16);
        let flow = Flow::new("test");
        let short = futures::stream::iter([left(1)]).boxed();
        let long = futures::stream::iter([left(2), left(10_000_000)]).chain(futures::stream::pending()).boxed();
        let lefts = flow.stream(FromStream::partitions("lefts", [short, long])).keyed();
        let rights = flow.stream(Memory::<Right>::rows("rights", vec![right(7)])).keyed();
        let join = lefts.interval_join(rights.optional()).between(secs(0), secs(1)).named("join");
        join.select(|a, b| (a.id, b.is_some())).sink_to(ToChannel::rows("out", to));
        let running = flow.start(quiet(2)).unwrap();
        let mut got = [out.recv().await, out.recv().await];
        got.sort();
        assert_eq!(got, [Some((1, false)), Some((2, false))]);
        running.stop();
        assert!(running.wait().await.unwrap().is_balanced());
    });
}

#[test]
fn a_flow_that_is_stopped_writes_what_was_read_and_leaves_the_rest_open() {
    run(async {
        let flow = Flow::new("test");
        let out = MemorySink::new("out");
        let (to, mut tap) = mpsc::channel(100_000);
        let lefts = flow.stream(Generate::new("lefts", left));
        lefts.clone().map(|left| left.id).sink_to(ToChannel::rows("tap", to));
        let rights = flow.stream(Generate::new("rights", |i| right(2 * i)));
        let join = lefts.keyed().join(rights.keyed()).keep_forever().named("join");
        let (both, (lonely, _)) = join.select_with_unmatched(|a, b| (a.id, b.id));
        both.sink_to(out.clone());
        lonely.map(|lonely| lonely.row.id).sink_to(MemorySink::new("lonely"));
        let running = flow.start(quiet(2)).unwrap();
        assert!(tap.recv().await.is_some());
        running.stop();
        let drain = tokio::spawn(async move { while tap.recv().await.is_some() {} });
        let report = running.wait().await.unwrap();
        drain.await.unwrap();
        assert!(report.is_balanced() && report.stopped, "{report}");
        let (left_side, right_side) = (account(&report, "join", 0), account(&report, "join", 1));
        // All that was read has gone through the join, and what met a partner has been written.
        assert_eq!(left_side.rows, account(&report, "lefts", 0).rows);
        assert_eq!(right_side.rows, account(&report, "rights", 0).rows);
        assert_eq!(out.changes().len() as u64, left_side.matched);
        assert_eq!(left_side.matched, left_side.rows.div_ceil(2).min(right_side.rows));
        // Nothing is called unmatched, since its partner may just not have been read.
        assert_eq!((left_side.unmatched, left_side.open), (0, left_side.rows - left_side.matched));
        assert_eq!(account(&report, "lonely", 0).rows, 0);
    });
}

#[test]
fn a_flow_is_watched_while_it_runs() {
    run(async {
        let (to, mut out) = mpsc::channel(1);
        let flow = Flow::new("test");
        let lefts = flow.stream(Generate::new("lefts", left).rate(2_000));
        lefts.sink_to(ToChannel::rows("out", to));
        let running = flow.start(quiet(1)).unwrap();
        let mut seen = Vec::new();
        while seen.len() < 2 {
            assert!(out.recv().await.is_some());
            let rows = account(&running.figures(), "lefts", 0).rows;
            if rows > seen.last().copied().unwrap_or(0) {
                seen.push(rows);
            }
        }
        let figures = running.figures();
        assert!(figures.is_balanced() && figures.elapsed > std::time::Duration::ZERO);
        running.stop();
        drop(out);
        let _ = running.wait().await;
    });
}

#[test]
fn the_end_tells_how_long_rows_waited_and_so_does_the_plan() {
    for tasks in [1, 3] {
        let report = run_flow(tasks, |flow| {
            let lefts = flow.stream(Generate::new("lefts", left).count(1_000)).keyed();
            let rights = Generate::new("later", |i| Right { id: 3 * i, at: 3 * i as i64 + 20 }).count(334);
            let join = lefts.join(flow.stream(rights).keyed()).named("waits").ttl(hours(1).on(Clock::Event));
            join.select(|left, _| left.id).sink_to(MemorySink::new("out"));
        })
        .unwrap();
        let line = "lefts waiting for later: half of 334 matches within 20ms, 99 % within 20ms, all that were seen within \
                    20ms (event time); a ttl of 30m would have lost nothing";
        assert!(report.to_string().contains(&format!("join waits: {line}\n")), "{report}");
        assert!(report.explain().to_string().contains(&format!("in a run: {line}\n")), "{}", report.explain());
        let delays = report.step("waits").and_then(|step| step.delays.as_ref()).expect("its rows expire");
        let waits: Vec<_> = delays.pairs.iter().map(|it| (it.waits, it.comes, it.delays.count(), it.missed)).collect();
        assert_eq!((waits, delays.one_in), (vec![(0, 1, 334, 0)], 1));
    }
}

//! How long rows wait for each other, what a shorter time-to-live would lose, and what one has lost.

use super::script::{Row, rows, sink, table};
use flowjoin::delays::Histogram;
use flowjoin::plan::explain::Explain;
use flowjoin::prelude::*;
use flowjoin_testkit::TestFlow;

fn row(key: u64, at: i64) -> Row {
    Row { key: Some(key), name: format!("{key}"), at: EventTime::from_millis(1_000 * at) }
}

fn by_clock(flow: &Flow) {
    let join = rows(flow, "a").join(rows(flow, "b").optional()).named("j").ttl(minutes(1));
    join.select(|a, _| a.name.clone()).sink_to(sink("out"));
}

fn by_watermark(flow: &Flow) {
    let join =
        multi_join![rows(flow, "a"), rows(flow, "b"), rows(flow, "c")].named("j").ttl(minutes(1).on(Clock::Event));
    join.select(|a, _, _| a.name.clone()).sink_to(sink("out"));
}

// Who waited for whom, how often, and from how many seconds to how many.
fn told(t: &TestFlow) -> Vec<(usize, usize, u64, [i64; 2])> {
    let seconds = |span: Option<Span>| span.map_or(-1, |span| span.as_millis() / 1_000);
    let ends = |delays: &Histogram| [seconds(delays.least()), seconds(delays.most())];
    t.delays("j").pairs.iter().map(|it| (it.waits, it.comes, it.delays.count(), ends(&it.delays))).collect()
}

fn missed(t: &TestFlow, waits: usize, comes: usize) -> u64 {
    t.delays("j").pair(waits, comes).map_or(0, |pair| pair.missed)
}

#[test]
fn by_the_clock_of_the_machine_the_row_that_came_first_waits() {
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, by_clock);
        t.send("a", row(1, 500)).send("a", row(2, 500)).advance_processing(secs(2)).send("b", row(1, 0));
        assert_eq!(told(&t), [(0, 1, 1, [2, 2])]);
        t.advance_processing(secs(38)).send("b", row(2, 900)).send("b", row(3, 0));
        assert_eq!(told(&t), [(0, 1, 2, [2, 40])]);
        let delays = t.delays("j");
        let pair = delays.pair(0, 1).unwrap();
        assert_eq!((pair.delays.lost_by(secs(3)), pair.delays.lost_by(secs(30))), (0.5, 0.5));
        assert_eq!((pair.delays.lost_by(minutes(1)), pair.limit, pair.clock), (0.0, minutes(1), Clock::Processing));
        // Each row with each of its partners, once.
        t.advance_processing(secs(5)).send("a", row(3, 0)).advance_processing(secs(1)).send("b", row(3, 1));
        assert_eq!(told(&t), [(0, 1, 3, [1, 40]), (1, 0, 1, [5, 5])]);
    }
}

#[test]
fn by_event_time_the_earlier_row_waits_and_only_for_the_row_that_completes_the_match() {
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, by_watermark);
        t.send("a", row(1, 30)).send("c", row(1, 31)).advance_processing(hours(1));
        assert_eq!(told(&t), []);
        t.send("b", row(1, 10));
        assert_eq!(told(&t), [(1, 0, 1, [20, 20]), (1, 2, 1, [21, 21])]);
        // Another row of `c` waits for nobody: both of its partners are older, and have waited for it.
        t.send("c", row(1, 45));
        assert_eq!(told(&t), [(0, 2, 1, [15, 15]), (1, 0, 1, [20, 20]), (1, 2, 2, [21, 35])]);
    }
}

#[test]
fn a_row_that_is_written_again_has_waited_since_then() {
    let mut t = TestFlow::new(by_clock);
    t.send("a", row(5, 0)).advance_processing(secs(30)).send("a", row(5, 0)).advance_processing(secs(40));
    t.send("b", row(5, 0));
    assert_eq!(told(&t), [(0, 1, 2, [40, 40])]);
}

#[test]
fn only_what_fulfils_the_condition_is_a_match() {
    let named = |key: u64, name: &str| Row { name: name.to_string(), ..row(key, 0) };
    let joined = |flow: &Flow| {
        let join = rows(flow, "a").join(rows(flow, "b")).on(|a, b| a.name == b.name).named("j").ttl(minutes(1));
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    };
    let exists = |flow: &Flow| {
        let join = rows(flow, "a").where_exists(rows(flow, "b")).on(|a, b| a.name == b.name).named("j");
        join.ttl(minutes(1)).into_rows().sink_to(sink("out"));
    };
    let not_exists = |flow: &Flow| {
        let join = rows(flow, "a").where_not_exists(rows(flow, "b")).on(|a, b| a.name == b.name).named("j");
        join.ttl(minutes(1)).into_rows().sink_to(sink("out"));
    };
    for mut t in [TestFlow::new(joined), TestFlow::new(exists), TestFlow::new(not_exists)] {
        t.send("a", named(1, "x")).advance_processing(secs(1)).send("b", named(1, "y"));
        assert_eq!(told(&t), []);
        t.advance_processing(secs(1)).send("b", named(1, "x")).advance_processing(secs(1)).send("a", named(1, "y"));
        assert_eq!(told(&t), [(0, 1, 1, [2, 2]), (1, 0, 1, [2, 2])]);
    }
}

#[test]
fn rows_that_come_for_one_that_has_expired_are_counted() {
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, by_clock);
        t.send("a", row(1, 0)).send("a", row(2, 0)).send("a", row(3, 0)).advance_processing(secs(30));
        // One has a second row that is younger.
        t.send("a", row(2, 1)).advance_processing(secs(30));
        t.send("b", row(1, 0)).send("b", row(2, 0)).send("b", row(4, 0));
        assert_eq!((missed(&t, 0, 1), missed(&t, 1, 0)), (1, 0));
        // Where there is a row again, none is missed.
        t.send("a", row(3, 2)).send("b", row(3, 2));
        assert_eq!(missed(&t, 0, 1), 1);
        // Those of the other side expire too; of the row that came too late, none was there.
        t.advance_processing(minutes(2)).send("a", row(4, 3)).send("a", row(9, 3));
        assert_eq!((missed(&t, 0, 1), missed(&t, 1, 0)), (1, 1));
    }
}

#[test]
fn a_table_that_is_kept_for_ever_waits_for_nothing() {
    let mut t = TestFlow::new(|flow| {
        let join = rows(flow, "a").ttl(minutes(1)).join(table(flow, "t")).named("j").keep_forever();
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    });
    t.put("t", row(1, 0)).advance_processing(secs(7)).send("a", row(1, 0));
    assert_eq!(told(&t), []);
    t.advance_processing(secs(2)).put("t", row(1, 1));
    assert_eq!(told(&t), [(0, 1, 1, [2, 2])]);
}

#[test]
fn where_nothing_expires_nothing_is_taken() {
    let mut t = TestFlow::new(|flow| {
        let join = rows(flow, "a").join(rows(flow, "b")).named("j").keep_forever();
        join.select(|a, _| a.name.clone()).sink_to(sink("out"));
    });
    t.send("a", row(1, 0)).send("b", row(1, 0));
    assert_eq!((t.delays("j").one_in, told(&t), t.take("out").len()), (0, vec![], 1));
}

#[test]
fn with_many_keys_a_sample_stands_for_all() {
    let mut t = TestFlow::parallel(2, by_clock);
    let keys = 40_000;
    t.send_all("a", (0..keys).map(|key| row(key, 0)).collect()).advance_processing(secs(5));
    t.send_all("b", (0..keys).filter(|key| key % 4 > 0).map(|key| row(key, 0)).collect());
    t.advance_processing(minutes(1));
    t.send_all("b", (0..keys).filter(|key| key % 4 == 0).map(|key| row(key, 0)).collect());
    let delays = t.delays("j");
    let pair = delays.pair(0, 1).unwrap();
    assert_eq!((delays.one_in, pair.delays.least(), pair.delays.most()), (256, Some(secs(5)), Some(secs(5))));
    // About 117 and 39 of them are looked at: four standard deviations are 37 % and 64 %.
    let near = |estimate: u64, exact: u64, percent: u64| estimate.abs_diff(exact) * 100 < exact * percent;
    assert!(near(pair.delays.count(), 30_000, 37), "{}", pair.delays.count());
    assert!(near(pair.missed, 10_000, 64), "{}", pair.missed);
}

#[test]
fn of_an_interval_join_it_is_told_which_differences_its_pairs_have() {
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, |flow| {
            let join = rows(flow, "a").interval_join(rows(flow, "b")).between(-secs(5), secs(15)).named("j");
            join.select(|a, _| a.name.clone()).sink_to(sink("out"));
        });
        t.send("a", row(1, 100)).send("b", row(1, 101)).send("b", row(1, 108)).send("b", row(1, 116));
        t.send("b", row(2, 100)).send("a", row(2, 102));
        assert_eq!(told(&t), [(0, 1, 2, [1, 8]), (1, 0, 1, [2, 2])]);
        let delays = t.delays("j");
        assert_eq!((delays.used(), delays.share_used()), (Some([-secs(2), secs(8)]), Some(0.5)));
    }
}

#[test]
fn explain_tells_what_a_run_has_shown() {
    let mut t = TestFlow::new(by_clock);
    t.send("a", row(1, 0)).send("a", row(2, 0)).advance_processing(secs(40)).send("b", row(1, 0));
    t.advance_processing(secs(40)).send("b", row(2, 0));
    let id = t.plan().nodes().iter().find(|node| node.name == "j").unwrap().id;
    let explain = Explain::of(t.plan()).after_run([(id, t.delays("j"))]);
    let text = explain.to_string();
    let lines: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("in a run: ").map(|(_, told)| told)).collect();
    assert_eq!(
        lines,
        [
            "a waiting for b: half of 1 matches within 40s, all that were seen within 40s (processing time); a ttl of 30s \
             would have lost 100 % at the most; 1 row of b came when that of a had expired",
            "waits are rounded up, by a sixteenth at the most; of the keys that expired about the last 16,384 that were \
             looked at are known, an input and task, so no fewer rows came too late"
        ]
    );
    assert!(explain.json().contains("\"waits\": [") && !Explain::of(t.plan()).json().contains("waits"));
}

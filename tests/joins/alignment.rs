//! Alignment: a source ahead of its group is not read, so that what a join holds for the others is bounded.

use flowjoin::prelude::*;
use flowjoin::{Progress, Watermark};
use flowjoin_testkit::{TestFlow, TestSink, TestSource};

/// Rows move their watermark as they come.
#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = at, max_future = "none", idle = "1m")]
struct Reading {
    key: u64,
    at: EventTime,
}

fn at(span: Span) -> EventTime {
    EventTime::from_millis(span.as_millis())
}

// A row an hour.
fn hourly(hour: i64) -> Reading {
    Reading { key: hour as u64, at: at(hours(hour)) }
}

fn join(flow: &Flow, align: impl Fn(Stream<Reading>) -> Stream<Reading>) {
    let [a, b] = ["a", "b"].map(|name| align(flow.stream(TestSource::new(name))).key_by(|row| row.key));
    let join = a.interval_join(b).between(-minutes(1), minutes(1)).named("j");
    join.select(|a, _| a.key).sink_to(TestSink::new("out"));
}

fn aligned(flow: &Flow) {
    join(flow, |source| source.align("hourly", hours(6)));
}

const MONTH: i64 = 30 * 24;

// The most rows held at any time, when one source sends a month before the other sends anything.
fn most_held(t: &mut TestFlow) -> u64 {
    let mut most = 0;
    let mut send = |t: &mut TestFlow, source: &str, hour: i64| {
        t.send(source, hourly(hour));
        most = most.max(t.figures("j").state_rows.iter().sum());
    };
    (0..MONTH).for_each(|hour| send(t, "a", hour));
    (0..MONTH).for_each(|hour| send(t, "b", hour));
    most
}

#[test]
fn a_source_a_month_ahead_fills_the_state_unless_it_is_aligned() {
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, |flow| join(flow, |source| source));
        assert_eq!((most_held(&mut t), t.take("out").len() as i64), (MONTH as u64 + 1, MONTH));
        let mut t = TestFlow::parallel(tasks, aligned);
        // Of the one ahead the hours of the drift, the row that went beyond it, and the pair of rows at the frontier.
        let most = most_held(&mut t);
        assert!(most <= 9, "{most}");
        assert_eq!((t.unread("a"), t.unread("b"), t.take("out").len() as i64), (0, 0, MONTH));
    }
}

#[test]
fn one_beyond_the_drift_waits_and_one_at_it_does_not() {
    let mut t = TestFlow::new(aligned);
    t.send("b", hourly(0));
    t.send("a", hourly(6)).send("a", hourly(7));
    assert_eq!(t.unread("a"), 0);
    t.send("a", hourly(7)).send("a", hourly(7));
    assert_eq!(t.unread("a"), 2);
    t.send("b", hourly(1));
    assert_eq!(t.unread("a"), 0);
}

#[test]
fn an_idle_or_ended_source_holds_nobody_and_one_that_wakes_does_again() {
    let mut t = TestFlow::new(aligned);
    t.send("b", hourly(0)).send("a", hourly(100)).send("a", hourly(101));
    assert_eq!(t.unread("a"), 1);
    t.advance_processing(minutes(1));
    assert_eq!(t.unread("a"), 0);
    t.say("b", Progress::Active).send("a", hourly(102));
    assert_eq!(t.unread("a"), 1);
    t.end("b");
    assert_eq!(t.unread("a"), 0);
}

#[test]
fn a_source_that_is_not_read_does_not_become_idle() {
    let mut t = TestFlow::new(aligned);
    t.send("b", hourly(0)).send("a", hourly(100)).send("a", hourly(101));
    for _ in 0..9 {
        t.advance_processing(secs(30)).send("b", hourly(0));
    }
    assert_eq!((t.unread("a"), t.take_progress("out").last()), (1, Some(&Progress::At(Watermark::at(at(hours(0)))))));
    // Were it idle, nobody would be active, and the frontier would be at its hundredth hour: this row would be late.
    t.say("b", Progress::Idle).say("b", Progress::Active);
    assert_eq!(t.unread("a"), 0);
}

#[test]
fn what_is_said_of_a_source_that_is_not_read_comes_after_its_rows() {
    let mut t = TestFlow::new(aligned);
    t.send("b", hourly(0)).send("a", hourly(50)).send("a", hourly(50)).end("a");
    assert_eq!(t.unread("a"), 2);
    t.send("b", hourly(50));
    assert_eq!(t.unread("a"), 0);
    assert_eq!((t.figures("j").accounts[0].rows, t.figures("j").accounts[0].late, t.take("out").len()), (2, 0, 2));
    t.end("b");
    assert_eq!(t.take_progress("out").last(), Some(&Progress::End));
}

#[test]
fn the_partitions_of_one_source_are_aligned_among_themselves() {
    let files = |flow: &Flow| {
        flow.stream::<Reading>(TestSource::new("files")).align("files", hours(6)).sink_to(TestSink::new("out"))
    };
    for tasks in [1, 2, 4] {
        let mut t = TestFlow::partitioned(tasks, &[("files", 3)], files);
        for hour in 0..MONTH {
            t.send_to("files", 0, hourly(hour));
        }
        assert_eq!(t.take("out").len(), 1, "two have said nothing yet, so they are behind");
        t.send_to("files", 1, hourly(10)).say_of("files", 2, Progress::End);
        assert_eq!(t.take("out").len(), 18, "up to hour 17, which goes beyond");
        t.send_to("files", 1, hourly(MONTH));
        assert_eq!((t.take("out").len() as i64, t.unread("files")), (MONTH - 17, 0));
    }
}

#[test]
fn a_table_is_aligned_as_it_was_opened() {
    #[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
    #[event(time = at, max_future = "none")]
    struct Level {
        #[key]
        user: u64,
        at: EventTime,
    }
    let flow = |flow: &Flow| {
        let levels = flow.table::<Level>(TestSource::new("levels")).align("users", hours(1));
        let clicks = flow.stream::<Reading>(TestSource::new("clicks")).align("users", hours(1));
        let join = clicks.key_by(|click| click.key).join(levels).keep_forever();
        join.select(|click, _| click.key).sink_to(TestSink::new("out"));
    };
    let mut t = TestFlow::new(flow);
    t.send("clicks", hourly(0))
        .put("levels", Level { user: 9, at: at(hours(5)) })
        .put("levels", Level { user: 0, at: at(hours(6)) });
    assert_eq!((t.unread("levels"), t.text("out").as_str()), (1, ""));
    t.send("clicks", hourly(4));
    assert_eq!((t.unread("levels"), t.text("out").as_str()), (0, "+I 0"));
}

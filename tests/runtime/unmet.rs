//! What a run says of a join in which nothing met.

use flowjoin::Report;
use flowjoin::connectors::{Memory, MemorySink};
use flowjoin::prelude::*;

use super::flow::*;

type Rows = (Vec<(u64, i64)>, Vec<(u64, i64)>);

// Runs a join of orders and payments with these ids and times, on one task and on several, and gives what it warns of.
fn warned(rows: Rows, join: impl Fn(Lefts, Rights)) -> Vec<String> {
    let report = |tasks| {
        let lefts = rows.0.iter().map(|&(id, at)| Left { id, at }).collect::<Vec<_>>();
        let rights = rows.1.iter().map(|&(id, at)| Right { id, at }).collect::<Vec<_>>();
        run_flow(tasks, |flow| {
            join(flow.stream(Memory::rows("orders", lefts)), flow.stream(Memory::rows("payments", rights)));
        })
        .expect("it runs")
    };
    let warnings = |report: &Report| report.steps.iter().filter_map(|step| step.warning()).collect::<Vec<_>>();
    let one = report(1);
    for warning in warnings(&one) {
        assert_eq!(one.to_string().matches(&format!("warning: {warning}\n")).count(), 1, "{one}");
    }
    assert_eq!(warnings(&report(3)), warnings(&one));
    warnings(&one)
}

type Lefts = Stream<Left>;
type Rights = Stream<Right>;

fn near(lefts: Lefts, rights: Rights) {
    let join = lefts.keyed().interval_join(rights.keyed()).between(minutes(-5), minutes(30)).named("near");
    join.into_tuples().sink_to(MemorySink::new("out"));
}

// 2023-11-14T22:13:20Z.
const SECOND: i64 = 1_700_000_000;

#[test]
fn times_that_are_a_thousandth_of_the_others_are_taken_for_seconds() {
    let rows = |a: i64, b: i64| (vec![(1, SECOND * a), (2, (SECOND + 60) * a)], vec![(1, SECOND * b), (2, SECOND * b)]);
    let told = warned(rows(1, 1_000), near);
    assert_eq!(
        told,
        [
            "interval join near: 2 rows of `orders` and 2 of `payments` came in, and not one met another: `orders` has times \
          from 1970-01-20T16:13:20.000Z to 1970-01-20T16:13:20.060Z, and `payments` from 2023-11-14T22:13:20.000Z to \
          2023-11-14T22:13:20.000Z, too far apart for bounds from -5m to 30m; are those of `orders` seconds that are read as \
          milliseconds? `unit = \"s\"` beside the time says so"
        ]
    );
    let told = warned(rows(1_000, 1), near);
    assert!(told[0].contains("; are those of `payments` seconds"), "{told:?}");
    assert_eq!(warned(rows(1_000, 1_000), near), [""; 0]);
}

#[test]
fn times_too_far_apart_are_told_with_what_they_are_too_far_apart_for() {
    let hour = 3_600_000;
    let apart = || (vec![(1, hour), (2, 2 * hour)], vec![(1, 4 * hour), (2, 3 * hour)]);
    let told = warned(apart(), near);
    assert!(
        told[0].ends_with(
            ": `orders` has times from 1970-01-01T01:00:00.000Z to 1970-01-01T02:00:00.000Z, and `payments` from \
             1970-01-01T03:00:00.000Z to 1970-01-01T04:00:00.000Z, too far apart for bounds from -5m to 30m"
        ),
        "{told:?}"
    );
    let told = warned(apart(), |lefts, rights| {
        let join = lefts.keyed().window_join(rights.keyed().optional()).tumbling(minutes(10)).named("windows");
        join.into_tuples().sink_to(MemorySink::new("out"));
    });
    assert!(told[0].starts_with("window join windows: ") && told[0].ends_with(" for windows of 10m"), "{told:?}");
    let told = warned(apart(), |lefts, rights| {
        let join = lefts.keyed().window_join(rights.keyed()).session(minutes(59)).named("sessions");
        join.into_tuples().sink_to(MemorySink::new("out"));
    });
    assert!(told[0].ends_with(" for sessions of 59m"), "{told:?}");
    // By a time-to-live it depends on the order of arrival what meets, so here nothing could.
    let others = (apart().0, vec![(3, 4 * hour), (4, 3 * hour)]);
    let told = warned(others, |lefts, rights| {
        let join = lefts.keyed().join(rights.keyed()).ttl(minutes(10).on(Clock::Event)).named("both");
        join.into_tuples().sink_to(MemorySink::new("out"));
    });
    assert!(told[0].ends_with(" for a time-to-live of 10m"), "{told:?}");
    let told = warned(apart(), |lefts, rights| {
        let join = lefts.keyed().temporal_join(rights.latest_by_key().optional()).named("then");
        join.into_tuples().sink_to(MemorySink::new("out"));
    });
    assert!(told[0].ends_with(" for versions that hold from their time on"), "{told:?}");
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Read {
    #[key]
    id: u64,
}

#[test]
fn a_table_with_the_times_of_arrival_holds_for_nothing_that_was_before() {
    let report = run_flow(2, |flow| {
        let table = flow.stream(Memory::rows("levels", vec![Read { id: 1 }])).latest_by_key();
        let orders = flow.stream(Memory::rows("orders", vec![Left { id: 1, at: SECOND * 1_000 }])).keyed();
        orders.temporal_join(table).named("then").into_tuples().sink_to(MemorySink::new("out"));
    });
    let told = report.expect("it runs").step("then").expect("it is there").warning().expect("it warns");
    assert!(
        told.ends_with(
            ", too far apart for versions that hold from their time on; rows of `levels` have the time at which they were \
             read, as their type names no field that has one"
        ),
        "{told}"
    );
}

#[test]
fn keys_that_are_null_are_told_and_others_are_asked_for() {
    let rows = || (vec![(1, 5), (2, 6)], vec![(3, 5), (4, 6)]);
    let told = warned(rows(), |lefts, rights| {
        let rights = rights.key_by(|right| (right.id > 9).then_some(right.id));
        let join = lefts.key_by(|left| Some(left.id)).join(rights).ttl(hours(1)).named("both");
        join.into_tuples().sink_to(MemorySink::new("out"));
    });
    assert!(told[0].ends_with(": all keys of `payments` are null, and a null matches nothing"), "{told:?}");
    let told = warned(rows(), near);
    let keys = ": are their keys written in the same way, as `7` and `007` are not?";
    let times = "and do their times allow it, with bounds from -5m to 30m?";
    assert!(told[0].ends_with(&format!("{keys} {times}")), "{told:?}");
    let told = warned((vec![(1, 5)], vec![(1, 5)]), |lefts, rights| {
        let join = lefts.keyed().join(rights.keyed()).on(|a, b| a.at > b.at).ttl(hours(1)).named("both");
        join.into_tuples().sink_to(MemorySink::new("out"));
    });
    assert!(told[0].ends_with(&format!("{keys} and can the conditions be fulfilled?")), "{told:?}");
}

#[test]
fn one_row_is_told_in_the_singular() {
    let told = warned((vec![(1, 5)], vec![(2, 5), (3, 5)]), near);
    assert!(told[0].starts_with("interval join near: 1 row of `orders` and 2 of `payments` came in, "), "{told:?}");
    let told = warned((vec![(2, 5), (3, 5)], vec![(1, 5)]), near);
    assert!(told[0].starts_with("interval join near: 2 rows of `orders` and 1 of `payments` came in, "), "{told:?}");
    let brief = |lefts: Lefts, rights: Rights| {
        let join = lefts.keyed().join(rights.keyed()).ttl(millis(1).on(Clock::Event)).named("both");
        join.into_tuples().sink_to(MemorySink::new("out"));
    };
    let told = warned((vec![(1, 5)], vec![(2, 5), (3, 5)]), brief);
    assert!(
        told[0].ends_with(
            ": 1 of `orders` had expired before it met one, and 2 of `payments` had expired before they met one"
        ),
        "{told:?}"
    );
}

#[test]
fn nothing_is_said_of_a_join_that_met_or_had_nothing_to_meet_or_was_to_find_nothing() {
    for rows in [(vec![(1, 5), (2, 6)], vec![(2, 5)]), (vec![(1, 5)], vec![]), (vec![], vec![(1, 5)])] {
        assert_eq!(warned(rows, near), [""; 0]);
    }
    let told = warned((vec![(1, 5)], vec![(2, 5)]), |lefts, rights| {
        let join = lefts.keyed().where_not_exists(rights.keyed()).ttl(hours(1)).named("none");
        join.into_rows().sink_to(MemorySink::new("out"));
    });
    assert_eq!(told, [""; 0]);
}

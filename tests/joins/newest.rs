//! Sinks that keep the newest row of each key, behind joins of that key: whatever is taken back of a key that has several
//! results, what the sink holds is one that stands.

use std::collections::BTreeMap;
use std::fmt::Debug;

use flowjoin::prelude::*;
use flowjoin::{Data, Eager, KeyedStream, Retract, Stream, Unmatch};
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink, TestSource};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, max_future = "none", out_of_order = "100s")]
struct Left {
    #[key]
    order: u64,
    id: u64,
    at: EventTime,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, max_future = "none", out_of_order = "100s")]
struct Right {
    #[key]
    order: u64,
    id: u64,
    at: EventTime,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Keyed)]
struct Result {
    #[key]
    order: u64,
    left: u64,
    right: Option<u64>,
}

fn result(left: &Left, right: Option<&Right>) -> Result {
    Result { order: left.order, left: left.id, right: right.map(|right| right.id) }
}

enum Step {
    L(u64, u64, i64),
    R(u64, u64, i64),
    // Processing time goes on by so many seconds.
    Clock(i64),
    // Event time has come to this second.
    Time(i64),
}
use Step::{Clock, L, R, Time};

fn play(t: &mut TestFlow, step: &Step) {
    let at = |secs: i64| EventTime::from_millis(secs * 1_000);
    match *step {
        L(order, id, time) => t.send("left", Left { order, id, at: at(time) }),
        R(order, id, time) => t.send("right", Right { order, id, at: at(time) }),
        Clock(span) => t.advance_processing(secs(span)),
        Time(time) => t.watermark("left", at(time)).watermark("right", at(time)),
    };
}

// Plays steps, and after each compares what the sink holds with what stands by all changes of the join: of each key that has
// a row standing it has one of those, and of others none.
fn check<T>(build: impl Fn(&Flow) -> Stream<T, Changelog>, steps: &[Step])
where
    T: Data + Keyed<Key = u64> + Ord + Debug,
{
    for parallelism in [1, 4] {
        let mut t = TestFlow::parallel(parallelism, |flow| {
            let results = build(flow);
            results.clone().sink_to(TestSink::new("all"));
            results.sink_to(JsonLines::upsert("newest.jsonl"));
        });
        let mut standing: ChangelogChecker<T> = ChangelogChecker::new();
        let mut held: BTreeMap<u64, T> = BTreeMap::new();
        let mut leaves_others = false;
        for (number, step) in steps.iter().enumerate() {
            play(&mut t, step);
            let changes = t.take_changes::<T>("all");
            let goes = changes.iter().any(|(kind, _)| !kind.adds());
            standing.apply_all(changes).expect("a legal changelog");
            for (kind, row) in t.take_changes::<T>("newest") {
                match kind.adds() {
                    true => held.insert(row.key(), row),
                    false => held.remove(&row.key()),
                };
            }
            let rows: Vec<&T> = standing.standing().into_keys().collect();
            leaves_others |= goes && !rows.is_empty();
            for (order, row) in &held {
                assert!(rows.contains(&row), "step {number}: of {order} the sink holds {row:?}, and {rows:?} stand");
            }
            for row in &rows {
                assert!(held.contains_key(&row.key()), "step {number}: the sink has none of the key of {row:?}");
            }
        }
        assert!(leaves_others, "a step takes a row back while another of its key stands");
    }
}

fn left(flow: &Flow) -> KeyedStream<u64, Left> {
    flow.stream::<Left>(TestSource::new("left")).keyed()
}

fn right(flow: &Flow) -> KeyedStream<u64, Right> {
    flow.stream::<Right>(TestSource::new("right")).keyed()
}

#[test]
fn expiry_takes_one_of_two_results_back() {
    let steps = [L(1, 10, 0), R(1, 20, 0), Clock(5), R(1, 21, 0), Clock(5), Clock(4), Clock(1)];
    check(
        |flow| {
            let join = left(flow).keep_forever().join(right(flow)).ttl(secs(10)).on_expiry(Retract);
            join.select(|left, right| result(left, Some(right)))
        },
        &steps,
    );
    check(
        |flow| {
            let join = left(flow).keep_forever().join(right(flow).optional()).ttl(secs(10)).on_expiry(Unmatch);
            join.select(result)
        },
        &[L(1, 10, 0), R(1, 20, 0), Clock(5), R(1, 21, 0), Clock(5), Clock(4), Clock(1)],
    );
}

#[test]
fn a_partner_takes_one_of_two_rows_back_that_were_alone() {
    check(
        |flow| {
            let alone = left(flow).where_not_exists(right(flow)).on(|left, right| left.id == right.id);
            alone.keep_forever().into_rows()
        },
        &[L(1, 10, 0), L(1, 11, 0), R(1, 11, 0), L(1, 12, 0), R(1, 12, 0)],
    );
}

#[test]
fn a_late_row_takes_that_of_one_of_two_windows_back() {
    check(
        |flow| {
            let alone = left(flow).where_not_exists(right(flow)).tumbling(secs(10)).allowed_lateness(secs(100));
            alone.into_rows()
        },
        &[L(1, 10, 5), L(1, 11, 15), Time(30), R(1, 21, 15), R(1, 20, 5)],
    );
}

#[test]
fn a_filter_keeps_what_comes_back_of_one_of_two_results_only() {
    check(
        |flow| {
            let join = left(flow).interval_join(right(flow).optional().emit(Eager)).between(secs(0), secs(9));
            join.select(result).filter(|row| row.right.is_none() || row.left == 10)
        },
        &[L(1, 10, 0), L(1, 11, 1), R(1, 20, 2)],
    );
}

// What is under the name of the key of the join is another value.
fn renamed(left: &Left, right: Option<&Right>) -> Result {
    Result { order: left.order % 2, ..result(left, right) }
}

// Plays two orders that become one, and gives what the flow stops with.
fn stopped_by(build: impl Fn(&Flow)) -> String {
    let mut told = Vec::new();
    for parallelism in [1, 4] {
        let play = || {
            let mut t = TestFlow::parallel(parallelism, &build);
            for order in [1, 3] {
                play(&mut t, &L(order, 10 + order, 5));
                play(&mut t, &R(order, 20 + order, 5));
            }
            play(&mut t, &Time(1_000));
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(play)).expect_err("it stops");
        told.push(panicked.downcast_ref::<String>().expect("with a message").clone());
    }
    assert_eq!(told[0], told[1]);
    told.remove(0)
}

#[track_caller]
fn says(told: &str, by: &str, remedy: &str) {
    assert!(told.contains("has the key 1, and is made of rows with the key 3"), "{told}");
    assert!(told.contains(by) && told.contains(remedy), "{told}");
}

#[test]
fn another_value_under_the_name_of_the_key_stops_the_flow_before_a_sink_by_it() {
    let newest = || JsonLines::upsert("newest.jsonl").named("newest");
    let told = stopped_by(|flow| {
        let join = left(flow).join(right(flow).optional()).keep_forever();
        join.select(renamed).sink_to(newest());
    });
    says(&told, "the sink `newest`", "put `.to_table()` behind the join");
    let told = stopped_by(|flow| {
        let join = left(flow).interval_join(right(flow).optional().emit(Eager)).between(secs(0), secs(9));
        join.select(renamed).sink_to(newest());
    });
    says(&told, "the sink `newest`", "put `.to_table()` behind the join");
    let told = stopped_by(|flow| {
        let rights = flow.stream::<Right>(TestSource::new("right")).latest_by_key();
        let lefts = flow.stream::<Left>(TestSource::new("left")).latest_by_key();
        lefts.join(rights.optional()).keep_forever().select(renamed).filter(|row| row.left > 0).sink_to(newest());
    });
    says(&told, "the sink `newest`", "put `.to_table()` behind the join");
}

#[test]
fn another_value_under_the_name_of_the_key_stops_the_flow_before_a_join_by_it() {
    let told = stopped_by(|flow| {
        let rights = right(flow);
        let first = left(flow).join(rights.clone().optional()).keep_forever().select(renamed);
        let second = first.keyed().join(rights.optional()).keep_forever();
        second.select(|row, _| row.clone()).sink_to(TestSink::new("out"));
    });
    says(&told, "`key_by`", "key the rows by a closure");
}

#[test]
fn another_value_under_the_name_of_the_key_is_in_order_behind_a_table_and_where_nobody_goes_by_it() {
    for parallelism in [1, 4] {
        let mut t = TestFlow::parallel(parallelism, |flow| {
            let rights = right(flow);
            let join = left(flow).join(rights.clone().optional()).keep_forever().select(renamed);
            join.clone().sink_to(TestSink::new("all"));
            join.clone()
                .key_by(|row| row.left)
                .join(rights)
                .keep_forever()
                .into_tuples()
                .sink_to(TestSink::new("by left"));
            join.to_table().sink_to(JsonLines::upsert("newest.jsonl").named("newest"));
        });
        for order in [1, 3] {
            play(&mut t, &L(order, 10 + order, 0));
            play(&mut t, &R(order, 20 + order, 0));
        }
        let mut all = ChangelogChecker::new();
        all.apply_all(t.take_changes::<Result>("all")).expect("a legal changelog");
        let mut newest = ChangelogChecker::new();
        newest.apply_all(t.take_changes::<Result>("newest")).expect("a legal changelog");
        let rows: Vec<Result> = newest.standing().into_keys().cloned().collect();
        assert_eq!(rows.len(), 1, "one key, one row");
        assert!(all.standing().contains_key(&rows[0]), "{rows:?} is one that stands");
    }
}

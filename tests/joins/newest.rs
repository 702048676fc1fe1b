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

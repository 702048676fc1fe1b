//! Sinks that keep the newest row of each key, behind whatever join of that key: they hold one of the rows that stand of
//! each key of which any does, and of other keys none.

use std::collections::BTreeMap;

use flowjoin::api::Accepts;
use flowjoin::connectors::JsonLines;
use flowjoin::io::TakesChanges;
use flowjoin::prelude::*;
use flowjoin::{Mode, Retract, Stream, Unmatch};
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink, TestSource};
use proptest::prelude::*;

use super::config;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, max_future = "none", out_of_order = "1h")]
struct Item {
    #[key]
    key: u8,
    value: u8,
    id: u64,
    at: EventTime,
}

#[derive(Clone, Copy, Debug)]
enum Left {
    Facts,
    Table,
    // The result of another join.
    Joined,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Inner,
    Left,
    Exists,
    NotExists,
    // By event time.
    Interval,
    Late,
}

#[derive(Clone, Copy, Debug)]
enum Keep {
    Forever,
    Retract,
    Unmatch,
}

#[derive(Clone, Copy, Debug)]
struct Spec {
    left: Left,
    table: bool,
    kind: Kind,
    condition: bool,
    keep: Keep,
    filter: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Row { input: usize, key: u8, value: u8, at: i64 },
    Clock(i64),
    Time(i64),
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn items(flow: &Flow, input: usize) -> Stream<Item> {
    flow.stream::<Item>(TestSource::new(NAMES[input]))
}

fn pair(a: &Item, b: Option<&Item>) -> Item {
    Item { id: a.id * 1_000 + b.map_or(999, |b| b.id), value: a.value.max(b.map_or(0, |b| b.value)), ..a.clone() }
}

fn sinks<M: Mode>(spec: Spec, results: Stream<Item, M>)
where
    TakesChanges: Accepts<M>,
{
    let results = results.named("results");
    match spec.filter {
        true => both(results.filter(|row| row.value != 1)),
        false => both(results),
    }
}

fn both<M: Mode>(results: Stream<Item, M>)
where
    TakesChanges: Accepts<M>,
{
    results.clone().sink_to(TestSink::new("all"));
    results.sink_to(JsonLines::upsert("newest.jsonl"));
}

macro_rules! kept {
    ($spec:expr, $join:expr, |$kept:ident| $end:expr) => {
        match $spec.keep {
            Keep::Forever => {
                let $kept = $join.keep_forever();
                $end
            }
            Keep::Retract => {
                let $kept = $join.ttl(secs(5)).on_expiry(Retract);
                $end
            }
            Keep::Unmatch => unreachable!("only the gap of a left join is told anew"),
        }
    };
}

macro_rules! conditioned {
    ($spec:expr, $join:expr, |$kept:ident| $end:expr) => {
        match $spec.condition {
            true => kept!($spec, $join.on(|a, b| a.value <= b.value), |$kept| $end),
            false => kept!($spec, $join, |$kept| $end),
        }
    };
}

macro_rules! joined {
    ($spec:expr, $left:expr, $right:expr) => {{
        let (spec, left, right) = ($spec, $left, $right);
        match (spec.kind, spec.keep) {
            (Kind::Left, Keep::Unmatch) => {
                let join = left.keep_forever().join(right.optional()).ttl(secs(5)).on_expiry(Unmatch);
                sinks(spec, join.select(pair));
            }
            (Kind::Left, _) => conditioned!(spec, left.join(right.optional()), |join| sinks(spec, join.select(pair))),
            (Kind::Exists, _) => conditioned!(spec, left.where_exists(right), |join| sinks(spec, join.into_rows())),
            (Kind::NotExists, _) => {
                conditioned!(spec, left.where_not_exists(right), |join| sinks(spec, join.into_rows()));
            }
            _ => conditioned!(spec, left.join(right), |join| sinks(spec, join.select(|a, b| pair(a, Some(b))))),
        }
    }};
}

fn build(flow: &Flow, spec: Spec) {
    let right = || items(flow, 1).keyed();
    match spec.kind {
        Kind::Interval => {
            let join = items(flow, 0).keyed().interval_join(right().optional().emit(flowjoin::Eager));
            return sinks(spec, join.between(-secs(5), secs(5)).select(pair));
        }
        Kind::Late => {
            let (a, late) = (items(flow, 0).keyed(), secs(1_000));
            return match spec.condition {
                true => sinks(spec, a.where_not_exists(right()).tumbling(secs(10)).allowed_lateness(late).into_rows()),
                false => sinks(
                    spec,
                    a.window_join(right().optional()).tumbling(secs(10)).allowed_lateness(late).select(pair),
                ),
            };
        }
        _ => {}
    }
    let joined = || {
        let join = items(flow, 0).keyed().join(items(flow, 2).keyed().optional()).keep_forever().named("before");
        join.select(pair).keyed()
    };
    let table = |input: usize| items(flow, input).latest_by_key().keyed();
    match (spec.left, spec.table) {
        (Left::Facts, false) => joined!(spec, items(flow, 0).keyed(), right()),
        (Left::Facts, true) => joined!(spec, items(flow, 0).keyed(), table(1)),
        (Left::Table, false) => joined!(spec, table(0), right()),
        (Left::Table, true) => joined!(spec, table(0), table(1)),
        (Left::Joined, false) => joined!(spec, joined(), right()),
        (Left::Joined, true) => joined!(spec, joined(), table(1)),
    }
}

fn check(parallelism: usize, spec: Spec, steps: &[Step]) -> Result<(), TestCaseError> {
    // A plan may be refused, for reasons of its own.
    let Ok(mut t) = TestFlow::try_parallel(parallelism, |flow| build(flow, spec)) else { return Ok(()) };
    let mut standing: ChangelogChecker<Item> = ChangelogChecker::new();
    let mut held: BTreeMap<u8, Item> = BTreeMap::new();
    let at = |secs: i64| EventTime::from_millis(1_000 * secs);
    let sources: Vec<&str> = NAMES.into_iter().filter(|name| t.plan().source(name).is_some()).collect();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Row { input, key, value, at: time } => {
                let source = sources[input % sources.len()];
                t.send(source, Item { key, value, id: number as u64, at: at(time) });
            }
            Step::Clock(span) => {
                t.advance_processing(secs(span));
            }
            Step::Time(time) => sources.iter().for_each(|source| {
                t.watermark(source, at(time));
            }),
        }
        let changes = t.take_changes::<Item>("all");
        standing.apply_all(changes).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        for (kind, row) in t.take_changes::<Item>("newest") {
            match kind.adds() {
                true => held.insert(row.key, row),
                false => held.remove(&row.key),
            };
        }
        let rows = standing.standing();
        for row in held.values() {
            prop_assert!(rows.contains_key(row), "step {}: {:?} is held and does not stand", number, row);
        }
        for row in rows.keys() {
            prop_assert!(
                held.contains_key(&row.key),
                "step {}: {:?} stands and nothing of its key is held",
                number,
                row
            );
        }
    }
    Ok(())
}

fn specs() -> impl Strategy<Value = Spec> {
    let left = prop_oneof![Just(Left::Facts), Just(Left::Table), Just(Left::Joined)];
    let kind = prop_oneof![
        1 => Just(Kind::Inner),
        2 => Just(Kind::Left),
        1 => Just(Kind::Exists),
        1 => Just(Kind::NotExists),
        1 => Just(Kind::Interval),
        1 => Just(Kind::Late)
    ];
    let keep = prop_oneof![Just(Keep::Forever), Just(Keep::Retract), Just(Keep::Unmatch)];
    (left, any::<bool>(), kind, any::<bool>(), keep, any::<bool>()).prop_map(
        |(left, table, kind, condition, keep, filter)| {
            let only_left = matches!(keep, Keep::Unmatch) && !matches!(kind, Kind::Left);
            let keep = if only_left { Keep::Retract } else { keep };
            Spec { left, table, kind, condition, keep, filter }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..3usize, 0..2u8, 0..3u8, 0..30i64).prop_map(|(input, key, value, at)| Step::Row { input, key, value, at }),
        1 => (1..5i64).prop_map(Step::Clock),
        1 => (0..60i64).prop_map(Step::Time),
    ];
    prop::collection::vec(step, 0..24)
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn a_sink_of_the_newest_row_holds_one_that_stands_of_each_key(spec in specs(), steps in steps()) {
        for parallelism in [1, 4] {
            check(parallelism, spec, &steps)?;
        }
    }
}

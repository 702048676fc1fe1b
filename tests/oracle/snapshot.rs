//! Snapshot joins.

use std::collections::BTreeMap;

use flowjoin::io::TableChange;
use flowjoin::{
    Event, EventTime, Flow, Keyed, Late, Loaded, Progress, Reason, RowKind, TimeError, Unmatched, Watermarks, millis,
};
use flowjoin_testkit::{TestFlow, TestSink, TestSource};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::config;
use super::history::{Fact, Frontier, NAMES, Row, Step, at, check_accounts, fact, facts, sorted, taken, timed};

type Pair = (Row, Option<Row>);

/// A row of the table. Its time says only how far the table has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Standing {
    time: EventTime,
    row: Row,
}

impl Event for Standing {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(self.time)
    }

    fn watermarks() -> Watermarks {
        Fact::watermarks()
    }
}

impl Keyed for Standing {
    type Key = Option<u8>;

    fn key(&self) -> Option<u8> {
        self.row.key
    }
}

#[derive(Clone, Debug)]
struct Spec {
    optional: bool,
    // The table is waited for until it ends, is idle, or has come so far.
    load: Option<i64>,
}

impl Spec {
    fn build(&self, flow: &Flow) {
        let probes = facts(flow, NAMES[0]).map(|fact| fact.row).key_by(|row| row.key);
        let table = flow.table::<Standing>(TestSource::new(NAMES[1])).named("table").keyed();
        let mut join = probes.snapshot_join(table.optional_if(self.optional)).named("join");
        if let Some(load) = self.load {
            join = join.after_load(Loaded::at(EventTime::from_millis(load)));
        }
        join.late().sink_to(TestSink::new("late"));
        let select = |probe: &Row, standing: Option<&Standing>| -> Pair {
            (probe.clone(), standing.map(|standing| standing.row.clone()))
        };
        let (out, alone) = join.select_with_unmatched(select);
        out.sink_to(TestSink::new("out"));
        alone.sink_to(TestSink::new("alone"));
    }
}

#[derive(Clone, Debug)]
enum Act {
    Of(Step),
    Delete(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![12 => timed(2, 0..40).prop_map(Act::Of), 1 => (0..3u8).prop_map(Act::Delete)];
    prop::collection::vec(act, 0..50)
}

/// What stands, who waits, and what has been said.
struct Model {
    spec: Spec,
    standing: BTreeMap<u8, Row>,
    waiting: Vec<Row>,
    pairs: Vec<Pair>,
    alone: Vec<(Row, Reason)>,
    late: Vec<Row>,
    loaded: bool,
    // Of the stream alone.
    frontier: Frontier,
    table_ended: bool,
}

impl Model {
    fn join(&mut self, row: Row) {
        let standing = row.key.and_then(|key| self.standing.get(&key)).cloned();
        match (standing, self.spec.optional) {
            (None, false) => {
                let reason = if row.key.is_none() { Reason::NullKey } else { Reason::NoVersion };
                self.alone.push((row, reason));
            }
            (standing, _) => self.pairs.push((row, standing)),
        }
    }

    fn take(&mut self, row: Row) {
        if row.stamp < self.frontier.at() {
            self.late.push(row);
        } else if self.loaded || row.key.is_none() {
            self.join(row);
        } else {
            self.waiting.push(row);
        }
    }

    fn hear_of_table(&mut self, progress: Progress) {
        self.loaded |= match progress {
            Progress::At(watermark) => self.spec.load.is_some_and(|load| watermark.time().as_millis() >= load),
            Progress::Idle | Progress::End => true,
            Progress::Active | Progress::Stopped => false,
        };
        if self.loaded {
            std::mem::take(&mut self.waiting).into_iter().for_each(|row| self.join(row));
        }
    }
}

fn check(parallelism: usize, spec: &Spec, acts: &[Act]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| spec.build(flow));
    let (standing, waiting, pairs, alone, late) = Default::default();
    let (loaded, frontier, table_ended) = (spec.load.is_none(), Frontier::new(1), false);
    let spec = spec.clone();
    let mut model = Model { spec, standing, waiting, pairs, alone, late, loaded, frontier, table_ended };
    let mut came: (Vec<Pair>, Vec<(Row, Reason)>) = Default::default();
    let end = [0, 1].map(|input| Act::Of(Step::End(input)));
    for act in acts.iter().chain(&end) {
        play(&mut t, &mut model, act);
        for (kind, pair, time) in taken::<Pair>(&mut t, "out") {
            prop_assert_eq!((kind, time.as_millis()), (RowKind::Insert, pair.0.stamp));
            came.0.push(pair);
        }
        let alone = taken::<Unmatched<Row>>(&mut t, "alone");
        came.1.extend(alone.into_iter().map(|(_, unmatched, _)| (unmatched.row, unmatched.reason)));
        prop_assert_eq!(sorted(came.0.clone()), sorted(model.pairs.clone()));
        prop_assert_eq!(sorted(came.1.clone()), sorted(model.alone.clone()));
        let held = [model.waiting.len() as u64, model.standing.len() as u64];
        prop_assert_eq!(t.figures("join").state_rows, held);
        check_accounts(&t, "join")?;
    }
    let late = taken::<Late<Row>>(&mut t, "late");
    prop_assert_eq!(sorted(late.into_iter().map(|(_, late, _)| late.row)), sorted(model.late));
    Ok(())
}

fn play(t: &mut TestFlow, model: &mut Model, act: &Act) {
    match *act {
        Act::Of(Step::Row { input: 0, key, value, time }) if !model.frontier.has_ended(0) => {
            let row = Row { key, value, stamp: time };
            model.frontier.wake(0);
            t.send(NAMES[0], fact(RowKind::Insert, row.clone(), time));
            model.take(row);
        }
        Act::Of(Step::Row { input: 1, key, value, time }) if !model.table_ended => {
            let row = Row { key, value, stamp: time };
            t.put(NAMES[1], Standing { time: EventTime::from_millis(time), row: row.clone() });
            model.standing.extend(key.map(|key| (key, row)));
        }
        Act::Delete(key) if !model.table_ended => {
            t.change_all(NAMES[1], vec![TableChange::<Standing>::delete(Some(key))]);
            model.standing.remove(&key);
        }
        Act::Of(Step::Watermark { input, at: time }) => hear(t, model, input, at(time)),
        Act::Of(Step::Idle(input)) => hear(t, model, input, Progress::Idle),
        Act::Of(Step::Active(input)) => hear(t, model, input, Progress::Active),
        Act::Of(Step::End(input)) => hear(t, model, input, Progress::End),
        Act::Of(_) | Act::Delete(_) => {}
    }
}

fn hear(t: &mut TestFlow, model: &mut Model, input: usize, progress: Progress) {
    t.say(NAMES[input], progress);
    match input {
        0 => model.frontier.hear(0, progress),
        _ if model.table_ended => {}
        _ => {
            model.table_ended = progress == Progress::End;
            model.hear_of_table(progress);
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn each_row_meets_what_stands_when_it_arrives_or_the_table_is_loaded(
        optional in any::<bool>(), load in prop::option::of(0..40i64), acts in acts(),
    ) {
        for parallelism in [1, 4] {
            check(parallelism, &Spec { optional, load }, &acts)?;
        }
    }

    // Time that passes makes a table quiet, and nothing else.
    #[test]
    fn rows_wait_for_a_quiet_table_whatever_comes_of_the_stream(
        probes in prop::collection::vec((0..3u8, 0..40i64), 1..20), quiet in 1..50i64,
    ) {
        let mut t = TestFlow::parallel(4, |flow| {
            let probes = facts(flow, NAMES[0]).map(|fact| fact.row).key_by(|row| row.key);
            let table = flow.table::<Standing>(TestSource::new(NAMES[1]));
            let join = probes.snapshot_join(table.optional()).named("join");
            let join = join.after_load(Loaded::quiet_for(millis(quiet)));
            join.select(|probe, _| probe.clone()).sink_to(TestSink::new("out"));
        });
        let mut sent = Vec::new();
        for (key, time) in probes {
            let row = Row { key: Some(key), value: 0, stamp: time };
            t.send(NAMES[0], fact(RowKind::Insert, row.clone(), time));
            sent.push(row);
        }
        t.advance_processing(millis(quiet - 1));
        prop_assert!(taken::<Row>(&mut t, "out").is_empty());
        t.advance_processing(millis(1));
        prop_assert_eq!(sorted(taken::<Row>(&mut t, "out").into_iter().map(|(_, row, _)| row)), sorted(sent));
    }
}

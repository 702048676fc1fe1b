//! Joins as engines, by the oracle: they show that the cases, the rules and the runner agree on what a join says.

mod definition;

use flowjoin_core::watermark::Rejoin;
use flowjoin_core::{EventTime, Merge, Progress, RowKind, Watermark};
use serde_json::Value;

use super::cell::{CellRow, cells};
use super::engine::{Engine, EngineError, Observed, OutRow, Record, SideRow, Unbuilt};
use super::engines::{flink_number, rules_for};
use super::expect::Expected;
use super::model::{Case, CaseFile};
use super::run::{Outcome, play, run};
use super::spec::{IntervalSpec, JoinSpec, MaterializerSpec, TimeOf, check_demands};
use crate::oracle::{Event, ExpiringJoin, Interval};
use definition::{Definition, is_for_ever, is_product};

/// A regular or multi join: the whole history is asked again at every step.
struct KeyedReference {
    spec: JoinSpec,
    oracle: ExpiringJoin,
    history: Vec<Event<CellRow>>,
    rows: Vec<Vec<(CellRow, Option<i64>)>>,
    now: i64,
    told: usize,
}

impl KeyedReference {
    fn new(spec: JoinSpec) -> KeyedReference {
        let ttl = spec.inputs.iter().map(|input| input.ttl).collect();
        let oracle = ExpiringJoin { optional: spec.optional(), ttl };
        let rows = vec![Vec::new(); spec.inputs.len()];
        KeyedReference { spec, oracle, history: Vec::new(), rows, now: 0, told: 0 }
    }

    fn live_like(&self, record: &Record) -> Option<usize> {
        let spec = &self.spec.inputs[record.input];
        let unique = |row: &CellRow| -> Option<CellRow> {
            Some(spec.unique_key.as_ref()?.iter().map(|&place| row[place].clone()).collect())
        };
        let row = cells(&record.row);
        let is_like = |held: &CellRow| match unique(&row) {
            Some(key) => unique(held) == Some(key),
            None => !record.kind.adds() && *held == row,
        };
        let live = &self.oracle.expect(&self.history).live[record.input];
        live.iter().copied().find(|&id| is_like(&self.rows[record.input][id].0))
    }
}

impl Engine for KeyedReference {
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        let input = record.input;
        if let Some(row) = self.live_like(&record) {
            self.history.push(Event::Leave { input, row });
        }
        if record.kind.adds() {
            let row = cells(&record.row);
            for equal in (0..self.rows[input].len()).filter(|&id| self.rows[input][id].0 == row) {
                self.history.push(Event::Write { input, row: equal, written: self.now });
            }
            let key = self.spec.inputs[input].key_of(&record.row);
            self.history.push(Event::Arrive { input, key, row: self.rows[input].len(), written: self.now });
            self.rows[input].push((cells(&record.row), record.ts));
        }
        Ok(())
    }

    fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
        self.now = t;
        self.history.push(Event::Clock(t));
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        let all = self.oracle.expect(&self.history);
        let out = |said: &crate::oracle::Said| {
            let rows = said.combination.iter().enumerate().map(|(input, row)| match row {
                Some(row) => self.rows[input][*row].0.clone(),
                None => cells(&vec![Value::Null; self.spec.inputs[input].fields.len()]),
            });
            OutRow { kind: said.kind, row: rows.collect::<Vec<_>>().concat(), ts: None }
        };
        let new = all.said.iter().filter(|said| said.at >= self.told).map(out).collect();
        self.told = self.history.len();
        let state_rows = all.live.iter().map(|live| live.len() as u64).collect();
        Observed { out: new, state_rows: Some(state_rows), ..Observed::default() }
    }
}

struct Held {
    key: Option<CellRow>,
    time: i64,
    row: CellRow,
    met: bool,
}

/// An interval join that looks at every row it holds.
struct IntervalReference {
    spec: IntervalSpec,
    merge: Merge,
    now: i64,
    sent: Watermark,
    held: [Vec<Held>; 2],
    seen: Observed,
}

impl IntervalReference {
    fn new(spec: IntervalSpec) -> IntervalReference {
        let merge = Merge::new(2, Rejoin::AtOnce);
        let seen = Observed { late: vec![vec![], vec![]], ..Observed::default() };
        IntervalReference { spec, merge, now: 0, sent: Watermark::NONE, held: Default::default(), seen }
    }

    fn frontier(&self) -> Watermark {
        match self.spec.time {
            TimeOf::Event => self.merge.watermark(),
            TimeOf::Processing => Watermark::at(EventTime::from_millis(self.now)),
        }
    }

    fn update(&mut self, input: usize, progress: Progress) -> Result<(), EngineError> {
        self.merge.update(input, progress);
        self.close();
        Ok(())
    }

    fn close(&mut self) {
        let frontier = self.frontier();
        let reached = i128::from(frontier.time().as_millis());
        for input in 0..2 {
            let spec = &self.spec;
            let held = std::mem::take(&mut self.held[input]);
            let is_over = |row: &Held| row.key.is_none() || reached > spec.held_until(input, row.time);
            let (over, held): (Vec<_>, Vec<_>) = held.into_iter().partition(is_over);
            self.held[input] = held;
            for row in over.into_iter().filter(|row| !row.met && self.spec.optional[1 - input]) {
                let missing = cells(&vec![Value::Null; self.spec.inputs[1 - input].fields.len()]);
                let padded = if input == 0 { [row.row, missing] } else { [missing, row.row] };
                self.seen.out.push(OutRow { kind: RowKind::Insert, row: padded.concat(), ts: Some(row.time) });
            }
        }
        let is_open = |input: usize| self.spec.optional[1 - input];
        let open = (0..2).filter(|&input| is_open(input)).flat_map(|input| &self.held[input]);
        let oldest = open.filter(|row| !row.met).map(|row| Watermark::at(EventTime::from_millis(row.time))).min();
        let sendable = oldest.map_or(frontier, |oldest| oldest.min(frontier));
        if self.spec.time == TimeOf::Event && sendable > self.sent {
            self.sent = sendable;
            self.seen.watermarks.push(flink_number(sendable));
        }
    }
}

impl Engine for IntervalReference {
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        let time = if self.spec.time == TimeOf::Event { record.ts.unwrap_or(0) } else { self.now };
        let row = cells(&record.row);
        let input = record.input;
        if self.frontier().is_late(EventTime::from_millis(time)) {
            self.seen.late[input].push(SideRow { row, ts: Some(time) });
            return Ok(());
        }
        let key = self.spec.inputs[input].key_of(&record.row);
        let interval = Interval { lower: self.spec.lower, upper: self.spec.upper, optional: [false; 2] };
        let mut arrived = Held { key, time, row, met: false };
        for other in &mut self.held[1 - input] {
            let (left, right) = if input == 0 { (&arrived, &*other) } else { (&*other, &arrived) };
            let at = EventTime::from_millis;
            if arrived.key.is_some() && left.key == right.key && interval.holds(at(left.time), at(right.time)) {
                let row = [left.row.clone(), right.row.clone()].concat();
                self.seen.out.push(OutRow { kind: RowKind::Insert, row, ts: Some(left.time.max(right.time)) });
                (arrived.met, other.met) = (true, true);
            }
        }
        self.held[input].push(arrived);
        self.close();
        Ok(())
    }

    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        self.update(input, Progress::At(self.spec.frontier(t)))
    }

    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        self.update(input, Progress::Idle)
    }

    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        self.update(input, Progress::Active)
    }

    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        self.update(input, Progress::End)
    }

    fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
        self.now = t;
        self.close();
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        let state_rows = Some(self.held.iter().map(|held| held.len() as u64).collect());
        let fresh = Observed { late: vec![vec![], vec![]], ..Observed::default() };
        Observed { state_rows, ..std::mem::replace(&mut self.seen, fresh) }
    }
}

fn reference(case: &Case) -> Result<Box<dyn Engine>, Unbuilt> {
    match case.operator.as_str() {
        "interval_join" => {
            let spec = IntervalSpec::of(case)?;
            check_demands(&spec.demands, &[])?;
            Ok(Box::new(IntervalReference::new(spec)))
        }
        "upsert_materializer" => Ok(Box::new(Definition::table(MaterializerSpec::of(case)?))),
        "regular_join" | "multi_join" | "mini_batch_join" => match JoinSpec::of(case)? {
            spec if is_for_ever(&spec) => Ok(Box::new(Definition::join(spec))),
            spec if is_product(&spec) => Ok(Box::new(KeyedReference::new(spec))),
            _ => Err(Unbuilt::NotApplicable("rows that expire, where they are filtered".to_string())),
        },
        other => Err(Unbuilt::NotApplicable(format!("there is no reference for `{other}`"))),
    }
}

// Plays all cases of a family that a reference can be built for; comes back with how many, and which failed.
fn play_all(family: &str) -> (usize, Vec<String>) {
    let path = format!("{}/../tests/conformance/cases/{family}.json", env!("CARGO_MANIFEST_DIR"));
    let file = CaseFile::read(path.as_ref()).unwrap();
    let mut played = 0;
    let mut failed = Vec::new();
    for case in &file.cases {
        let Ok(mut engine) = reference(case) else { continue };
        played += 1;
        let outcome = play(case, engine.as_mut(), rules_for(case).ok().unwrap().as_mut());
        if outcome != Outcome::Pass {
            println!("{}: {outcome:?}", case.id);
            failed.push(case.id.clone());
        }
    }
    (played, failed)
}

#[test]
fn interval_joins_by_definition_pass_the_cases() {
    assert_eq!(play_all("interval_join"), (26, vec![]));
}

#[test]
fn keyed_joins_by_definition_pass_the_cases() {
    // Here Flink begins the time-to-live of a row anew for another reason than its own write, or that of an equal row:
    // a change of its number of partners.
    assert_eq!(play_all("regular_join"), (27, vec!["rj-ttl-04".to_string()]));
    assert_eq!(play_all("multi_join"), (15, vec![]));
    assert_eq!(play_all("mini_batch_join"), (12, vec![]));
    assert_eq!(play_all("upsert_materializer"), (6, vec![]));
}

#[test]
fn the_watermarks_of_the_core_pass_the_cases() {
    let path = format!("{}/../tests/conformance/cases/watermarks.json", env!("CARGO_MANIFEST_DIR"));
    for case in &CaseFile::read(path.as_ref()).unwrap().cases {
        assert_eq!(run(case), Outcome::Pass, "{}", case.id);
    }
}

#[test]
fn a_join_that_loses_or_repeats_rows_fails_the_cases() {
    struct Broken(Box<dyn Engine>, fn(&mut Observed));
    impl Engine for Broken {
        fn record(&mut self, record: Record) -> Result<(), EngineError> {
            self.0.record(record)
        }
        fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
            self.0.watermark(input, t)
        }
        fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
            self.0.processing_time(t)
        }
        fn flush(&mut self) -> Result<(), EngineError> {
            self.0.flush()
        }
        fn observe(&mut self) -> Observed {
            let mut seen = self.0.observe();
            (self.1)(&mut seen);
            seen
        }
    }
    let breaks: [fn(&mut Observed); 3] = [
        |seen| drop(seen.out.pop()),
        |seen| seen.out.extend(seen.out.last().cloned()),
        |seen| seen.out.iter_mut().for_each(|out| out.kind = out.kind.inverse()),
    ];
    for family in ["regular_join", "multi_join", "interval_join", "mini_batch_join", "upsert_materializer"] {
        let path = format!("{}/../tests/conformance/cases/{family}.json", env!("CARGO_MANIFEST_DIR"));
        for case in &CaseFile::read(path.as_ref()).unwrap().cases {
            let outcome = |break_it| {
                let mut engine = Broken(reference(case).ok()?, break_it);
                Some(play(case, &mut engine, rules_for(case).ok()?.as_mut()))
            };
            let says_something =
                case.steps.iter().any(|step| Expected::of(case, step).is_ok_and(|expected| !expected.out.is_empty()));
            if !says_something || outcome(|_| {}) != Some(Outcome::Pass) {
                continue;
            }
            for break_it in breaks {
                assert_ne!(outcome(break_it), Some(Outcome::Pass), "{}", case.id);
            }
        }
    }
}

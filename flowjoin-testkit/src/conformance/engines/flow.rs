//! A join or table of the core in a flow under test, as an engine: what all such engines share.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flowjoin_core::api::Accepts;
use flowjoin_core::io::TableChange;
use flowjoin_core::{
    Event, EventTime, Flow, Keyed, Mode, ProcTime, Progress, RowKind, Span, Stream, Table, TimeError, Watermark,
    Watermarks,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Unbuilt, flink_number};
use crate::conformance::cell::{Cell, CellRow, cells};
use crate::conformance::engine::{EngineError, Observed, OutRow, Record, SideRow, Status};
use crate::conformance::spec::{Condition, InputSpec, TimeOf};
use crate::{Output, TestFlow, TestSink, TestSource};

/// A row of a case as a row of a flow. Two are equal if their values are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CaseRow {
    /// The text of the key's values; none if one of them is null.
    pub key: Option<String>,
    /// The values.
    pub cells: CellRow,
}

/// A result as it comes out at the sink: the rows of the inputs, none where one is missing.
pub(super) type Joined = Vec<Option<CellRow>>;

/// A record on its way into a flow; its watermarks move only when the case says so, or with the clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arrival<const BY_CLOCK: bool> {
    pub kind: RowKind,
    pub time: EventTime,
    pub row: CaseRow,
}

impl<const BY_CLOCK: bool> Event for Arrival<BY_CLOCK> {
    fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> {
        Ok(if BY_CLOCK { arrival } else { self.time })
    }

    fn watermarks() -> Watermarks {
        if BY_CLOCK { Watermarks::ingestion() } else { Watermarks::of_field("ts").out_of_order(Span::MAX).any_future() }
    }
}

/// A row of a case as a row of a table, with the time from which it holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct VersionRow {
    time: EventTime,
    pub row: CaseRow,
}

impl Event for VersionRow {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(self.time)
    }

    fn watermarks() -> Watermarks {
        Arrival::<false>::watermarks()
    }
}

impl Keyed for VersionRow {
    type Key = Option<String>;

    fn key(&self) -> Option<String> {
        self.row.key.clone()
    }
}

/// The rows of an input, as a table.
pub(super) fn versions(flow: &Flow, input: usize) -> Table<Option<String>, VersionRow> {
    flow.table(TestSource::new(source(input)))
}

/// The rows of an input, as facts.
pub(super) fn arrivals<const BY_CLOCK: bool>(flow: &Flow, input: usize) -> Stream<Arrival<BY_CLOCK>> {
    flow.stream(TestSource::new(source(input)))
}

/// Sends the results that fulfil the conditions to their sink.
pub(super) fn sink_results<M: Mode>(results: Stream<Joined, M>, conditions: &[Condition])
where
    flowjoin_core::io::TakesChanges: Accepts<M>,
{
    let conditions = conditions.to_vec();
    let fulfils = move |joined: &Joined| {
        let rows: Vec<Option<&[Cell]>> = joined.iter().map(Option::as_deref).collect();
        Condition::all_hold(&conditions, &rows)
    };
    results.filter(fulfils).sink_to(TestSink::new(OUT));
}

/// The sink of the late rows of an input.
pub(super) fn late(input: usize) -> TestSink {
    TestSink::new(late_name(input))
}

/// The name that the join or table must have.
pub(super) const JOIN: &str = "join under test";

const OUT: &str = "out";

fn source(input: usize) -> String {
    format!("input {input}")
}

fn late_name(input: usize) -> String {
    format!("late {input}")
}

/// A flow of one join, fed step by step.
pub(super) struct FlowEngine {
    flow: TestFlow,
    inputs: Vec<InputSpec>,
    time: TimeOf,
    frontier: Box<dyn Fn(i64) -> Watermark>,
    // The input whose rows are put into a table, or deleted from it.
    table: Option<usize>,
    // The watermarks of the inputs, where rows without a time come at those.
    reached: Option<Vec<EventTime>>,
}

impl FlowEngine {
    /// The flow that `build` makes of so many tasks a stage; `frontier` reads the watermarks of the case.
    pub fn new(
        inputs: &[InputSpec],
        time: TimeOf,
        frontier: impl Fn(i64) -> Watermark + 'static,
        parallelism: usize,
        build: impl FnOnce(&Flow),
    ) -> Result<FlowEngine, Unbuilt> {
        let refused = |errors: flowjoin_core::PlanErrors| Unbuilt::Refused(errors.to_string());
        let flow = TestFlow::try_parallel(parallelism, build).map_err(refused)?;
        let frontier = Box::new(frontier);
        Ok(FlowEngine { flow, inputs: inputs.to_vec(), time, frontier, table: None, reached: None })
    }

    /// The rows of an input are put into a table, or deleted from it.
    pub fn with_table(self, input: usize) -> FlowEngine {
        FlowEngine { table: Some(input), ..self }
    }

    /// Rows without a time come at the watermark of their input: none of them is late.
    pub fn with_rows_at_the_watermark(self) -> FlowEngine {
        FlowEngine { reached: Some(vec![EventTime::MIN; self.inputs.len()]), ..self }
    }

    fn time_of(&self, record: &Record) -> EventTime {
        let reached = self.reached.as_ref().map(|reached| reached[record.input]);
        record.ts.map(EventTime::from_millis).or(reached).unwrap_or_default()
    }

    fn change_table(&mut self, input: usize, rows: Vec<(RowKind, EventTime, CaseRow)>) {
        let change = |(kind, time, row): (RowKind, EventTime, CaseRow)| match kind {
            RowKind::Insert | RowKind::UpdateAfter => Some(TableChange::Put(VersionRow { time, row })),
            RowKind::Delete => Some(TableChange::Delete { key: row.key, time: Some(time), row: None }),
            RowKind::UpdateBefore => None,
        };
        self.flow.change_all(&source(input), rows.into_iter().filter_map(change).collect());
    }

    fn say(&mut self, input: usize, progress: Progress) -> Result<(), EngineError> {
        self.check_input(input)?;
        if self.time == TimeOf::Processing && matches!(progress, Progress::At(_)) {
            return Err(EngineError::Unsupported("watermark in processing time"));
        }
        if let (Progress::At(watermark), Some(reached)) = (progress, &mut self.reached) {
            reached[input] = watermark.time();
        }
        // An operator that cannot go on stops the flow under test with its message.
        let said = catch_unwind(AssertUnwindSafe(|| {
            self.flow.say(&source(input), progress);
        }));
        said.map_err(|panic| EngineError::Refused(panic.downcast_ref::<String>().cloned().unwrap_or_default()))
    }

    /// Records of one input, as one batch.
    pub fn record_all(&mut self, input: usize, records: Vec<Record>) -> Result<(), EngineError> {
        self.check_input(input)?;
        let row = |row: &[Value]| {
            let key = self.inputs[input].key_of(row);
            let key = key.map(|key| serde_json::to_string(&key).expect("values can be written"));
            CaseRow { key, cells: cells(row) }
        };
        let read = |record: &Record| (record.kind, self.time_of(record), row(&record.row));
        let rows: Vec<_> = records.iter().map(read).collect();
        if self.table == Some(input) {
            self.change_table(input, rows);
            return Ok(());
        }
        match self.time {
            TimeOf::Event => self.flow.send_all(&source(input), arrivals_of::<false>(rows)),
            TimeOf::Processing => self.flow.send_all(&source(input), arrivals_of::<true>(rows)),
        };
        match self.flow.take_bad().first() {
            None => Ok(()),
            Some(bad) => Err(EngineError::Refused(bad.to_string())),
        }
    }

    fn check_input(&self, input: usize) -> Result<(), EngineError> {
        if input < self.inputs.len() { Ok(()) } else { Err(EngineError::Refused(format!("there is no input {input}"))) }
    }

    fn result(&self, output: Output) -> OutRow {
        let joined: Joined = read(output.row);
        let missing = |input: &InputSpec| vec![Cell::Null; input.fields.len()];
        let rows = joined.into_iter().zip(&self.inputs).map(|(row, input)| row.unwrap_or_else(|| missing(input)));
        let row = rows.collect::<Vec<_>>().concat();
        OutRow { kind: output.kind, row, ts: Some(output.time.as_millis()) }
    }
}

fn arrivals_of<const BY_CLOCK: bool>(rows: Vec<(RowKind, EventTime, CaseRow)>) -> Vec<Arrival<BY_CLOCK>> {
    rows.into_iter().map(|(kind, time, row)| Arrival { kind, time, row }).collect()
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a row comes out as it went in")
}

fn late_row(output: Output) -> SideRow {
    let row: CaseRow = read::<flowjoin_core::Late<CaseRow>>(output.row).row;
    SideRow { row: row.cells, ts: Some(output.time.as_millis()) }
}

impl super::Engine for FlowEngine {
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        self.record_all(record.input, vec![record])
    }

    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        let frontier = (self.frontier)(t);
        self.say(input, Progress::At(frontier))
    }

    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        self.say(input, Progress::Idle)
    }

    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        self.say(input, Progress::Active)
    }

    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        self.say(input, Progress::End)
    }

    fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
        let now = ProcTime::from_millis(t);
        if now < self.flow.processing() {
            return Err(EngineError::Refused(format!("the clock cannot go back to {t}")));
        }
        self.flow.set_processing(now);
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        let mut seen = Observed::default();
        for progress in self.flow.take_progress(OUT) {
            match progress {
                Progress::At(watermark) => seen.watermarks.push(flink_number(watermark)),
                Progress::Idle => seen.statuses.push(Status::Idle),
                Progress::Active => seen.statuses.push(Status::Active),
                // The end is told by the watermark.
                Progress::End | Progress::Stopped => {}
            }
        }
        let out = self.flow.take(OUT);
        seen.out = out.into_iter().map(|output| self.result(output)).collect();
        // A table has no late rows.
        let late = (0..self.inputs.len()).map(late_name).filter(|name| self.flow.plan().sink(name).is_some());
        let late: Vec<String> = late.collect();
        seen.late = late.iter().map(|name| self.flow.take(name).into_iter().map(late_row).collect()).collect();
        seen.state_rows = Some(self.flow.figures(JOIN).state_rows);
        seen
    }
}

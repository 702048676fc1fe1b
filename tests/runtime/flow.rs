//! The rows and the flow that the tests of the runtime share.

use std::time::Duration;

use flowjoin::connectors::{Generate, MemorySink};
use flowjoin::prelude::*;
use flowjoin::{Account, Report};

/// An order, or whatever else the left side is.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, unit = "ms", out_of_order = "1m")]
pub struct Left {
    #[key]
    pub id: u64,
    pub at: i64,
}

/// What it is joined with; quiet partitions are soon idle.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, unit = "ms", out_of_order = "1m", idle = "50ms")]
pub struct Right {
    #[key]
    pub id: u64,
    pub at: i64,
}

pub fn left(id: u64) -> Left {
    Left { id, at: id as i64 }
}

pub fn right(id: u64) -> Right {
    Right { id, at: id as i64 }
}

/// Two generated streams: of 1,000 left rows every third has a partner; 100 right rows have none.
pub fn generated(flow: &Flow, partitions: usize) -> (KeyedStream<u64, Left>, KeyedStream<u64, Right>) {
    let lefts = Generate::new("lefts", left).count(1_000).partitions(partitions);
    let rights = Generate::new("rights", |i| right(if i < 334 { 3 * i } else { 10_000 + i }));
    (flow.stream(lefts).keyed(), flow.stream(rights.count(434).partitions(partitions)).keyed())
}

/// A configuration with so many tasks a stage that prints nothing.
pub fn quiet(tasks: usize) -> Config {
    let mut config = Config::default().with_parallelism(tasks).quiet();
    config.stop_on_ctrl_c = false;
    config
}

/// Runs something async, and panics if it takes longer than any of these tests should.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), work).await };
    runtime.expect("a runtime can be built").block_on(limited).expect("it ends within a minute")
}

/// Runs a flow to its end.
pub fn run_flow(tasks: usize, build: impl FnOnce(&Flow)) -> flowjoin::Result<Report> {
    let flow = Flow::new("test");
    build(&flow);
    run(async { flow.start(quiet(tasks))?.wait().await })
}

/// The account of one input of a step.
pub fn account(report: &Report, step: &str, input: usize) -> Account {
    report.step(step).unwrap_or_else(|| panic!("no step {step} in\n{report}")).inputs[input].account
}

/// The rows that stand at a sink, in order.
pub fn standing<T: flowjoin::Data + PartialEq + PartialOrd>(sink: &MemorySink<T>) -> Vec<T> {
    let mut rows = sink.rows();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("these rows have an order"));
    rows
}

//! Interval joins.

use flowjoin_core::Flow;

use super::flow::{FlowEngine, JOIN, Joined, arrivals, late, sink_results};
use super::{Engine, Unbuilt};
use crate::conformance::spec::{Condition, IntervalSpec, TimeOf};

/// The join of the core, run as so many tasks a stage.
///
/// # Errors
/// If the core refuses it.
pub fn engine(spec: &IntervalSpec, parallelism: usize) -> Result<Box<dyn Engine>, Unbuilt> {
    let reader = spec.clone();
    let frontier = move |t| reader.frontier(t);
    let engine = FlowEngine::new(&spec.inputs, spec.time, frontier, parallelism, |flow| match spec.time {
        TimeOf::Event => build::<false>(flow, spec),
        TimeOf::Processing => build::<true>(flow, spec),
    })?;
    Ok(Box::new(engine))
}

fn build<const BY_CLOCK: bool>(flow: &Flow, spec: &IntervalSpec) {
    let input = |index: usize| {
        let rows = arrivals::<BY_CLOCK>(flow, index).map(|arrival| arrival.row);
        rows.key_by(|row| row.key.clone()).optional_if(spec.optional[index])
    };
    let join = input(0).interval_join(input(1)).named(JOIN).between(spec.lower, spec.upper);
    let conditions = spec.conditions.clone();
    let join = match conditions.is_empty() {
        true => join,
        false => join.on(move |left, right| {
            Condition::all_hold(&conditions, &[Some(left.cells.as_slice()), Some(right.cells.as_slice())])
        }),
    };
    let (late_left, late_right) = join.late();
    late_left.sink_to(late(0));
    late_right.sink_to(late(1));
    let cells = |left: Option<&super::flow::CaseRow>| left.map(|row| row.cells.clone());
    let joined = join.select(move |left, right| -> Joined { vec![cells(left), cells(right)] });
    sink_results(joined, &[]);
}

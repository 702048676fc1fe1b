//! Temporal and snapshot joins.

use flowjoin_core::{Append, Flow, KeyedStream, Loaded};

use super::flow::{CaseRow, FlowEngine, JOIN, Joined, VersionRow, arrivals, late, sink_results, versions};
use super::{Engine, Unbuilt, frontier};
use crate::conformance::cell::CellRow;
use crate::conformance::spec::{AsOf, TemporalSpec, TimeOf};

/// The join of the core, run as so many tasks a stage.
///
/// # Errors
/// If the core refuses it.
pub fn engine(spec: &TemporalSpec, parallelism: usize) -> Result<Box<dyn Engine>, Unbuilt> {
    let engine = FlowEngine::new(&spec.inputs, TimeOf::Event, frontier, parallelism, |flow| match spec.as_of {
        AsOf::Version => by_version(flow, spec.optional),
        AsOf::Arrival(load) => by_arrival(flow, spec.optional, load),
    })?;
    Ok(match spec.as_of {
        AsOf::Version => Box::new(engine.with_table(1)),
        AsOf::Arrival(_) => Box::new(engine.with_rows_at_the_watermark()),
    })
}

fn probes(flow: &Flow) -> KeyedStream<Option<String>, CaseRow, Append> {
    arrivals::<false>(flow, 0).map(|arrival| arrival.row).key_by(|row| row.key.clone())
}

fn joined(probe: &CaseRow, row: Option<&CellRow>) -> Joined {
    vec![Some(probe.cells.clone()), row.cloned()]
}

fn by_version(flow: &Flow, optional: bool) {
    let table = versions(flow, 1);
    let cells = |version: &VersionRow| version.row.cells.clone();
    if optional {
        let join = probes(flow).temporal_join(table.optional()).named(JOIN);
        join.late().sink_to(late(0));
        let results = join.select(move |probe, version| joined(probe, version.map(cells).as_ref()));
        return sink_results(results, &[]);
    }
    let join = probes(flow).temporal_join(table).named(JOIN);
    join.late().sink_to(late(0));
    sink_results(join.select(move |probe, version| joined(probe, Some(&cells(version)))), &[]);
}

fn by_arrival(flow: &Flow, optional: bool, load: Option<Loaded>) {
    let changes = arrivals::<false>(flow, 1).as_changelog(|arrival| (arrival.kind, arrival.row));
    let table = changes.key_by(|row| row.key.clone()).optional_if(optional);
    let join = probes(flow).snapshot_join(table).named(JOIN);
    let join = match load {
        Some(loaded) => join.after_load(loaded),
        None => join,
    };
    join.late().sink_to(late(0));
    sink_results(join.select(|probe, row| joined(probe, row.map(|row| &row.cells))), &[]);
}

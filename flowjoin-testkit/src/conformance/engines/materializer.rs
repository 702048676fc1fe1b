//! Tables out of changelogs.

use flowjoin_core::{Flow, Keyed, Table};
use serde::{Deserialize, Serialize};

use super::flow::{FlowEngine, JOIN, Joined, arrivals, sink_results};
use super::{Engine, Unbuilt, frontier};
use crate::conformance::cell::CellRow;
use crate::conformance::spec::{MaterializerSpec, TimeOf};

/// A row of a case under its primary key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TableRow {
    key: Option<String>,
    cells: CellRow,
}

impl Keyed for TableRow {
    type Key = Option<String>;

    fn key(&self) -> Option<String> {
        self.key.clone()
    }
}

/// The table of the core, run as so many tasks a stage.
///
/// # Errors
/// If the core refuses it.
pub fn engine(spec: &MaterializerSpec, parallelism: usize) -> Result<Box<dyn Engine>, Unbuilt> {
    let inputs = std::slice::from_ref(&spec.input);
    let engine = FlowEngine::new(inputs, TimeOf::Event, frontier, parallelism, |flow| build(flow, spec))?;
    Ok(Box::new(engine))
}

fn build(flow: &Flow, spec: &MaterializerSpec) {
    let changes = arrivals::<false>(flow, 0).as_changelog(|arrival| (arrival.kind, arrival.row));
    let changes = changes.map(|row| TableRow { key: row.key, cells: row.cells });
    let table: Table<Option<String>, TableRow> = match (spec.identity(), spec.conflict) {
        (Some(identity), None) => changes.to_table_by(move |row| identity(&row.cells)),
        (None, None) => changes.to_table(),
        (Some(identity), Some(conflict)) => changes.to_settled_table_by(move |row| identity(&row.cells), conflict),
        (None, Some(conflict)) => changes.to_settled_table(conflict),
    };
    sink_results(table.named(JOIN).map(|row| -> Joined { vec![Some(row.cells)] }), &[]);
}

//! Window joins.

use flowjoin_core::{Flow, KeyedStream};

use super::flow::{CaseRow, FlowEngine, JOIN, Joined, arrivals, late, sink_results};
use super::{Engine, Unbuilt, frontier};
use crate::conformance::spec::{Condition, TimeOf, WindowSpec};
use crate::oracle::{Role, Windows};

/// The join of the core, run as so many tasks a stage.
///
/// # Errors
/// If the core refuses it.
pub fn engine(spec: &WindowSpec, parallelism: usize) -> Result<Box<dyn Engine>, Unbuilt> {
    let engine = FlowEngine::new(&spec.inputs, TimeOf::Event, frontier, parallelism, |flow| build(flow, spec))?;
    Ok(Box::new(engine))
}

// A join with its windows, late rows and results; each kind of join, and an allowed lateness, is a type of its own.
macro_rules! windowed {
    ($spec:ident, $join:expr, $end:ident) => {{
        let join = match $spec.windows {
            Windows::Every { size, slide, offset } if size == slide => $join.tumbling(size).offset(offset),
            Windows::Every { size, slide, offset } => $join.sliding(size, slide).offset(offset),
            Windows::Session { gap } => $join.session(gap),
        };
        let join = join.named(JOIN);
        let (left, right) = join.late();
        left.sink_to(late(0));
        right.sink_to(late(1));
        match $spec.lateness.as_millis() {
            0 => sink_results($end!(join), &[]),
            _ => sink_results($end!(join.allowed_lateness($spec.lateness)), &[]),
        }
    }};
}

macro_rules! pairs {
    ($join:expr) => {
        $join.select(|left, right| -> Joined { vec![cells(left), cells(right)] })
    };
}

macro_rules! lefts {
    ($join:expr) => {
        $join.into_rows().map(|row| -> Joined { vec![Some(row.cells)] })
    };
}

fn cells(row: Option<&CaseRow>) -> Option<crate::conformance::cell::CellRow> {
    row.map(|row| row.cells.clone())
}

fn build(flow: &Flow, spec: &WindowSpec) {
    let keyed = |index: usize| -> KeyedStream<Option<String>, CaseRow> {
        arrivals::<false>(flow, index).map(|arrival| arrival.row).key_by(|row| row.key.clone())
    };
    let input = |index: usize| keyed(index).optional_if(spec.roles[index] == Role::Optional);
    let conditions = spec.conditions.clone();
    let holds = move |left: Option<&CaseRow>, right: &CaseRow| {
        let rows = [left.map(|row| row.cells.as_slice()), Some(right.cells.as_slice())];
        Condition::all_hold(&conditions, &rows)
    };
    let is_plain = spec.conditions.is_empty();
    match (spec.roles[1], is_plain) {
        (Role::Exists, true) => windowed!(spec, keyed(0).where_exists(keyed(1)), lefts),
        (Role::Exists, false) => {
            windowed!(spec, keyed(0).where_exists(keyed(1)).on(move |left, right| holds(Some(left), right)), lefts)
        }
        (Role::NotExists, true) => windowed!(spec, keyed(0).where_not_exists(keyed(1)), lefts),
        (Role::NotExists, false) => {
            windowed!(spec, keyed(0).where_not_exists(keyed(1)).on(move |left, right| holds(Some(left), right)), lefts)
        }
        (Role::Required | Role::Optional, true) => windowed!(spec, input(0).window_join(input(1)), pairs),
        (Role::Required | Role::Optional, false) => {
            windowed!(spec, input(0).window_join(input(1)).on(move |left, right| holds(left, right)), pairs)
        }
    }
}

//! Regular and multi joins.

use flowjoin_core::{Changelog, Flow, KeyedStream, MaybeOptional};

use super::flow::{CaseRow, FlowEngine, JOIN, Joined, arrivals, late, sink_results};
use super::mini_batch::MiniBatchEngine;
use super::{Engine, Unbuilt, frontier};
use crate::conformance::spec::{JoinSpec, TimeOf};
use crate::oracle::Role;

type Input = MaybeOptional<KeyedStream<Option<String>, CaseRow, Changelog>>;

/// The join of the core, run as so many tasks a stage.
///
/// # Errors
/// If the core refuses it.
pub fn engine(spec: &JoinSpec, parallelism: usize) -> Result<Box<dyn Engine>, Unbuilt> {
    let engine = FlowEngine::new(&spec.inputs, TimeOf::Event, frontier, parallelism, |flow| build(flow, spec))?;
    match spec.batch {
        Some(_) => Ok(Box::new(MiniBatchEngine::new(engine))),
        None => Ok(Box::new(engine)),
    }
}

fn input(flow: &Flow, spec: &JoinSpec, index: usize) -> Input {
    let rows = arrivals::<false>(flow, index).as_changelog(|arrival| (arrival.kind, arrival.row));
    let keyed = rows.key_by(|row| row.key.clone());
    let kept = match spec.inputs[index].ttl {
        Some(ttl) => keyed.ttl(ttl),
        None => keyed.keep_forever(),
    };
    kept.optional_if(spec.roles[index] == Role::Optional)
}

// One type of join for each number of inputs, as everywhere in the API.
macro_rules! join_of {
    ($flow:ident, $spec:ident; $($index:literal $row:ident),+) => {{
        let join = flowjoin_core::multi_join![$(input($flow, $spec, $index)),+].named(JOIN).keep_forever();
        let ($($row,)+) = join.late();
        $($row.sink_to(late($index));)+
        let joined = join.select(|$($row),+| -> Joined { vec![$($row.map(|row| row.cells.clone())),+] });
        sink_results(joined, &$spec.conditions.concat());
    }};
}

fn build(flow: &Flow, spec: &JoinSpec) {
    match spec.inputs.len() {
        2 => join_of!(flow, spec; 0 a, 1 b),
        3 => join_of!(flow, spec; 0 a, 1 b, 2 c),
        4 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d),
        5 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e),
        6 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f),
        7 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g),
        8 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h),
        9 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i),
        10 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i, 9 j),
        11 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i, 9 j, 10 k),
        12 => join_of!(flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i, 9 j, 10 k, 11 l),
        inputs => unreachable!("a join has 2 to 12 inputs, not {inputs}: its configuration was read"),
    }
}

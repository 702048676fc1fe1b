//! Regular and multi joins, semi and anti joins.

use flowjoin_core::api::{NeedsTtl, multi_join};
use flowjoin_core::{Append, Changelog, Flow, KeyedStream, MaybeOptional, Mode};

use super::flow::{CaseRow, FlowEngine, JOIN, Joined, arrivals, late, sink_results};
use super::mini_batch::MiniBatchEngine;
use super::{Engine, Unbuilt, frontier};
use crate::conformance::cell::CellRow;
use crate::conformance::spec::{Condition, JoinSpec, Need, TimeOf};
use crate::oracle::Role;

type Rows<M> = KeyedStream<Option<String>, CaseRow, M>;

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

// The rows of an input that only inserts, as facts.
fn facts(flow: &Flow, spec: &JoinSpec, index: usize) -> Rows<Append> {
    kept(arrivals::<false>(flow, index).map(|arrival| arrival.row).key_by(|row| row.key.clone()), spec, index)
}

// The rows of an input, as changes.
fn changes(flow: &Flow, spec: &JoinSpec, index: usize) -> Rows<Changelog> {
    let rows = arrivals::<false>(flow, index).as_changelog(|arrival| (arrival.kind, arrival.row));
    let keyed = rows.key_by(|row| row.key.clone());
    let keyed = match spec.inputs[index].unique_key.clone() {
        Some(places) => {
            keyed.unique_by(move |row| -> CellRow { places.iter().map(|&p| row.cells[p].clone()).collect() })
        }
        None => keyed,
    };
    kept(keyed, spec, index)
}

fn kept<M: Mode>(keyed: Rows<M>, spec: &JoinSpec, index: usize) -> Rows<M> {
    match spec.inputs[index].ttl {
        Some(ttl) => keyed.ttl(ttl),
        None => keyed.keep_forever(),
    }
}

fn input<M: Mode>(rows: Rows<M>, spec: &JoinSpec, index: usize) -> MaybeOptional<Rows<M>> {
    rows.optional_if(spec.roles[index] == Role::Optional)
}

// `begun.and(input).on(condition)` for one input after the other; each condition gets the rows so far.
macro_rules! chain {
    ($rows:ident, $flow:ident, $spec:ident, $begun:expr; [$($before:ident)+];) => { $begun };
    ($rows:ident, $flow:ident, $spec:ident, $begun:expr; [$($before:ident)+]; $index:literal $row:ident $($rest:tt)*) => {{
        let join = $begun.and(input($rows($flow, $spec, $index), $spec, $index));
        let conditions = $spec.conditions[$index].clone();
        let join = match conditions.is_empty() {
            true => join,
            false => join.on(move |$($before,)+ $row| {
                let rows = [$($before.map(|row| row.cells.as_slice()),)+ Some($row.cells.as_slice())];
                Condition::all_hold(&conditions, &rows)
            }),
        };
        chain!($rows, $flow, $spec, join; [$($before)+ $row]; $($rest)*)
    }};
}

// One type of join for each number of inputs, as everywhere in the API.
macro_rules! join_of {
    ($rows:ident, $flow:ident, $spec:ident; $first:ident, $($index:literal $row:ident),+) => {{
        let begun = multi_join(input($rows($flow, $spec, 0), $spec, 0));
        let join = chain!($rows, $flow, $spec, begun; [$first]; $($index $row)+).named(JOIN).keep_forever();
        let ($first, $($row),+) = join.late();
        $first.sink_to(late(0));
        $($row.sink_to(late($index));)+
        sink_results(join.select(|$first, $($row),+| -> Joined {
            vec![$first.map(|row| row.cells.clone()), $($row.map(|row| row.cells.clone())),+]
        }), &[]);
    }};
}

// One type of join for each kind of test.
macro_rules! test_of {
    ($spec:ident; $test:expr) => {{
        let conditions = $spec.conditions[1].clone();
        let test: NeedsTtl<_> = match conditions.is_empty() {
            true => $test,
            false => $test.on(move |left, right| {
                Condition::all_hold(&conditions, &[Some(left.cells.as_slice()), Some(right.cells.as_slice())])
            }),
        };
        let test = test.named(JOIN).keep_forever();
        let (left, right) = test.late();
        left.sink_to(late(0));
        right.sink_to(late(1));
        sink_results(test.into_rows().map(|row| -> Joined { vec![Some(row.cells)] }), &[]);
    }};
}

// A case that only inserts is played on facts, where there are few inputs, so that those are tried too.
fn build(flow: &Flow, spec: &JoinSpec) {
    let changes_come = spec.demands.iter().any(|demand| matches!(demand.need, Need::Retractions | Need::Replacements));
    match (&spec.roles[..], changes_come) {
        ([_, Role::Exists], false) => test_of!(spec; facts(flow, spec, 0).where_exists(facts(flow, spec, 1))),
        ([_, Role::Exists], true) => test_of!(spec; changes(flow, spec, 0).where_exists(changes(flow, spec, 1))),
        ([_, Role::NotExists], false) => test_of!(spec; facts(flow, spec, 0).where_not_exists(facts(flow, spec, 1))),
        ([_, Role::NotExists], true) => test_of!(spec; changes(flow, spec, 0).where_not_exists(changes(flow, spec, 1))),
        ([_, _], false) => join_of!(facts, flow, spec; a, 1 b),
        ([_, _, _], false) => join_of!(facts, flow, spec; a, 1 b, 2 c),
        _ => build_of_changes(flow, spec),
    }
}

fn build_of_changes(flow: &Flow, spec: &JoinSpec) {
    match spec.inputs.len() {
        2 => join_of!(changes, flow, spec; a, 1 b),
        3 => join_of!(changes, flow, spec; a, 1 b, 2 c),
        4 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d),
        5 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e),
        6 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f),
        7 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g),
        8 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h),
        9 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i),
        10 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i, 9 j),
        11 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i, 9 j, 10 k),
        12 => join_of!(changes, flow, spec; a, 1 b, 2 c, 3 d, 4 e, 5 f, 6 g, 7 h, 8 i, 9 j, 10 k, 11 l),
        inputs => unreachable!("a join has 2 to 12 inputs, not {inputs}: its configuration was read"),
    }
}

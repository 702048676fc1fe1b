//! The words for each step of a plan, and what its author is warned of.

use std::collections::{BTreeMap, BTreeSet};

use super::{Step, StepInput, StepOutput, StepState, strategy};
use crate::op::Port;
use crate::op::interval_join::{Bounds, LateRows, Spec};
use crate::op::kernel::Kind;
use crate::op::multi_join::{Emit, OnExpiry};
use crate::plan::{Build, Node, NodeId, Op, Plan};
use crate::state::{Clock, Keeps, StateShape, Ttl};
use crate::time::Span;

/// Describes one node.
pub fn step(plan: &Plan, node: &Node) -> Step {
    Step {
        id: node.id.0,
        name: node.name.clone(),
        kind: kind(node),
        on: on(plan, node),
        detail: detail(node),
        kernel: kernel(node),
        expiry: expiry(node),
        inputs: (0..node.inputs.len()).map(|input| step_input(plan, node, input)).collect(),
        outputs: outputs(plan, node),
        state: node
            .state
            .iter()
            .filter(|spec| spec.keeps != Keeps::Nothing && holds(plan, node))
            .map(|spec| StepState {
                input: spec.input.clone(),
                shape: match spec.shape {
                    StateShape::KeyedRows => "rows by key".to_string(),
                    StateShape::Timeline => "rows by key and time".to_string(),
                    StateShape::Rows => "one row a key".to_string(),
                    StateShape::Panes => "rows by window".to_string(),
                    StateShape::Sessions => "rows by key and session".to_string(),
                },
                keeps: spec.keeps.to_string(),
            })
            .collect(),
        watermarks: watermarks(node),
        waits: Vec::new(),
        declared_at: node.declared_at.to_string(),
    }
}

fn watermarks(node: &Node) -> Option<String> {
    let Build::Source(source) = &node.build else { return None };
    let align = source.align().map(|align| format!(", {align}"));
    Some(format!("{}{}", source.strategy(), align.unwrap_or_default()))
}

fn kind(node: &Node) -> String {
    match &node.op {
        Op::Source => "source".to_string(),
        Op::Apply { verb } => (*verb).to_string(),
        Op::Union => "union".to_string(),
        Op::KeyBy { .. } => "key by".to_string(),
        Op::Table { .. } => "table".to_string(),
        Op::MultiJoin { kinds, .. } if kinds[1] == Kind::Exists => "where exists".to_string(),
        Op::MultiJoin { kinds, .. } if kinds[1] == Kind::NotExists => "where not exists".to_string(),
        Op::MultiJoin { kinds, .. } if kinds.len() == 2 => "join".to_string(),
        Op::MultiJoin { .. } => "multi join".to_string(),
        Op::IntervalJoin(spec) => match spec.kinds[1] {
            Kind::Exists => "interval where exists".to_string(),
            Kind::NotExists => "interval where not exists".to_string(),
            Kind::Required | Kind::Optional => "interval join".to_string(),
        },
        Op::TemporalJoin { .. } => "temporal join".to_string(),
        Op::SnapshotJoin { .. } => "snapshot join".to_string(),
        Op::WindowJoin { kinds, .. } => match kinds[1] {
            Kind::Exists => "window where exists".to_string(),
            Kind::NotExists => "window where not exists".to_string(),
            Kind::Required | Kind::Optional => "window join".to_string(),
        },
        Op::Sink => "sink".to_string(),
    }
}

fn on(plan: &Plan, node: &Node) -> Option<String> {
    match &node.op {
        Op::KeyBy { key } if key.is_empty() => Some("key".to_string()),
        Op::KeyBy { key } | Op::Table { key, .. } => Some(key.clone()),
        Op::MultiJoin { .. }
        | Op::IntervalJoin(_)
        | Op::WindowJoin { .. }
        | Op::TemporalJoin { .. }
        | Op::SnapshotJoin { .. } => Some(keys(plan, node)),
        Op::Source | Op::Apply { .. } | Op::Union | Op::Sink => None,
    }
}

// A table of whole rows of which only the versions are read holds none.
fn holds(plan: &Plan, node: &Node) -> bool {
    let shown = || plan.readers(node.id).any(|(port, ..)| port == Port::MAIN);
    !matches!(node.op, Op::Table { whole_rows: true, .. }) || shown()
}

fn detail(node: &Node) -> String {
    match (&node.op, &node.build) {
        (_, Build::Source(source)) => endpoint(&source.endpoint()),
        (_, Build::Sink(sink)) => endpoint(&sink.endpoint()),
        (Op::IntervalJoin(Spec { bounds: Bounds { lower, upper }, late_rows, .. }), _) => {
            let late = if *late_rows == LateRows::Join { ", late rows join" } else { "" };
            format!("right − left in [{lower}, {upper}]{late}")
        }
        (Op::TemporalJoin { correct: Some(span), .. }, _) => format!("corrected for {span}"),
        (Op::SnapshotJoin { load: Some(load), .. }, _) => format!("after the table {load}"),
        (Op::WindowJoin { windows, lateness, .. }, _) => match *lateness {
            Span::ZERO => windows.to_string(),
            lateness => format!("{windows}, lateness {lateness}"),
        },
        _ => String::new(),
    }
}

fn kernel(node: &Node) -> Option<String> {
    let (Op::MultiJoin { conditions, .. } | Op::WindowJoin { conditions, .. }) = &node.op else { return None };
    let kernel = if conditions.contains(&true) { "conditional" } else { "product" };
    Some(kernel.to_string())
}

fn expiry(node: &Node) -> Option<String> {
    let Op::MultiJoin { on_expiry, .. } = &node.op else { return None };
    match on_expiry {
        OnExpiry::Silent => None,
        OnExpiry::Unmatch => Some("unmatches".to_string()),
        OnExpiry::Retract => Some("retracts".to_string()),
    }
}

fn endpoint(endpoint: &crate::io::Endpoint) -> String {
    let words = [endpoint.kind.as_str(), endpoint.detail.as_str()];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

// Often all inputs are keyed by the same words; then they are said once.
fn keys(plan: &Plan, node: &Node) -> String {
    let of = |id: NodeId| match &plan.node(id).op {
        Op::KeyBy { key } | Op::Table { key, .. } => key.clone(),
        _ => String::new(),
    };
    // A closure has no name to tell.
    let mut keys: Vec<String> = node.inputs.iter().map(|edge| of(edge.from)).filter(|key| !key.is_empty()).collect();
    let mut seen = BTreeSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    if keys.is_empty() { "key".to_string() } else { keys.join(" = ") }
}

/// The name of what an edge stems from: the nearest source, join or side output.
pub fn origin(plan: &Plan, id: NodeId, port: Port) -> String {
    let node = plan.node(id);
    match &node.op {
        Op::Source | Op::Table { .. } => node.name.clone(),
        Op::MultiJoin { .. }
        | Op::IntervalJoin(_)
        | Op::WindowJoin { .. }
        | Op::TemporalJoin { .. }
        | Op::SnapshotJoin { .. } => {
            if port == Port::MAIN {
                node.name.clone()
            } else {
                node.ports[port.0].label.clone()
            }
        }
        Op::Apply { .. } | Op::KeyBy { .. } | Op::Sink => origin_of_input(plan, node, 0),
        Op::Union => {
            let names: Vec<String> = (0..node.inputs.len()).map(|input| origin_of_input(plan, node, input)).collect();
            names.join("+")
        }
    }
}

fn origin_of_input(plan: &Plan, node: &Node, input: usize) -> String {
    let edge = node.inputs[input];
    origin(plan, edge.from, edge.port)
}

fn step_input(plan: &Plan, node: &Node, input: usize) -> StepInput {
    let edge = node.inputs[input];
    let from = plan.node(edge.from);
    let exchanged = matches!(from.op, Op::KeyBy { .. });
    let optional = match &node.op {
        Op::MultiJoin { kinds, .. } | Op::WindowJoin { kinds, .. } => kinds[input] == Kind::Optional,
        Op::IntervalJoin(spec) => spec.kinds[input] == Kind::Optional,
        Op::TemporalJoin { optional, .. } | Op::SnapshotJoin { optional, .. } => input == 1 && *optional,
        _ => false,
    };
    let (unique, condition, gaps) = match &node.op {
        Op::MultiJoin { unique, conditions, emit, .. } => {
            (unique[input].as_deref().map(named), conditions[input], gaps(emit[input], Emit::Eager))
        }
        Op::WindowJoin { conditions, .. } => (None, conditions[input], None),
        Op::IntervalJoin(spec) => (None, spec.condition && input == 1, gaps(spec.emit[input], Emit::Final)),
        _ => (None, false, None),
    };
    // A table that is part of the join has its name there alone.
    let table = node.op.tables() >> input & 1 == 1;
    StepInput {
        from: edge.from.0,
        name: if table { node.state[input].input.clone() } else { origin(plan, edge.from, edge.port) },
        optional,
        table,
        unique,
        condition,
        gaps,
        mode: from.ports[edge.port.0].mode.to_string(),
        edge: if exchanged { "exchange by key" } else { "forward" }.to_string(),
    }
}

// A closure has no name to tell.
fn named(key: &str) -> String {
    if key.is_empty() { "a function".to_string() } else { key.to_string() }
}

// What is usual for a kind of join goes without saying.
fn gaps(emit: Emit, usual: Emit) -> Option<String> {
    match emit {
        _ if emit == usual => None,
        Emit::Eager => Some("at once".to_string()),
        Emit::EagerAfter(delay) => Some(format!("after {delay}")),
        Emit::Final => Some("at the end".to_string()),
    }
}

fn outputs(plan: &Plan, node: &Node) -> Vec<StepOutput> {
    let to = |port: usize| {
        let readers = plan.readers(node.id).filter(|(from, ..)| from.0 == port);
        let mut to: Vec<usize> = readers.map(|(_, id, _)| id.0).collect();
        to.dedup();
        to
    };
    let ports = node.ports.iter().enumerate();
    ports
        .map(|(port, info)| StepOutput { port: info.label.clone(), mode: info.mode.to_string(), to: to(port) })
        .collect()
}

/// What the author of a flow may want to think about.
pub fn warnings(plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    for node in plan.nodes() {
        for (spec, edge) in node.state.iter().zip(&node.inputs) {
            if matches!(spec.keeps, Keeps::Newest { hold: None, .. }) {
                warnings.push(format!(
                    "join {}: the newest version of each key of `{}` is kept for ever, also of a key that was deleted, so \
                     its state grows with the keys; `.keep_versions(..)` ends that",
                    node.name, spec.input
                ));
            }
            if spec.keeps == Keeps::Ttl(Ttl::Forever) && !ends_with_tables(plan, edge.from) {
                warnings.push(format!(
                    "join {}: rows of `{}` are kept for ever, so its state grows with the input; `.ttl(..)` ends \
                     that",
                    node.name, spec.input
                ));
            }
        }
    }
    warnings.extend(no_idleness(plan));
    warnings
}

// Whether all rows that come out here stand in a table, or are made of rows that do: they go when those go.
fn ends_with_tables(plan: &Plan, id: NodeId) -> bool {
    let node = plan.node(id);
    let is_table = |input: usize| node.op.tables() >> input & 1 == 1;
    let mut edges = node.inputs.iter().enumerate();
    let mut above = || edges.all(|(input, edge)| is_table(input) || ends_with_tables(plan, edge.from));
    match &node.op {
        Op::Source | Op::Sink | Op::IntervalJoin(_) | Op::WindowJoin { .. } => false,
        // What was said with a row of a table stands when that goes.
        Op::TemporalJoin { .. } | Op::SnapshotJoin { .. } => false,
        Op::Table { .. } => node.state.iter().any(|spec| spec.shape == StateShape::Rows) || above(),
        Op::MultiJoin { on_expiry: OnExpiry::Silent, .. } => {
            node.state.iter().all(|spec| matches!(spec.keeps, Keeps::Ttl(Ttl::Forever) | Keeps::Standing)) && above()
        }
        Op::MultiJoin { .. } | Op::Apply { .. } | Op::Union | Op::KeyBy { .. } => above(),
    }
}

// Joins that clean by event time stand still while a source of one of their inputs is quiet: told once a source.
fn no_idleness(plan: &Plan) -> Vec<String> {
    let mut standing: BTreeMap<NodeId, BTreeMap<(&str, &str), Vec<&str>>> = BTreeMap::new();
    for join in plan.nodes().iter().filter(|node| node.op.is_join() && waits_for_time(node)) {
        let mut sources = Vec::new();
        join.inputs.iter().for_each(|edge| sources_below(plan, edge.from, &mut sources));
        let quiet = |id: &NodeId| {
            let strategy = strategy(plan.node(*id));
            strategy.is_some_and(|strategy| strategy.field().is_some() && strategy.idle_after().is_none())
        };
        let stops = match join.op {
            Op::TemporalJoin { .. } => ("no row comes out of", ""),
            Op::WindowJoin { .. } => ("no window of", " fires"),
            _ => ("nothing is cleaned or comes out unmatched in", ""),
        };
        for source in sources.into_iter().filter(quiet).collect::<BTreeSet<NodeId>>() {
            standing.entry(source).or_default().entry(stops).or_default().push(&join.name);
        }
    }
    let told = |((before, behind), joins): ((&str, &str), Vec<&str>)| {
        let joins = match joins.as_slice() {
            [join] => format!("join {join}"),
            joins => format!("joins {}", joins.join(", ")),
        };
        format!("{before} {joins}{behind}")
    };
    let named = standing.into_iter().map(|(source, stops)| {
        let stops: Vec<String> = stops.into_iter().map(told).collect();
        format!(
            "source `{}` has no idleness: while one of its partitions is quiet, event time stands still, and {}; \
             `idle = \"1m\"` beside its time ends that",
            plan.node(source).name,
            stops.join(", and ")
        )
    });
    named.collect()
}

// Whether it cleans, or lets rows out, by event time.
fn waits_for_time(join: &Node) -> bool {
    join.state.iter().any(|spec| match spec.keeps {
        Keeps::PastTime(_) | Keeps::PastWindow(_) | Keeps::Ttl(Ttl::For(_, Clock::Event)) => true,
        Keeps::Ttl(_) | Keeps::Standing | Keeps::Passing | Keeps::Nothing | Keeps::Newest { .. } => false,
    })
}

fn sources_below(plan: &Plan, id: NodeId, found: &mut Vec<NodeId>) {
    let node = plan.node(id);
    if node.op == Op::Source {
        found.push(id);
    }
    for edge in &node.inputs {
        sources_below(plan, edge.from, found);
    }
}

//! What a plan is refused for: one function a rule.
//!
//! Rules about a single verb (bounds, spans) are checked where the verb is called; here are those that need the whole
//! plan.

use std::collections::BTreeMap;

use super::{Build, Node, NodeId, Op};
use crate::error::PlanError;

/// All the mistakes in a plan.
pub fn all(nodes: &[Node]) -> Vec<PlanError> {
    let mut found = Vec::new();
    found.extend(nothing_to_do(nodes));
    found.extend(equal_names(nodes));
    found.extend(unread_outputs(nodes));
    found
}

fn error(node: &Node, message: String) -> PlanError {
    PlanError { message, place: node.declared_at }
}

fn nothing_to_do(nodes: &[Node]) -> Option<PlanError> {
    let place = std::panic::Location::caller();
    let message = "the flow has no source: open one with `flow.stream::<Row>(source)`".to_string();
    nodes.is_empty().then_some(PlanError { message, place })
}

// Sources, sinks and joins are found by name; each kind has names of its own.
fn equal_names(nodes: &[Node]) -> Vec<PlanError> {
    let mut first: BTreeMap<(&str, &str), &Node> = BTreeMap::new();
    let mut found = Vec::new();
    for node in nodes {
        let kind = match (&node.build, &node.op) {
            (Build::Source(_), _) => "source",
            (Build::Sink(_), _) => "sink",
            (Build::Operator(_), op) if op.is_join() => "join",
            (Build::Operator(_), _) => continue,
        };
        match first.get(&(kind, node.name.as_str())) {
            None => {
                first.insert((kind, &node.name), node);
            }
            Some(other) => found.push(error(
                node,
                format!(
                    "there is another {kind} named `{}`, at {}: a name is the identity of its state and figures; call \
                     `.named(\"…\")` on one of them",
                    node.name, other.declared_at
                ),
            )),
        }
    }
    found
}

fn unread_outputs(nodes: &[Node]) -> Vec<PlanError> {
    let is_read = |id: NodeId| nodes.iter().any(|node| node.inputs.iter().any(|edge| edge.from == id));
    let unread = nodes.iter().filter(|node| node.op != Op::Sink && !is_read(node.id));
    unread
        .map(|node| {
            let what = match &node.op {
                Op::Source => format!("the stream of `{}`", node.name),
                Op::MultiJoin { .. } | Op::IntervalJoin { .. } => format!("the result of join `{}`", node.name),
                Op::Apply { verb } => format!("the result of `{verb}`"),
                Op::Union => "the result of `union`".to_string(),
                Op::KeyBy { .. } => "the result of `key_by`".to_string(),
                Op::Sink => unreachable!("a sink is the end"),
            };
            error(node, format!("{what} goes nowhere: send it on with `.sink_to(sink)`, or leave the step out"))
        })
        .collect()
}

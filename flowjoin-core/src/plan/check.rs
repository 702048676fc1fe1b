//! What a plan is refused for: one function a rule.
//!
//! Rules about a single verb (bounds, spans) are checked where the verb is called; here are those that need the whole
//! plan.

use std::collections::BTreeMap;
use std::panic::Location;

use super::{Build, ChangeMode, Edge, Node, NodeId, Op};
use crate::error::PlanError;
use crate::op::kernel::Kind;
use crate::op::multi_join::{Emit, OnExpiry};
use crate::state::{Keeps, Ttl};
use crate::time::Span;
use crate::watermark::Align;

/// All the mistakes in a plan.
pub fn all(nodes: &[Node], flow: &'static Location<'static>) -> Vec<PlanError> {
    let mut found = Vec::new();
    found.extend(nothing_to_do(nodes, flow));
    found.extend(equal_names(nodes));
    found.extend(unread_outputs(nodes));
    found.extend(nodes.iter().filter_map(|node| silent_gaps(nodes, node)));
    found.extend(nodes.iter().filter_map(silent_conditions));
    found.extend(nodes.iter().filter_map(|node| waiting_gaps(nodes, node)));
    found.extend(nodes.iter().filter_map(tests_among_many));
    found.extend(unordered_unique_rows(nodes));
    found.extend(unaligned(nodes));
    found
}

fn error(node: &Node, message: String) -> PlanError {
    PlanError { message, place: node.declared_at }
}

fn nothing_to_do(nodes: &[Node], place: &'static Location<'static>) -> Option<PlanError> {
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
            (Build::Operator(_), Op::Table { .. }) => "table",
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
                     `.named(\"…\")` on one of them{}",
                    node.name,
                    other.declared_at,
                    match kind {
                        "source" => ", or open it once and `.clone()` it, which reads it once for all",
                        _ => "",
                    }
                ),
            )),
        }
    }
    found
}

// With two gaps in one result, a gap that closed in silence and one that opened by a retraction cannot be told apart.
fn silent_gaps(nodes: &[Node], node: &Node) -> Option<PlanError> {
    let Op::MultiJoin { kinds, on_expiry: OnExpiry::Silent, .. } = &node.op else { return None };
    let gaps = kinds.iter().filter(|&&kind| kind == Kind::Optional).count();
    let expires = node.state.iter().any(|spec| spec.keeps != Keeps::Ttl(Ttl::Forever));
    let retracts = node.inputs.iter().any(|edge| nodes[edge.from.0].ports[edge.port.0].mode == ChangeMode::Changelog);
    (kinds.len() > 2 && gaps > 1 && expires && retracts).then(|| {
        error(
            node,
            format!(
                "join `{}` has more than one optional input, a time-to-live and an input that takes rows back: which \
                 gaps stand cannot be known then; say what expiry does with `.on_expiry(Unmatch)` or \
                 `.on_expiry(Retract)`, or use `.keep_forever()`",
                node.name
            ),
        )
    })
}

fn expires(node: &Node) -> bool {
    node.state.iter().any(|spec| spec.keeps != Keeps::Ttl(Ttl::Forever))
}

// With conditions, rows of one key have different partners: which of them expired in silence is known a row at two inputs.
fn silent_conditions(node: &Node) -> Option<PlanError> {
    let Op::MultiJoin { kinds, conditions, emit, on_expiry, .. } = &node.op else { return None };
    let gaps = kinds.iter().any(|&kind| kind != Kind::Required);
    let waits = emit.iter().any(|&emit| emit != Emit::Eager);
    let silent = *on_expiry == OnExpiry::Silent && expires(node);
    let unsure = kinds.len() > 2 && gaps && conditions.contains(&true) && (silent || waits);
    unsure.then(|| {
        let remedy = match waits {
            true => "join two inputs at a time, or let gaps be told at once",
            false => {
                "say what expiry does with `.on_expiry(Unmatch)` or `.on_expiry(Retract)`, or use `.keep_forever()`"
            }
        };
        error(
            node,
            format!(
                "join `{}` has conditions, optional inputs and rows that leave in silence or gaps that wait: which gaps \
                 stand cannot be known then; {remedy}",
                node.name
            ),
        )
    })
}

fn waiting_gaps(nodes: &[Node], node: &Node) -> Option<PlanError> {
    let Op::MultiJoin { emit, on_expiry, .. } = &node.op else { return None };
    let waits = emit.iter().any(|&emit| emit != Emit::Eager);
    let changes = |edge: &Edge| nodes[edge.from.0].ports[edge.port.0].mode == ChangeMode::Changelog;
    let retracts = *on_expiry != OnExpiry::Silent || node.inputs.iter().any(changes);
    (waits && retracts).then(|| {
        error(
            node,
            format!(
                "join `{}` tells a gap after a delay or at the end, but its rows are also taken back (an input is a \
                 changelog, or expiry retracts): leave out `.emit(..)`, or make all its inputs facts",
                node.name
            ),
        )
    })
}

fn tests_among_many(node: &Node) -> Option<PlanError> {
    let (Op::MultiJoin { kinds, .. } | Op::WindowJoin { kinds, .. }) = &node.op else { return None };
    (kinds.len() > 2 && kinds.iter().any(|kind| !kind.shows())).then(|| {
        error(
            node,
            format!(
                "join `{}` joins the result of `where_exists` or `where_not_exists` at once: end that with \
                 `.into_rows()`, key it and join then",
                node.name
            ),
        )
    })
}

// What one task takes back may come after what another put in its place: by the unique key the new row would go.
fn unordered_unique_rows(nodes: &[Node]) -> Vec<PlanError> {
    let mut found = Vec::new();
    for node in nodes {
        let Op::MultiJoin { unique, .. } = &node.op else { continue };
        for (edge, _) in node.inputs.iter().zip(unique).filter(|(_, unique)| unique.is_some()) {
            let Op::KeyBy { key } = &nodes[edge.from.0].op else { continue };
            let Some(join) = join_above(nodes, &nodes[edge.from.0]) else { continue };
            let keys = join.inputs.iter().map(|edge| &nodes[edge.from.0].op);
            let is_key = |op: &Op| matches!(op, Op::KeyBy { key: of } | Op::Table { key: of, .. } if of == key);
            if key.is_empty() || !keys.into_iter().any(is_key) {
                found.push(error(
                    node,
                    format!(
                        "an input of join `{}` has a unique key and is the result of join `{}`, keyed anew: changes of one \
                         row come from several tasks then, and what is taken back may come last; make it a table first, \
                         with `.to_table()` and `.key_by(..)` on that",
                        node.name, join.name
                    ),
                ));
            }
        }
    }
    found
}

// The join that a step stems from, if nothing between the two puts changes in order.
fn join_above<'a>(nodes: &'a [Node], node: &Node) -> Option<&'a Node> {
    node.inputs.iter().map(|edge| &nodes[edge.from.0]).find_map(|from| match from.op {
        Op::MultiJoin { .. } | Op::WindowJoin { .. } => Some(from),
        Op::Apply { .. } | Op::Union => join_above(nodes, from),
        _ => None,
    })
}

// A group has one drift, and its members event times that can be compared.
fn unaligned(nodes: &[Node]) -> Vec<PlanError> {
    let mut first: BTreeMap<String, (Span, &Node)> = BTreeMap::new();
    let mut found = Vec::new();
    for node in nodes {
        let Build::Source(source) = &node.build else { continue };
        let Some(Align { group, max_drift }) = source.align() else { continue };
        if source.strategy().field().is_none() {
            found.push(error(
                node,
                format!(
                    "source `{}` takes the time of arrival, which is never ahead or behind: leave out `.align(..)`, or \
                     give its rows a time of their own",
                    node.name
                ),
            ));
        }
        let (drift, other) = first.entry(group.clone()).or_insert((*max_drift, node));
        if drift != max_drift {
            found.push(error(
                node,
                format!(
                    "source `{}` is aligned in `{group}` within {max_drift}, and `{}` within {drift}: give both the same \
                     drift, or groups of their own",
                    node.name, other.name
                ),
            ));
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
                op if op.is_join() => format!("the result of join `{}`", node.name),
                Op::Apply { verb } => format!("the result of `{verb}`"),
                Op::Table { .. } => format!("table `{}`", node.name),
                Op::Union => "the result of `union`".to_string(),
                Op::KeyBy { .. } => "the result of `key_by`".to_string(),
                _ => unreachable!("a join was told of, and a sink is the end"),
            };
            let remedy = match &node.op {
                Op::Table { .. } => "join it, or send it on with `.sink_to(sink)`",
                Op::KeyBy { .. } => "join it and end the join with `.select(..)`",
                _ => "send it on with `.sink_to(sink)`",
            };
            error(node, format!("{what} goes nowhere: {remedy}, or leave the step out"))
        })
        .collect()
}

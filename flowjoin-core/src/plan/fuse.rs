//! Tables that become part of the joins that read them.
//!
//! A join holds the rows of its inputs by key. Where it reads a table on the table's own key and keeps the rows for ever,
//! the table in front of it would hold the same rows a second time, and find each a second time. So the join takes the
//! changes of the table's source itself, and the table is left out. A table that has other readers stays: each of its changes
//! is then made once, and told once if it is a bad one.

use super::{Node, NodeId, Op};
use crate::state::{Keeps, StateShape, Ttl};

/// Lets joins take the changes of tables themselves where that comes to the same.
pub fn tables(mut nodes: Vec<Node>) -> Vec<Node> {
    for reader in 0..nodes.len() {
        for input in 0..nodes[reader].inputs.len() {
            if can_be_part(&nodes, &nodes[reader], input) {
                let table = nodes[reader].inputs[input].from.0;
                let changes = nodes[table].inputs[0];
                let join = &mut nodes[reader];
                join.inputs[input] = changes;
                join.state[input].shape = StateShape::Rows;
                join.state[input].keeps = Keeps::Standing;
                if let Op::MultiJoin { tables, .. } = &mut join.op {
                    tables[input] = true;
                }
            }
        }
    }
    without_unread(nodes)
}

fn can_be_part(nodes: &[Node], join: &Node, input: usize) -> bool {
    let table = join.inputs[input].from;
    let readers = nodes.iter().flat_map(|node| &node.inputs).filter(|edge| edge.from == table).count();
    matches!(join.op, Op::MultiJoin { .. })
        && matches!(nodes[table.0].op, Op::Table { plain: true, .. })
        && readers == 1
        && join.state[input].keeps == Keeps::Ttl(Ttl::Forever)
}

// Leaves tables out that nobody reads any more, and numbers the others anew.
fn without_unread(nodes: Vec<Node>) -> Vec<Node> {
    let is_read = |id: NodeId| nodes.iter().any(|node| node.inputs.iter().any(|edge| edge.from == id));
    let stays: Vec<bool> =
        nodes.iter().map(|node| !matches!(node.op, Op::Table { plain: true, .. }) || is_read(node.id)).collect();
    let mut next = 0;
    let numbers: Vec<usize> = stays.iter().map(|&stays| (next, next += usize::from(stays)).0).collect();
    let kept = nodes.into_iter().filter(|node| stays[node.id.0]);
    kept.map(|mut node| {
        node.id = NodeId(numbers[node.id.0]);
        node.inputs.iter_mut().for_each(|edge| edge.from = NodeId(numbers[edge.from.0]));
        node
    })
    .collect()
}

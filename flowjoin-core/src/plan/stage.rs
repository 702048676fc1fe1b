//! Stages: what runs together in one task.
//!
//! Everything between two exchanges is one stage, run as so many tasks; a row goes through it by plain calls. Where
//! only one task runs, nothing needs to be exchanged and the flow is one stage for each connected part.

use super::{NodeId, Op, Plan};

/// The nodes that run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// In the order of the plan: inputs before what reads them.
    pub nodes: Vec<NodeId>,
}

/// The stages of a plan at a parallelism.
#[derive(Clone, Debug)]
pub struct Stages {
    /// All of them.
    pub stages: Vec<Stage>,
    of_node: Vec<usize>,
    tasks: usize,
}

impl Stages {
    /// Cuts a plan at its exchanges.
    pub fn of(plan: &Plan, tasks: usize) -> Stages {
        let mut root: Vec<usize> = (0..plan.nodes().len()).collect();
        for node in plan.nodes() {
            for edge in &node.inputs {
                if tasks == 1 || !is_exchange(plan, edge.from) {
                    let (a, b) = (find(&root, edge.from.0), find(&root, node.id.0));
                    root[a.max(b)] = a.min(b);
                }
            }
        }
        let mut stages: Vec<Stage> = Vec::new();
        let mut of_root = vec![None; root.len()];
        let mut of_node = Vec::new();
        for node in plan.nodes() {
            let root = find(&root, node.id.0);
            let stage = *of_root[root].get_or_insert_with(|| {
                stages.push(Stage { nodes: Vec::new() });
                stages.len() - 1
            });
            stages[stage].nodes.push(node.id);
            of_node.push(stage);
        }
        Stages { stages, of_node, tasks }
    }

    /// The stage of a node.
    pub fn of_node(&self, id: NodeId) -> usize {
        self.of_node[id.0]
    }

    /// How many tasks each stage has.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Whether rows cross from task to task between two nodes.
    pub fn crosses(&self, plan: &Plan, from: NodeId) -> bool {
        self.tasks > 1 && is_exchange(plan, from)
    }
}

fn is_exchange(plan: &Plan, from: NodeId) -> bool {
    matches!(plan.node(from).op, Op::KeyBy { .. })
}

fn find(root: &[usize], mut node: usize) -> usize {
    while root[node] != node {
        node = root[node];
    }
    node
}

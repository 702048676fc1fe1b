//! The plan: a flow as data.
//!
//! Building a flow runs nothing; it makes nodes. The plan can be checked, explained, and deployed by any host.

mod check;
pub mod explain;
mod fuse;
mod stage;

use std::panic::Location;
use std::sync::Arc;

use crate::error::PlanError;
use crate::io::erased::{AnySink, AnySource};
use crate::op::interval_join::Spec;
use crate::op::kernel::Kind;
use crate::op::key_by::Batching;
use crate::op::multi_join::{Emit, OnExpiry};
use crate::op::snapshot_join::Loaded;
use crate::op::window_join::Windows;
use crate::op::{Operator, Port};
use crate::state::StateSpec;
use crate::time::{ProcTime, Span};

pub use stage::{Stage, Stages};

/// The number of a node in its plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub usize);

/// Whether the rows on an edge are only ever added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeMode {
    /// Inserts only.
    Append,
    /// Inserts, updates and deletes.
    Changelog,
}

impl std::fmt::Display for ChangeMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ChangeMode::Append => "append-only",
            ChangeMode::Changelog => "changelog",
        })
    }
}

/// What a node does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Reads rows.
    Source,
    /// `map`, `filter` or `flat_map`.
    Apply {
        /// Which of them.
        verb: &'static str,
    },
    /// Puts streams together.
    Union,
    /// Sends each row to the task that owns its key.
    KeyBy {
        /// The key, as far as it has a name.
        key: String,
    },
    /// Holds the row of each key, out of changes.
    Table {
        /// The key, as far as it has a name.
        key: String,
        /// Whether it does no more than hold the newest row of each key, so that a join on its key, which holds the rows
        /// anyway, can take the changes themselves.
        plain: bool,
        /// Whether it holds no rows unless somebody reads those that stand: its versions are told as they come.
        whole_rows: bool,
    },
    /// A regular or N-way join.
    MultiJoin {
        /// What each input does to the result.
        kinds: Vec<Kind>,
        /// Whether there is a condition between an input and those before it.
        conditions: Vec<bool>,
        /// The unique key of the rows of an input, as far as it has a name, if they have one besides that of the join.
        unique: Vec<Option<String>>,
        /// When the gap of each input is told.
        emit: Vec<Emit>,
        /// What the expiry of a row does to what it gave.
        on_expiry: OnExpiry,
        /// Whether an input takes the changes of a table as its source tells them, and is the table itself.
        tables: Vec<bool>,
    },
    /// An interval join.
    IntervalJoin(Spec),
    /// A join with the versions of a table.
    TemporalJoin {
        /// Whether a row without a version is in the result.
        optional: bool,
        /// How long a version holds at the most.
        keep: Option<Span>,
        /// How long late versions correct what was said.
        correct: Option<Span>,
    },
    /// A join with the rows that stand in a table.
    SnapshotJoin {
        /// Whether a row without one is in the result.
        optional: bool,
        /// When the table counts as loaded, if it is waited for.
        load: Option<Loaded>,
    },
    /// A window join.
    WindowJoin {
        /// The windows.
        windows: Windows,
        /// How long after a window has fired rows may still come into it.
        lateness: Span,
        /// What each input does to the result.
        kinds: Vec<Kind>,
        /// Whether there is a condition between an input and those before it.
        conditions: Vec<bool>,
    },
    /// Writes rows.
    Sink,
}

impl Op {
    /// A bit for each input that takes the changes of a table as its source tells them.
    pub fn tables(&self) -> u16 {
        match self {
            Op::MultiJoin { tables, .. } => {
                tables.iter().enumerate().fold(0, |bits, (input, &table)| bits | u16::from(table) << input)
            }
            _ => 0,
        }
    }

    /// Whether it is a join.
    pub fn is_join(&self) -> bool {
        match self {
            Op::MultiJoin { .. }
            | Op::IntervalJoin(_)
            | Op::WindowJoin { .. }
            | Op::TemporalJoin { .. }
            | Op::SnapshotJoin { .. } => true,
            Op::Source | Op::Apply { .. } | Op::Union | Op::KeyBy { .. } | Op::Table { .. } | Op::Sink => false,
        }
    }
}

/// An input of a node: which output of which node it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The node that sends.
    pub from: NodeId,
    /// Its port; 0 for a `KeyBy`, whose real ports are tasks.
    pub port: Port,
}

/// What an operator is told when it is built for a task.
#[derive(Clone, Copy, Debug)]
pub struct BuildCx {
    /// Which task.
    pub task: usize,
    /// Of how many.
    pub tasks: usize,
    /// How exchanges make batches.
    pub batching: Batching,
    /// A bit for each input of a join that takes the changes of a table as its source tells them.
    pub tables: u16,
    /// When that is.
    pub now: ProcTime,
}

/// Makes the operator of one task.
pub type OperatorFactory = dyn Fn(&BuildCx) -> Box<dyn Operator> + Send + Sync;

/// What runs a node.
#[derive(Clone)]
pub enum Build {
    /// An operator.
    Operator(Arc<OperatorFactory>),
    /// A source.
    Source(Arc<dyn AnySource>),
    /// A sink.
    Sink(Arc<dyn AnySink>),
}

/// One step of a flow.
#[derive(Clone)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its name: the identity of its state, and how tests and figures find it.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// What it reads.
    pub inputs: Vec<Edge>,
    /// What its ports send.
    pub ports: Vec<PortInfo>,
    /// What it keeps, one view an input.
    pub state: Vec<StateSpec>,
    /// The place in the user's code.
    pub declared_at: &'static Location<'static>,
    /// What runs it.
    pub build: Build,
}

/// What a port sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// `main`, `unmatched orders`, `late orders`.
    pub label: String,
    /// Whether its rows are only ever added.
    pub mode: ChangeMode,
}

impl PortInfo {
    /// The main output.
    pub fn main(mode: ChangeMode) -> PortInfo {
        PortInfo { label: "main".to_string(), mode }
    }
}

/// A flow as data.
#[derive(Clone)]
pub struct Plan {
    name: String,
    nodes: Vec<Node>,
}

impl Plan {
    /// A plan of these nodes, if it can run; with the name of the flow and the place where it was begun.
    ///
    /// # Errors
    /// All the mistakes in it, those found while building first.
    pub fn check(
        (name, place): (String, &'static Location<'static>),
        nodes: Vec<Node>,
        mut found: Vec<PlanError>,
    ) -> Result<Plan, Vec<PlanError>> {
        found.extend(check::all(&nodes, place));
        found.sort_by_key(|error| (error.place.file(), error.place.line(), error.place.column()));
        if found.is_empty() { Ok(Plan { name, nodes: fuse::tables(nodes) }) } else { Err(found) }
    }

    /// The name of the flow.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its nodes; inputs come before what reads them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The edges that lead out of a node: who reads which port on which input.
    pub fn readers(&self, id: NodeId) -> impl Iterator<Item = (Port, NodeId, usize)> {
        self.nodes.iter().flat_map(move |node| {
            let inputs = node.inputs.iter().enumerate().filter(move |(_, edge)| edge.from == id);
            inputs.map(move |(input, edge)| (edge.port, node.id, input))
        })
    }

    /// The source of this name.
    pub fn source(&self, name: &str) -> Option<(NodeId, &Arc<dyn AnySource>)> {
        self.nodes.iter().find_map(|node| match &node.build {
            Build::Source(source) if node.name == name => Some((node.id, source)),
            _ => None,
        })
    }

    /// The sink of this name.
    pub fn sink(&self, name: &str) -> Option<(NodeId, &Arc<dyn AnySink>)> {
        self.nodes.iter().find_map(|node| match &node.build {
            Build::Sink(sink) if node.name == name => Some((node.id, sink)),
            _ => None,
        })
    }
}

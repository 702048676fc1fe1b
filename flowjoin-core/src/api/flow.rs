//! A flow: the program that is being put together.

use std::any::TypeId;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::claim::Claims;
use super::mode::Append;
use super::stream::Stream;
use crate::error::{PlanError, PlanErrors};
use crate::io::aligned::Aligned;
use crate::io::erased::erase_source;
use crate::io::{ByKey, StreamSource};
use crate::key::Key;
use crate::op::Port;
use crate::plan::explain::Explain;
use crate::plan::{Build, ChangeMode, Node, NodeId, Op, Plan, PortInfo};
use crate::record::Event;
use crate::state::StateSpec;
use crate::watermark::Align;

/// A program that joins streams: sources are opened on it, and it is explained, tested and run.
///
/// Building a flow runs nothing. Mistakes are collected and come back, all at once and each with its place, from
/// [`plan`](Flow::plan), [`explain`](Flow::explain) and `run`.
///
/// A clone is another handle to the same flow.
#[derive(Clone)]
pub struct Flow {
    name: Arc<str>,
    place: &'static Location<'static>,
    draft: Arc<Mutex<Draft>>,
}

#[derive(Default)]
struct Draft {
    nodes: Vec<Slot>,
    errors: Vec<PlanError>,
}

enum Slot {
    Node(Box<Node>),
    // A join that waits for its `select`.
    Reserved(&'static Location<'static>),
}

/// One output of one node of a flow.
#[derive(Clone)]
pub struct Output {
    pub(crate) flow: Flow,
    pub(crate) from: NodeId,
    pub(crate) port: Port,
    // What default names are made of: the source or join that it stems from.
    pub(crate) label: String,
    // The key that its rows are known to be arranged by, with all changes of a key in order.
    pub(crate) keyed: Option<KeyMark>,
}

/// A key, as far as two can be told to be the same: by its type and its name.
#[derive(Clone, Debug)]
pub struct KeyMark {
    pub(crate) of: TypeId,
    pub(crate) name: String,
    pub(crate) standing: Standing,
    pub(crate) may_be_null: bool,
    // Of a join, whose word is taken for it.
    pub(crate) claims: Option<Claims>,
}

/// How many rows of a key stand, for who keeps the newest of each key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// One at the most.
    One,
    /// There may be several, but none is taken back for good while others stand: the newest change of a key is that of a
    /// row that stands, if any does.
    Newest,
    /// There may be several, and the last change of a key may take one of them back.
    Several,
}

impl KeyMark {
    /// The key of this type and name, if it has a name.
    pub(crate) fn of<K: Key>(name: &str, standing: Standing) -> Option<KeyMark> {
        let (of, may_be_null) = (TypeId::of::<K>(), K::may_be_null());
        (!name.is_empty()).then(|| KeyMark { of, name: name.to_string(), standing, may_be_null, claims: None })
    }

    /// Whether it is the key of this type and name.
    pub(crate) fn is(&self, of: TypeId, name: &str) -> bool {
        self.of == of && self.name == name
    }
}

impl Flow {
    /// An empty flow.
    #[track_caller]
    pub fn new(name: impl AsRef<str>) -> Flow {
        Flow { name: Arc::from(name.as_ref()), place: Location::caller(), draft: Arc::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens a source as a stream of facts. Its event time and watermarks are those of the row's [`Event`].
    #[track_caller]
    pub fn stream<T: Event>(&self, source: impl StreamSource<T>) -> Stream<T, Append> {
        let source = erase_source::<T>(source);
        let name = source.endpoint().name;
        let output = self.add(NewNode {
            name: name.clone(),
            op: Op::Source,
            inputs: &[],
            ports: vec![PortInfo::main(ChangeMode::Append)],
            build: Build::Source(source),
            place: Location::caller(),
        });
        Stream::at(Output { label: name, ..output })
    }

    /// The plan, checked.
    ///
    /// # Errors
    /// All mistakes in how the flow was put together, each with its place.
    pub fn plan(&self) -> Result<Plan, PlanErrors> {
        let draft = self.draft();
        let mut errors = draft.errors.clone();
        let mut nodes = Vec::new();
        for slot in &draft.nodes {
            match slot {
                Slot::Node(node) => nodes.push((**node).clone()),
                Slot::Reserved(place) => errors.push(PlanError {
                    message: "this join was never finished: end it with `.select(..)`".to_string(),
                    place,
                }),
            }
        }
        // With a join missing the numbers of the nodes are not their places, so no other rule can be checked.
        if nodes.len() < draft.nodes.len() {
            return Err(PlanErrors(errors));
        }
        Plan::check((self.name.to_string(), self.place), nodes, errors).map_err(PlanErrors)
    }

    /// What the flow is, in words: print it, or take its JSON or Mermaid form.
    ///
    /// # Errors
    /// As [`plan`](Flow::plan).
    pub fn explain(&self) -> Result<Explain, PlanErrors> {
        Ok(Explain::of(&self.plan()?))
    }

    pub(crate) fn is(&self, other: &Flow) -> bool {
        Arc::ptr_eq(&self.draft, &other.draft)
    }

    pub(crate) fn report(&self, message: String, place: &'static Location<'static>) {
        self.draft().errors.push(PlanError { message, place });
    }

    pub(crate) fn reserve(&self, place: &'static Location<'static>) -> NodeId {
        let mut draft = self.draft();
        draft.nodes.push(Slot::Reserved(place));
        NodeId(draft.nodes.len() - 1)
    }

    pub(crate) fn fill(&self, node: Node) {
        let index = node.id.0;
        self.draft().nodes[index] = Slot::Node(Box::new(node));
    }

    pub(crate) fn rename(&self, id: NodeId, name: String) {
        if let Slot::Node(node) = &mut self.draft().nodes[id.0] {
            node.name = name;
        }
    }

    /// The table of this node has to be a step of its own.
    pub(crate) fn is_no_plain_table(&self, id: NodeId) {
        if let Slot::Node(node) = &mut self.draft().nodes[id.0]
            && let Op::Table { plain, .. } = &mut node.op
        {
            *plain = false;
        }
    }

    /// Puts the source that a step is read from into a group.
    pub(crate) fn align(&self, step: NodeId, align: Align, place: &'static Location<'static>) {
        let mut draft = self.draft();
        let mut id = step;
        // A table stands behind the exchange that its changes come through.
        while let Slot::Node(node) = &draft.nodes[id.0]
            && let (Op::KeyBy { .. } | Op::Table { .. }, [edge]) = (&node.op, &node.inputs[..])
        {
            id = edge.from;
        }
        if align.max_drift.is_negative() {
            let message =
                format!("sources cannot be kept within {} of each other: give a span of zero or more", align.max_drift);
            draft.errors.push(PlanError { message, place });
        } else if let Slot::Node(node) = &mut draft.nodes[id.0]
            && let Build::Source(source) = &node.build
        {
            node.build = Build::Source(Arc::new(Aligned::new(source.clone(), align)));
        } else {
            let message = "only what is read can wait: call `.align(..)` on the stream or table as it was opened, before \
                           anything else is done with it";
            draft.errors.push(PlanError { message: message.to_string(), place });
        }
    }

    pub(crate) fn keeps(&self, id: NodeId, state: Vec<StateSpec>) {
        if let Slot::Node(node) = &mut self.draft().nodes[id.0] {
            node.state = state;
        }
    }

    /// Whether a node sends something on a port.
    pub(crate) fn has_port(&self, id: NodeId, port: Port) -> bool {
        match &self.draft().nodes[id.0] {
            Slot::Node(node) => port.0 < node.ports.len(),
            Slot::Reserved(_) => false,
        }
    }

    /// Whether a node is a table.
    pub(crate) fn is_table(&self, id: NodeId) -> bool {
        matches!(&self.draft().nodes[id.0], Slot::Node(node) if matches!(node.op, Op::Table { .. }))
    }

    pub(crate) fn add(&self, new: NewNode<'_>) -> Output {
        let NewNode { name, op, inputs, ports, build, place } = new;
        for input in inputs {
            self.must_own(input, place);
        }
        let label = inputs.first().map_or_else(|| name.clone(), |input| input.label.clone());
        let id = self.reserve(place);
        let inputs = inputs.iter().map(Output::edge).collect();
        self.fill(Node { id, name, op, inputs, ports, state: Vec::new(), declared_at: place, build });
        Output { flow: self.clone(), from: id, port: Port::MAIN, label, keyed: None }
    }

    pub(crate) fn must_own(&self, input: &Output, place: &'static Location<'static>) {
        if !self.is(&input.flow) {
            let message = format!(
                "`{}` belongs to flow `{}`, not to `{}`: streams of different flows cannot meet, so open both on one",
                input.label,
                input.flow.name(),
                self.name()
            );
            self.report(message, place);
        }
    }

    fn draft(&self) -> MutexGuard<'_, Draft> {
        // A panic while a node was pushed leaves the draft as it was before.
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flow({})", self.name)
    }
}

/// A node about to be added.
pub(crate) struct NewNode<'a> {
    pub name: String,
    pub op: Op,
    pub inputs: &'a [Output],
    pub ports: Vec<PortInfo>,
    pub build: Build,
    pub place: &'static Location<'static>,
}

impl Output {
    /// Whether all changes of a key of a sink come in order already, and the newest is that of what stands.
    pub(crate) fn is_arranged_by<T>(&self, by_key: &ByKey<T>) -> bool {
        let newest_stands = |mark: &KeyMark| mark.is(by_key.of, by_key.name) && mark.standing != Standing::Several;
        self.keyed.as_ref().is_some_and(newest_stands)
    }

    /// Such a sink takes the word of the join that arranged them.
    pub(crate) fn is_taken_by<T>(&self, by_key: &ByKey<T>, sink: &str) {
        if let Some(claims) = self.keyed.as_ref().and_then(|mark| mark.claims.as_ref()) {
            let by = format!(
                "the sink `{sink}` keeps the newest row of each key in the order of the join, and would keep wrong rows; put \
                 `.to_table()` behind the join, which arranges the rows by their own key"
            );
            claims.add(&by, by_key.differs);
        }
    }

    pub(crate) fn edge(&self) -> crate::plan::Edge {
        crate::plan::Edge { from: self.from, port: self.port }
    }
}

//! From a plan to tasks: which task runs what, and who sends to whom.

use std::sync::Arc;

use super::{Alignments, Inlet, Target, Task, TaskId, TaskNode};
use crate::error::IoError;
use crate::io::erased::AnySource;
use crate::op::chain::Pass;
use crate::op::key_by::Batching;
use crate::op::source::SourceState;
use crate::plan::{Build, BuildCx, Edge, Node, NodeId, Op, Plan, Stages};
use crate::time::ProcTime;
use crate::watermark::{Merge, Rejoin};

/// A plan laid out over tasks.
pub struct Deployment {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The tasks, by id: stage after stage, each with one task a partition.
    pub tasks: Vec<Task>,
    /// Which partitions of which source each task reads.
    pub readings: Vec<Reading>,
    /// Which tasks send to which: `(from, to)`, each pair once.
    pub links: Vec<(TaskId, TaskId)>,
    /// Which of them are read in step.
    pub alignments: Alignments,
}

/// A partition of a source, and the task that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The task.
    pub task: TaskId,
    /// The source.
    pub source: NodeId,
    /// The partition, by the source's count.
    pub partition: usize,
    /// The partition, by the task's count.
    pub slot: usize,
}

impl Deployment {
    /// Lays a plan out over so many tasks a stage.
    ///
    /// `count` tells how many partitions a source has; a test driver gives each one.
    ///
    /// # Errors
    /// If a source cannot say how many partitions it has.
    pub fn new(
        plan: Arc<Plan>,
        parallelism: usize,
        batching: Batching,
        now: ProcTime,
        count: impl Fn(&dyn AnySource) -> Result<usize, IoError>,
    ) -> Result<Deployment, IoError> {
        assert!(parallelism > 0, "a stage has at least one task");
        let stages = Stages::of(&plan, parallelism);
        let mut partitions = vec![0; plan.nodes().len()];
        for node in plan.nodes() {
            if let Build::Source(source) = &node.build {
                partitions[node.id.0] = count(source.as_ref())?;
            }
        }
        let layout = Layout { plan: &plan, stages: &stages, partitions: &partitions, parallelism, batching, now };
        let mut tasks = Vec::new();
        let mut readings = Vec::new();
        for stage in 0..stages.stages.len() {
            for task in 0..parallelism {
                tasks.push(layout.task(stage, task));
                readings.extend(layout.readings(stage, task));
            }
        }
        let links = layout.links();
        let alignments = Alignments::of(&plan, &readings);
        Ok(Deployment { plan: plan.clone(), tasks, readings, links, alignments })
    }
}

struct Layout<'a> {
    plan: &'a Plan,
    stages: &'a Stages,
    partitions: &'a [usize],
    parallelism: usize,
    batching: Batching,
    now: ProcTime,
}

impl Layout<'_> {
    fn id(&self, stage: usize, task: usize) -> TaskId {
        TaskId(stage * self.parallelism + task)
    }

    fn task(&self, stage: usize, task: usize) -> Task {
        let ids = &self.stages.stages[stage].nodes;
        let nodes = ids.iter().map(|&id| self.node(id, task)).collect();
        Task::new(self.id(stage, task), nodes, (task, self.parallelism))
    }

    fn node(&self, id: NodeId, task: usize) -> TaskNode {
        let node = self.plan.node(id);
        let tables = node.op.tables();
        let cx = BuildCx { task, tasks: self.parallelism, batching: self.batching, tables, now: self.now };
        let (op, source) = match &node.build {
            Build::Operator(factory) => (factory(&cx), None),
            Build::Sink(_) => (Box::new(Pass::new(1)) as _, None),
            Build::Source(source) => {
                let mine = self.owned(id, task).count();
                let state = SourceState::new(source.stamp(), &source.strategy(), mine, self.now);
                let state = if source.align().is_some() { state.telling() } else { state };
                (Box::new(Pass::new(0)) as _, Some(state))
            }
        };
        let channels = |edge: &Edge| if self.stages.crosses(self.plan, edge.from) { self.parallelism } else { 1 };
        let merges = node.inputs.iter().map(|edge| Merge::new(channels(edge), Rejoin::AfterCatchUp)).collect();
        let is_sink = matches!(node.build, Build::Sink(_));
        let routes = self.routes(node, task);
        let mut made = TaskNode::new(id, node.name.clone(), op, source, is_sink, merges, routes);
        made.is_exchange = matches!(node.op, Op::KeyBy { .. });
        made.from_tasks = node.inputs.iter().map(|edge| self.stages.crosses(self.plan, edge.from)).collect();
        made.bad_to = node.inputs.iter().map(|edge| self.source_above(edge.from)).collect();
        made
    }

    fn source_above(&self, mut id: NodeId) -> NodeId {
        while let Some(edge) = self.plan.node(id).inputs.first() {
            id = edge.from;
        }
        id
    }

    // For each port, where its batches go.
    fn routes(&self, node: &Node, task: usize) -> Vec<Vec<Target>> {
        let crosses = self.stages.crosses(self.plan, node.id);
        let ports = if matches!(node.op, Op::KeyBy { .. }) { self.parallelism } else { node.ports.len() };
        let mut routes = vec![Vec::new(); ports];
        for (port, reader, input) in self.plan.readers(node.id) {
            if !crosses {
                routes[port.0].push(Target::Local { node: self.position(reader), input });
                continue;
            }
            let stage = self.stages.of_node(reader);
            for (to, route) in routes.iter_mut().enumerate() {
                let inlet = Inlet { node: self.position(reader), input, channel: task };
                route.push(Target::Remote { task: self.id(stage, to), inlet });
            }
        }
        routes
    }

    fn position(&self, id: NodeId) -> usize {
        let nodes = &self.stages.stages[self.stages.of_node(id)].nodes;
        nodes.iter().position(|&other| other == id).expect("a node is in its stage")
    }

    fn owned(&self, source: NodeId, task: usize) -> impl Iterator<Item = usize> {
        (0..self.partitions[source.0]).skip(task).step_by(self.parallelism)
    }

    fn readings(&self, stage: usize, task: usize) -> Vec<Reading> {
        let of = |&source: &NodeId| {
            let owned = self.owned(source, task).enumerate();
            owned.map(move |(slot, partition)| Reading { task: self.id(stage, task), source, partition, slot })
        };
        self.stages.stages[stage].nodes.iter().flat_map(of).collect()
    }

    fn links(&self) -> Vec<(TaskId, TaskId)> {
        let mut links = Vec::new();
        for node in self.plan.nodes() {
            for edge in node.inputs.iter().filter(|edge| self.stages.crosses(self.plan, edge.from)) {
                let (from, to) = (self.stages.of_node(edge.from), self.stages.of_node(node.id));
                let all = 0..self.parallelism;
                links.extend(
                    all.clone()
                        .flat_map(|a| all.clone().map(move |b| (a, b)))
                        .map(|(a, b)| (self.id(from, a), self.id(to, b))),
                );
            }
        }
        links.sort_unstable();
        links.dedup();
        links
    }
}

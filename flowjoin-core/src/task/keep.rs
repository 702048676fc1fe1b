//! Ends of epochs: where they meet in a task, and what is sealed there.
//!
//! The end of an epoch goes through the tasks as a barrier in the stream. What comes on a channel behind it waits until it
//! has come on all; then all that belongs to the epoch has been done, the task tells what has changed in its state, sends
//! the barrier on, and takes what waits. So of each row either all that came of it is in the epoch, or nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{CommitRecord, Effect, Inlet, Message, Target, Task, TaskError, TaskInput, deliver};
use crate::key::KeyGroup;
use crate::op::source::SourceState;
use crate::plan::{NodeId, Plan};
use crate::state::{Changes, Epoch, Owner, Sealed, Sealing, StateStore, StoreError};
use crate::time::ProcTime;
use crate::watermark::Progress;

/// The end of an epoch that has come on some channels of a task.
pub(super) struct Barrier {
    epoch: Epoch,
    // Whether the host has told of it.
    told: bool,
    // The channels on which it has not come.
    waiting: BTreeSet<Channel>,
    // What has come behind it.
    held: VecDeque<TaskInput>,
}

// A node, an input and a channel.
type Channel = (usize, usize, usize);

fn channel_of(inlet: Inlet) -> Channel {
    (inlet.node, inlet.input, inlet.channel)
}

/// State that cannot be taken back.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RestoreError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What it holds is not state of this flow.
    #[error("the state that was kept is not of this flow: {0}")]
    Foreign(String),
    /// A step cannot take back what it kept.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Task {
    /// Notes from now on what changes in its state, so that epochs can be sealed. To be called once, before anything
    /// else but [`restore`].
    pub fn keep(&mut self) {
        self.nodes.iter_mut().for_each(super::TaskNode::keep);
    }

    // Keeps an input that comes behind the end of an epoch which has not come on all channels; returns any other.
    pub(super) fn hold_back(&mut self, input: TaskInput) -> Option<TaskInput> {
        let Some(barrier) = &mut self.barrier else { return Some(input) };
        let is_behind = match &input {
            TaskInput::Message(inlet, _) => !barrier.waiting.contains(&channel_of(*inlet)),
            TaskInput::Page { .. } | TaskInput::Source { .. } => barrier.told,
            TaskInput::Paused { .. } | TaskInput::Resumed { .. } => false,
            TaskInput::Clock | TaskInput::Flush | TaskInput::Barrier(_) => false,
        };
        if !is_behind {
            return Some(input);
        }
        barrier.held.push_back(input);
        None
    }

    pub(super) fn on_barrier(&mut self, inlet: Option<Inlet>, epoch: Epoch) {
        // One on a channel that has ended is not waited for, and may come when the epoch has been sealed.
        if self.sealed.is_some_and(|sealed| epoch <= sealed) {
            return;
        }
        let barrier = match self.barrier.take() {
            Some(barrier) => barrier,
            None => Barrier { epoch, told: false, waiting: self.live_channels(), held: VecDeque::new() },
        };
        let barrier = self.barrier.insert(barrier);
        debug_assert_eq!(barrier.epoch, epoch, "one epoch ends after the other");
        match inlet {
            Some(inlet) => barrier.waiting.remove(&channel_of(inlet)),
            None => std::mem::replace(&mut barrier.told, true),
        };
    }

    // No barrier comes on a channel that has ended.
    pub(super) fn on_end_of_channel(&mut self, inlet: Inlet, progress: Progress) {
        if let (Some(barrier), Progress::End | Progress::Stopped) = (&mut self.barrier, progress) {
            barrier.waiting.remove(&channel_of(inlet));
        }
    }

    fn live_channels(&self) -> BTreeSet<Channel> {
        let nodes = || self.nodes.iter().enumerate();
        let all = nodes().flat_map(|(at, node)| node.channels().map(move |(input, channel)| (at, input, channel)));
        let mut live: BTreeSet<Channel> = all.collect();
        for (at, node) in nodes() {
            for (input, channel) in node.ended_channels() {
                live.remove(&(at, input, channel));
            }
        }
        live
    }

    pub(super) fn seal_if_aligned(&mut self, now: ProcTime) -> Result<(), TaskError> {
        let aligned = |barrier: &mut Barrier| barrier.told && barrier.waiting.is_empty();
        while let Some(Barrier { epoch, held, .. }) = self.barrier.take_if(aligned) {
            // All that was left for later belongs to the epoch, and so does what waits for company.
            self.run(now)?;
            self.flush(now)?;
            self.seal(epoch, now)?;
            for input in held {
                self.handle(input, now)?;
            }
        }
        Ok(())
    }

    fn seal(&mut self, epoch: Epoch, now: ProcTime) -> Result<(), TaskError> {
        let mut changes = Changes::default();
        for position in 0..self.nodes.len() {
            self.at_work = position;
            let node = &mut self.nodes[position];
            let mut sealing = Sealing::new(&mut changes, node.id.0 as u16, self.place.0 as u16, now);
            let sealed = node.seal(&mut sealing);
            sealed.map_err(|cause| TaskError { operator: node.name.clone(), cause })?;
        }
        changes.sort();
        self.sealed = Some(epoch);
        self.effects.push_back(Effect::Sealed(epoch, changes));
        // Several ports may lead to one channel.
        let targets = self.nodes.iter().flat_map(|node| node.routes.iter().flatten().copied());
        let mut sent: Vec<Target> = Vec::new();
        for target in targets {
            if !sent.contains(&target) {
                sent.push(target);
                deliver(target, Message::Barrier(epoch), &mut self.queue, &mut self.effects);
            }
        }
        Ok(())
    }

    fn owns(&self, owner: Owner) -> bool {
        let (place, tasks) = self.place;
        match owner {
            Owner::Group(group) => KeyGroup::numbered(usize::from(group)).task(tasks) == place,
            Owner::Task(task) => usize::from(task) == place,
        }
    }

    fn take_back(&mut self, node: NodeId, sealed: Sealed<'_>, now: ProcTime) -> Result<(), TaskError> {
        let position = self.position(node);
        self.at_work = position;
        self.resumed = true;
        let node = &mut self.nodes[position];
        node.take_back(sealed, now).map_err(|cause| TaskError { operator: node.name.clone(), cause })
    }

    fn resume(&mut self, now: ProcTime) {
        for position in 0..self.nodes.len() {
            let node = &mut self.nodes[position];
            node.op.resume(node.merge.watermark(), now);
            node.source.iter_mut().for_each(SourceState::tell_again);
            self.tell_partitions(position);
        }
    }

    /// The partitions that it reads, by its own count, which have ended or were stopped: nothing comes of them any more.
    pub fn ended_partitions(&self) -> Vec<(NodeId, usize)> {
        let of = |node: &super::TaskNode| -> Vec<(NodeId, usize)> {
            node.source.iter().flat_map(SourceState::ended).map(|slot| (node.id, slot)).collect()
        };
        self.nodes.iter().flat_map(of).collect()
    }
}

/// Lets fresh tasks go on where those were that sealed what a store holds. A new store leaves them as they are. The
/// record of each commit there has to be a [`CommitRecord`].
///
/// # Errors
/// If the store cannot be read, or what it holds is not of this flow at this parallelism.
pub fn restore(plan: &Plan, tasks: &mut [Task], store: &dyn StateStore, now: ProcTime) -> Result<(), RestoreError> {
    if store.epoch().is_none() {
        return Ok(());
    }
    let parallelism = tasks.first().map_or(1, |task| task.place.1);
    CommitRecord::from_bytes(store.record())?.must_be_of(plan, parallelism)?;
    let mut of_node: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        task.nodes().for_each(|node| of_node.entry(node).or_default().push(at));
    }
    let mut failed: Option<RestoreError> = None;
    store.scan(&[], &mut |key, value| {
        if failed.is_none() {
            failed = give_back(plan, tasks, &of_node, (key, value), now).err();
        }
    })?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    tasks.iter_mut().for_each(|task| task.resume(now));
    Ok(())
}

fn give_back(
    plan: &Plan,
    tasks: &mut [Task],
    of_node: &BTreeMap<NodeId, Vec<usize>>,
    (key, value): (&[u8], &[u8]),
    now: ProcTime,
) -> Result<(), RestoreError> {
    let foreign = |what: String| RestoreError::Foreign(what);
    let sealed = Sealed::of(key, value).ok_or_else(|| foreign("a key has another form".to_string()))?;
    let node = NodeId(usize::from(sealed.step));
    if node.0 >= plan.nodes().len() {
        return Err(foreign(format!("it has a step {} that the flow has not", sealed.step)));
    }
    let owner = of_node.get(&node).into_iter().flatten().copied().find(|&at| tasks[at].owns(sealed.owner));
    let owner = owner.ok_or_else(|| foreign(format!("it was kept by {:?}, which is not here", sealed.owner)))?;
    Ok(tasks[owner].take_back(node, sealed, now)?)
}

//! A task: one stage on one partition. All of flowjoin's behaviour, none of its waiting.
//!
//! The host hands inputs in with [`Task::handle`] and carries out the [`Effect`]s that come of it. Merging and
//! forwarding of watermarks, idleness and ends are here, once, and not in the operators.

mod align;
mod deploy;
mod keep;
mod node;
mod record;
mod times;

use std::collections::VecDeque;

pub use align::Alignments;
pub use deploy::{Deployment, Reading};
use keep::Barrier;
pub use keep::{RestoreError, restore};
use node::Rest;
pub use node::{Target, TaskNode};
pub use record::CommitRecord;
pub use times::{TimeRange, times_of};

use crate::account::OpFigures;
use crate::batch::AnyBatch;
use crate::delays::MatchDelays;
use crate::error::{OpError, RecordError};
use crate::op::source::{AnyPage, SourceState};
use crate::op::{Cx, InputId, Outbox, Port};
use crate::plan::NodeId;
use crate::state::{Changes, Epoch};
use crate::time::ProcTime;
use crate::watermark::{Merged, Progress, TimeFigures};

/// The number of a task among all of a deployment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub usize);

/// Where in a task a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inlet {
    /// The node, by its position in the task.
    pub node: usize,
    /// Its input.
    pub input: usize,
    /// The sender, by its number among those of the exchange.
    pub channel: usize,
}

/// What travels between tasks.
#[derive(Debug)]
pub enum Message {
    /// Rows.
    Data(AnyBatch),
    /// News of event time.
    Progress(Progress),
    /// All that belongs to an epoch has come on this channel.
    Barrier(Epoch),
}

/// What a host hands to a task.
pub enum TaskInput {
    /// A page has been read from a partition (by the task's count) of a source.
    Page {
        /// The source.
        source: NodeId,
        /// The partition.
        slot: usize,
        /// The page.
        page: AnyPage,
    },
    /// A partition has ended, was stopped, or says how far it is.
    Source {
        /// The source.
        source: NodeId,
        /// The partition.
        slot: usize,
        /// The news.
        progress: Progress,
    },
    /// A partition is not read for now, because it is ahead of others: that nothing comes does not make it idle.
    Paused {
        /// The source.
        source: NodeId,
        /// The partition.
        slot: usize,
    },
    /// A partition is read again.
    Resumed {
        /// The source.
        source: NodeId,
        /// The partition.
        slot: usize,
    },
    /// A message from another task.
    Message(Inlet, Message),
    /// The clock has moved.
    Clock,
    /// Nothing more is ready: send what is buffered.
    Flush,
    /// An epoch ends here: what the sources of this task have given belongs to it. Every task is told, one epoch at a
    /// time; the next one not before all tasks have [sealed](Effect::Sealed) this one.
    Barrier(Epoch),
}

/// What a task wants done.
#[derive(Debug)]
pub enum Effect {
    /// Send a message to another task.
    Send(TaskId, Inlet, Message),
    /// Write rows to a sink.
    Write(NodeId, AnyBatch),
    /// Note records that could not become rows, by the policy of a source.
    Bad(NodeId, Vec<RecordError>),
    /// A partition of an aligned source, by the task's count, says how far it is.
    Partition(NodeId, usize, Progress),
    /// The watermark of a sink has moved; for tests, and for people who watch.
    Reached(NodeId, Progress),
    /// All that belongs to an epoch has been done, and this is what has changed in the state of the task.
    Sealed(Epoch, Changes),
}

/// An operator that could not go on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("operator `{operator}` cannot go on: {cause}")]
pub struct TaskError {
    /// Its name.
    pub operator: String,
    /// What happened.
    #[source]
    pub cause: OpError,
}

/// One stage on one partition.
pub struct Task {
    id: TaskId,
    nodes: Vec<TaskNode>,
    queue: VecDeque<Event>,
    effects: VecDeque<Effect>,
    at_work: usize,
    // Sources whose first bad record stops the flow.
    stop_at_bad: Vec<NodeId>,
    // Which of the tasks of its stage it is, and of how many.
    place: (usize, usize),
    // The end of an epoch, while it has come on some channels and not on all.
    barrier: Option<Barrier>,
    // The last epoch that it has sealed.
    sealed: Option<Epoch>,
    // It goes on where another one was: what comes at the beginning has been.
    resumed: bool,
}

// How far to go on: to the end, or until the host has something to do and an operator has left work for later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Done,
    Effects,
}

enum Event {
    Data {
        node: usize,
        input: usize,
        batch: AnyBatch,
    },
    Progress {
        node: usize,
        input: usize,
        channel: usize,
        progress: Progress,
    },
    /// An operator has left work for later.
    More {
        node: usize,
    },
    /// All inputs of an operator are idle or have ended, and what had to be done before is done.
    Status {
        node: usize,
        status: Progress,
    },
}

impl Task {
    pub(crate) fn new(id: TaskId, nodes: Vec<TaskNode>, place: (usize, usize)) -> Task {
        let (queue, effects, stop_at_bad) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Task { id, nodes, queue, effects, at_work: 0, stop_at_bad, place, barrier: None, sealed: None, resumed: false }
    }

    /// Its number.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Its nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().map(|node| node.id)
    }

    /// The first bad record of this source stops the flow: it is read up to there, and neither the source nor an operator
    /// behind it that finds such a record has ended when its input does. To be called before the source is read.
    pub fn stop_at_bad(&mut self, source: NodeId) {
        self.stop_at_bad.push(source);
        let of = self.nodes.iter_mut().filter(|node| node.id == source);
        of.filter_map(|node| node.source.as_mut()).for_each(SourceState::stop_at_bad);
    }

    /// To be called once before anything else: sources without a partition here end at once.
    ///
    /// # Errors
    /// If an operator cannot go on.
    pub fn start(&mut self, now: ProcTime) -> Result<(), TaskError> {
        for position in 0..self.nodes.len() {
            if self.nodes[position].reads_nothing() && !self.resumed {
                self.nodes[position].done = true;
                self.forward(position, Progress::End);
            }
        }
        self.run(now)
    }

    /// Does all that an input calls for; the effects are then taken with [`poll`](Self::poll).
    ///
    /// # Errors
    /// If an operator cannot go on. The task must not be used after that.
    pub fn handle(&mut self, input: TaskInput, now: ProcTime) -> Result<(), TaskError> {
        let Some(input) = self.hold_back(input) else { return Ok(()) };
        self.run(now)?;
        match input {
            TaskInput::Message(inlet, Message::Data(batch)) => {
                self.queue.push_back(Event::Data { node: inlet.node, input: inlet.input, batch });
            }
            TaskInput::Message(inlet, Message::Progress(progress)) => {
                let Inlet { node, input, channel } = inlet;
                self.queue.push_back(Event::Progress { node, input, channel, progress });
                self.on_end_of_channel(inlet, progress);
            }
            TaskInput::Message(inlet, Message::Barrier(epoch)) => self.on_barrier(Some(inlet), epoch),
            TaskInput::Barrier(epoch) => self.on_barrier(None, epoch),
            TaskInput::Page { source, slot, page } => self.on_page(source, slot, page, now),
            TaskInput::Source { source, slot, progress } => {
                let position = self.position(source);
                let merged = self.source(position).on_progress(slot, progress, now);
                self.news_of_source(position, merged);
                self.tell_partitions(position);
            }
            TaskInput::Paused { source, slot } => {
                let position = self.position(source);
                self.source(position).pause(slot);
            }
            TaskInput::Resumed { source, slot } => {
                let position = self.position(source);
                self.source(position).resume(slot, now);
            }
            TaskInput::Clock => self.on_clock(now)?,
            TaskInput::Flush => self.flush(now)?,
        }
        self.seal_if_aligned(now)?;
        self.run_until(now, Until::Effects)
    }

    fn flush(&mut self, now: ProcTime) -> Result<(), TaskError> {
        for position in 0..self.nodes.len() {
            self.call(position, now, |node, cx| node.op.on_flush(cx))?;
            // What is flushed may be for a node further on, which then has more to flush.
            self.run(now)?;
        }
        Ok(())
    }

    /// The next thing to do for the host; to be called until there is none. An operator that has much to send goes on
    /// here with what it has left, once all that it sent before has been taken: so a host that waits holds it back.
    ///
    /// # Errors
    /// If an operator cannot go on. The task must not be used after that.
    pub fn poll(&mut self, now: ProcTime) -> Result<Option<Effect>, TaskError> {
        while self.effects.is_empty() && !self.queue.is_empty() {
            self.run_until(now, Until::Effects)?;
        }
        Ok(self.effects.pop_front())
    }

    /// When to hand in `Clock` at the latest.
    pub fn deadline(&mut self) -> Option<ProcTime> {
        self.nodes.iter_mut().filter(|node| !node.done).filter_map(TaskNode::deadline).min()
    }

    /// Whether all its inputs have ended.
    pub fn is_done(&self) -> bool {
        self.nodes.iter().all(|node| node.done)
    }

    /// The partitions of sources that it reads, by its own count.
    pub fn partitions(&self) -> Vec<(NodeId, usize)> {
        let slots = |node: &TaskNode| node.source.as_ref().map_or(0, |source| source.partitions());
        self.nodes.iter().flat_map(|node| (0..slots(node)).map(|slot| (node.id, slot))).collect()
    }

    /// The operator that is, or was last, at work: for the report of a panic.
    pub fn at_work(&self) -> &str {
        self.nodes.get(self.at_work).map_or("", |node| &node.name)
    }

    /// The figures of its operators.
    pub fn figures(&self) -> Vec<(NodeId, OpFigures)> {
        self.nodes.iter().map(|node| (node.id, node.figures())).collect()
    }

    /// How long the rows of its joins waited for each other, where they expire or have to be near in time.
    pub fn delays(&self) -> Vec<(NodeId, MatchDelays)> {
        self.nodes.iter().filter_map(|node| node.op.delays().map(|delays| (node.id, delays))).collect()
    }

    /// How far event time has come at each of its operators, and what keeps it there; the inputs of a source are its
    /// partitions, by the task's count.
    pub fn times(&self) -> Vec<(NodeId, TimeFigures)> {
        self.nodes.iter().map(|node| (node.id, node.time())).collect()
    }

    /// The first and the last time of the rows that have come to each of its exchanges.
    pub fn times_seen(&self) -> Vec<(NodeId, TimeRange)> {
        self.nodes.iter().filter_map(|node| Some((node.id, node.seen?))).collect()
    }

    fn position(&self, id: NodeId) -> usize {
        self.nodes.iter().position(|node| node.id == id).expect("the host addresses nodes of this task")
    }

    fn source(&mut self, position: usize) -> &mut SourceState {
        self.nodes[position].source.as_mut().expect("pages are for sources")
    }

    fn on_page(&mut self, source: NodeId, slot: usize, page: AnyPage, now: ProcTime) {
        let position = self.position(source);
        self.at_work = position;
        let (taken, before, after) = self.source(position).on_page(slot, page, now);
        if !taken.bad.is_empty() {
            self.effects.push_back(Effect::Bad(source, taken.bad));
        }
        self.news_of_source(position, before);
        if let Some(batch) = taken.batch {
            self.route(position, Port::MAIN, batch);
        }
        self.news_of_source(position, after);
        self.tell_partitions(position);
    }

    // How far each partition is, where the host has to keep them together.
    fn tell_partitions(&mut self, position: usize) {
        let node = &mut self.nodes[position];
        let news = node.source.as_mut().map(SourceState::take_news).unwrap_or_default();
        let id = node.id;
        self.effects.extend(news.into_iter().map(|(slot, progress)| Effect::Partition(id, slot, progress)));
    }

    fn news_of_source(&mut self, position: usize, merged: Merged) {
        // The end says more than the end of time, which would come too early where others are only idle.
        let ends = merged.status == Some(Progress::End);
        let watermark = merged.watermark.filter(|_| !ends).map(Progress::At);
        let mut news: Vec<Progress> = watermark.into_iter().chain(merged.status).collect();
        // Nobody listens to the watermark of one that counts as idle.
        news.sort_by_key(|progress| *progress != Progress::Active);
        for progress in news {
            self.nodes[position].done |= matches!(progress, Progress::End | Progress::Stopped);
            self.forward(position, progress);
        }
    }

    fn on_clock(&mut self, now: ProcTime) -> Result<(), TaskError> {
        for position in 0..self.nodes.len() {
            let news = self.nodes[position].source.as_mut().map(|source| source.on_clock(now)).unwrap_or_default();
            for merged in news {
                self.news_of_source(position, merged);
            }
            self.tell_partitions(position);
            self.run(now)?;
            if !self.nodes[position].done {
                self.call(position, now, |node, cx| node.op.on_clock(cx))?;
                self.run(now)?;
            }
        }
        Ok(())
    }

    // Does all that there is to do.
    fn run(&mut self, now: ProcTime) -> Result<(), TaskError> {
        self.run_until(now, Until::Done)
    }

    fn run_until(&mut self, now: ProcTime, until: Until) -> Result<(), TaskError> {
        while let Some(event) = self.queue.pop_front() {
            match event {
                Event::Data { node, input, batch } => {
                    self.nodes[node].see(&batch);
                    self.call_in_parts(node, now, |node, cx| node.op.on_batch(InputId(input), batch, cx))?;
                }
                Event::More { node } if until == Until::Effects && !self.effects.is_empty() => {
                    self.queue.push_front(Event::More { node });
                    return Ok(());
                }
                Event::More { node } => self.call_in_parts(node, now, |node, cx| node.op.on_more(cx))?,
                Event::Status { node, status } => self.on_status(node, status, now)?,
                Event::Progress { node, input, channel, progress } => {
                    let heard = self.nodes[node].hear(input, channel, progress);
                    self.on_aside(node, input, heard, now)?;
                    let merged = self.nodes[node].merge(input, heard, now);
                    self.on_merged(node, merged, now)?;
                }
            }
        }
        Ok(())
    }

    // Event time may not wait for an input, and its operator still want to know how far that is.
    fn on_aside(&mut self, position: usize, input: usize, heard: Merged, now: ProcTime) -> Result<(), TaskError> {
        if self.nodes[position].waits_for(input) {
            return Ok(());
        }
        for progress in heard.watermark.map(Progress::At).into_iter().chain(heard.status) {
            self.call(position, now, |node, cx| node.op.on_progress(InputId(input), progress, cx))?;
        }
        Ok(())
    }

    fn on_merged(&mut self, position: usize, merged: Merged, now: ProcTime) -> Result<(), TaskError> {
        self.nodes[position].ending |= merged.status == Some(Progress::End);
        if merged.status == Some(Progress::Active) {
            // First of all, as nobody listens to the watermark of one that counts as idle.
            self.nodes[position].rest = Rest::Awake;
            self.forward(position, Progress::Active);
        }
        let waiting = self.queue.len();
        if merged.watermark.is_some() {
            self.call_limited(position, now, |node, cx| node.op.on_watermark(cx))?;
        }
        match merged.status {
            Some(status) if self.nodes[position].op.has_more() => {
                self.leave_more(position, waiting, Some(Event::Status { node: position, status }));
            }
            Some(status) => self.on_status(position, status, now)?,
            None => self.leave_more(position, waiting, None),
        }
        Ok(())
    }

    fn on_status(&mut self, position: usize, status: Progress, now: ProcTime) -> Result<(), TaskError> {
        let cut = self.nodes[position].cut && status == Progress::End;
        let status = if cut { Progress::Stopped } else { status };
        match status {
            Progress::End => {
                self.call(position, now, |node, cx| node.op.on_end(cx))?;
                self.nodes[position].done = true;
            }
            Progress::Stopped => {
                self.call(position, now, |node, cx| node.op.on_flush(cx))?;
                self.nodes[position].done = true;
            }
            // Rows that wait for company would otherwise arrive at an input that counts as idle. That it is idle itself
            // is told once it owes nothing.
            Progress::Idle => {
                self.nodes[position].rest = Rest::Owing;
                return self.call(position, now, |node, cx| node.op.on_flush(cx));
            }
            Progress::Active | Progress::At(_) => return Ok(()),
        }
        self.nodes[position].rest = Rest::Awake;
        self.forward(position, status);
        Ok(())
    }

    // Calls an operator that may leave work for later. What it has sent goes through the operators behind it first, then
    // it goes on, and only then comes what waited before.
    fn call_in_parts(
        &mut self,
        position: usize,
        now: ProcTime,
        work: impl FnOnce(&mut TaskNode, &mut Cx<'_>) -> Result<(), OpError>,
    ) -> Result<(), TaskError> {
        let waiting = self.queue.len();
        self.call_limited(position, now, work)?;
        self.leave_more(position, waiting, None);
        Ok(())
    }

    fn call_limited(
        &mut self,
        position: usize,
        now: ProcTime,
        work: impl FnOnce(&mut TaskNode, &mut Cx<'_>) -> Result<(), OpError>,
    ) -> Result<(), TaskError> {
        self.call(position, now, |node, cx| {
            cx.out.limit(true);
            let done = work(node, cx);
            cx.out.limit(false);
            done
        })
    }

    // If an operator has left work for later, that comes, and then this, before all that was waiting when it was called.
    fn leave_more(&mut self, position: usize, waiting: usize, then: Option<Event>) {
        if self.nodes[position].op.has_more() {
            self.queue.push_back(Event::More { node: position });
            self.queue.extend(then);
            self.queue.rotate_left(waiting);
        }
    }

    // Calls an operator, and sends on what it sent and how far event time has come behind it.
    fn call(
        &mut self,
        position: usize,
        now: ProcTime,
        work: impl FnOnce(&mut TaskNode, &mut Cx<'_>) -> Result<(), OpError>,
    ) -> Result<(), TaskError> {
        self.at_work = position;
        let node = &mut self.nodes[position];
        let mut out = std::mem::take(&mut node.outbox);
        let mut cx = Cx { now, watermark: node.merge.watermark(), out: &mut out };
        let done = work(node, &mut cx).and(out.take_failed());
        let sent = out.take_sent();
        let bad = out.take_bad();
        node.outbox = out;
        done.map_err(|cause| TaskError { operator: node.name.clone(), cause })?;
        for (input, record) in bad {
            let source = self.nodes[position].bad_to[input.0];
            self.nodes[position].cut |= self.stop_at_bad.contains(&source);
            self.effects.push_back(Effect::Bad(source, vec![record]));
        }
        for (port, batch) in sent {
            self.route(position, port, batch);
        }
        // How far event time has come is told behind the last of what comes before that.
        if self.nodes[position].op.has_more() {
            return Ok(());
        }
        if let Some(moved) = self.nodes[position].output_watermark() {
            self.forward(position, Progress::At(moved));
        }
        if let Some(status) = self.nodes[position].change_of_rest() {
            self.forward(position, status);
        }
        Ok(())
    }

    fn route(&mut self, position: usize, port: Port, batch: AnyBatch) {
        let node = &self.nodes[position];
        if node.is_sink {
            self.effects.push_back(Effect::Write(node.id, batch));
            return;
        }
        let Some((last, others)) = node.routes[port.0].split_last() else { return };
        for target in others {
            deliver(*target, Message::Data(batch.duplicate()), &mut self.queue, &mut self.effects);
        }
        deliver(*last, Message::Data(batch), &mut self.queue, &mut self.effects);
    }

    fn forward(&mut self, position: usize, progress: Progress) {
        let node = &self.nodes[position];
        if node.is_sink {
            self.effects.push_back(Effect::Reached(node.id, progress));
        }
        for target in node.routes.iter().flatten() {
            deliver(*target, Message::Progress(progress), &mut self.queue, &mut self.effects);
        }
    }
}

fn deliver(target: Target, message: Message, queue: &mut VecDeque<Event>, effects: &mut VecDeque<Effect>) {
    match (target, message) {
        (Target::Local { node, input }, Message::Data(batch)) => queue.push_back(Event::Data { node, input, batch }),
        (Target::Local { node, input }, Message::Progress(progress)) => {
            queue.push_back(Event::Progress { node, input, channel: 0, progress });
        }
        // Within a task all that belongs to an epoch is done before it is sealed.
        (Target::Local { .. }, Message::Barrier(_)) => {}
        (Target::Remote { task, inlet }, message) => effects.push_back(Effect::Send(task, inlet, message)),
    }
}

/// An outbox that knows which ports lead somewhere.
pub(crate) fn outbox(routes: &[Vec<Target>], is_sink: bool) -> Outbox {
    let wanted = routes.iter().enumerate().filter(|(_, targets)| !targets.is_empty());
    let bits = wanted.fold(u64::from(is_sink), |bits, (port, _)| bits | 1 << port.min(63));
    Outbox::new(bits)
}

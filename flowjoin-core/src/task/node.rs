//! A node of a plan in a task: its operator, what it has heard of event time, and where it sends.

use serde::{Deserialize, Serialize};

use super::{Inlet, TaskId, TimeRange, outbox};
use crate::account::OpFigures;
use crate::batch::AnyBatch;
use crate::error::OpError;
use crate::op::source::SourceState;
use crate::op::{InputId, Operator, Outbox};
use crate::plan::NodeId;
use crate::state::{Owner, Sealed, Sealing, decode, encode};
use crate::time::{ProcTime, Watermark};
use crate::watermark::{Hold, InputState, Merge, Merged, Progress, Rejoin, TimeFigures};

/// Where a port leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// To a node of the same task, by its position.
    Local {
        /// The node.
        node: usize,
        /// Its input.
        input: usize,
    },
    /// To another task.
    Remote {
        /// The task.
        task: TaskId,
        /// Where there.
        inlet: Inlet,
    },
}

/// Whether a node counts as idle for those downstream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Rest {
    /// Its inputs are not idle.
    Awake,
    /// They are, but it will still send rows: those downstream have to wait for it.
    Owing,
    /// It is idle, and has said so.
    Asleep,
}

/// A node of a plan in a task.
pub struct TaskNode {
    pub(super) id: NodeId,
    /// The source by whose policy the bad records of each input are noted.
    pub(super) bad_to: Vec<NodeId>,
    pub(super) name: String,
    pub(super) op: Box<dyn Operator>,
    pub(super) source: Option<SourceState>,
    pub(super) is_sink: bool,
    pub(super) merge: Merge,
    pub(super) routes: Vec<Vec<Target>>,
    pub(super) outbox: Outbox,
    pub(super) done: bool,
    // All its inputs have ended, and that will be told.
    pub(super) ending: bool,
    // It has found a bad record that stops the flow: what comes of it is not all, though its inputs end.
    pub(super) cut: bool,
    pub(super) rest: Rest,
    /// Whether it deals rows out by their key: what comes to a join is seen there, where times still stand together.
    pub(super) is_exchange: bool,
    pub(super) seen: Option<TimeRange>,
    /// Whether each input comes from other tasks.
    pub(super) from_tasks: Vec<bool>,
    inputs: Vec<Merge>,
    sent: Watermark,
    hold: Hold,
}

// What has to be known of a node besides the state of its operator.
#[derive(Serialize, Deserialize)]
struct NodeRecord {
    merge: Merge,
    inputs: Vec<Merge>,
    hold: Hold,
    sent: Watermark,
    done: bool,
    ending: bool,
    cut: bool,
    rest: Rest,
    seen: Option<TimeRange>,
}

// The part of a state that is that record; those of an operator have lower numbers.
const RECORD: u8 = u8::MAX;

impl TaskNode {
    /// A node with its operator (and source), the merge of each input and the routes of each port.
    pub(super) fn new(
        id: NodeId,
        name: String,
        op: Box<dyn Operator>,
        source: Option<SourceState>,
        is_sink: bool,
        inputs: Vec<Merge>,
        routes: Vec<Vec<Target>>,
    ) -> TaskNode {
        let mut merge = Merge::new(inputs.len(), Rejoin::AtOnce);
        for input in (0..inputs.len()).filter(|&input| !op.waits_for(InputId(input))) {
            merge.update(input, Progress::Idle);
        }
        let outbox = outbox(&routes, is_sink);
        let (done, ending, rest, sent) = (false, false, Rest::Awake, Watermark::NONE);
        let hold = Hold::default();
        TaskNode {
            id,
            bad_to: Vec::new(),
            name,
            op,
            source,
            is_sink,
            merge,
            routes,
            outbox,
            done,
            ending,
            cut: false,
            rest,
            is_exchange: false,
            seen: None,
            from_tasks: Vec::new(),
            inputs,
            sent,
            hold,
        }
    }

    /// The channels of its inputs that come from other tasks.
    pub(super) fn channels(&self) -> impl Iterator<Item = (usize, usize)> {
        let from_tasks = self.inputs.iter().enumerate().filter(|(input, _)| self.from_tasks[*input]);
        from_tasks.flat_map(|(input, merge)| (0..merge.inputs().count()).map(move |channel| (input, channel)))
    }

    /// The channels among them on which nothing comes any more.
    pub(super) fn ended_channels(&self) -> impl Iterator<Item = (usize, usize)> {
        self.channels().filter(|&(input, channel)| {
            let state = self.inputs[input].inputs().nth(channel).map(|(state, _)| state);
            matches!(state, Some(InputState::Finished | InputState::Stopped))
        })
    }

    /// Notes from now on what changes of its state.
    pub(super) fn keep(&mut self) {
        match &mut self.source {
            Some(source) => source.keep(),
            None => self.op.keep(),
        }
    }

    /// Tells what has changed of its state, and how far it is.
    pub(super) fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let &mut TaskNode { done, ending, cut, rest, seen, sent, .. } = self;
        let (merge, inputs, hold) = (self.merge.clone(), self.inputs.clone(), self.hold.clone());
        let record = NodeRecord { merge, inputs, hold, sent, done, ending, cut, rest, seen };
        into.put_own(RECORD, &[], &encode(&record));
        match &mut self.source {
            Some(source) => source.seal(into),
            None => self.op.seal(into),
        }
    }

    /// Takes a piece of its state back.
    pub(super) fn take_back(&mut self, sealed: Sealed<'_>, now: ProcTime) -> Result<(), OpError> {
        if sealed.part != RECORD || matches!(sealed.owner, Owner::Group(_)) {
            return match &mut self.source {
                Some(source) => source.take_back(sealed, now),
                None => self.op.take_back(sealed),
            };
        }
        let record: NodeRecord = decode(sealed.value)?;
        (self.merge, self.inputs, self.hold, self.sent) = (record.merge, record.inputs, record.hold, record.sent);
        (self.done, self.ending, self.cut) = (record.done, record.ending, record.cut);
        (self.rest, self.seen) = (record.rest, record.seen);
        Ok(())
    }

    /// Notes the times of what comes to an exchange.
    pub(super) fn see(&mut self, batch: &AnyBatch) {
        let times = batch.times().filter(|_| self.is_exchange);
        if let Some(range) = times.and_then(TimeRange::of) {
            self.seen.get_or_insert(range).add(range);
        }
    }

    /// Whether it is a source of which this task reads no partition.
    pub(super) fn reads_nothing(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.partitions() == 0)
    }

    /// News on a channel of an input; returns what that means for the input.
    pub(super) fn hear(&mut self, input: usize, channel: usize, progress: Progress) -> Merged {
        self.inputs[input].update(channel, progress)
    }

    /// Whether event time waits for an input.
    pub(super) fn waits_for(&self, input: usize) -> bool {
        self.op.waits_for(InputId(input))
    }

    /// News of an input; returns what that means for the node. One that event time does not wait for counts as idle until
    /// it ends.
    pub(super) fn merge(&mut self, input: usize, heard: Merged, now: ProcTime) -> Merged {
        if !self.waits_for(input) {
            let ends = heard.status.filter(|status| matches!(status, Progress::End | Progress::Stopped));
            let merged = ends.map_or_else(Merged::default, |status| self.merge.update(input, status));
            self.hold.note(&self.merge, now);
            return merged;
        }
        // An input that has ended is no active input at the end of time, which the others would then be taken to.
        let watermark = heard.watermark.filter(|_| heard.status != Some(Progress::End));
        let by_time = watermark.map_or_else(Merged::default, |w| self.merge.update(input, Progress::At(w)));
        let by_state = heard.status.map_or_else(Merged::default, |status| self.merge.update(input, status));
        self.hold.note(&self.merge, now);
        Merged { watermark: by_state.watermark.or(by_time.watermark), status: by_state.status.or(by_time.status) }
    }

    /// The watermark of what it sends, if it has moved: never beyond a row that it may still send.
    pub(super) fn output_watermark(&mut self) -> Option<Watermark> {
        let merged = self.merge.watermark();
        let held = self.op.earliest_output().map(Watermark::at);
        let frontier = held.map_or(merged, |held| held.min(merged));
        if frontier <= self.sent {
            return None;
        }
        self.sent = frontier;
        // That time has ended is told by the end itself: alone, it would move on those downstream whose other inputs
        // are idle and not at an end.
        (frontier != Watermark::END || !self.ending).then_some(frontier)
    }

    /// What those downstream have to be told of whether it is idle, after it has done something.
    pub(super) fn change_of_rest(&mut self) -> Option<Progress> {
        let rest = match self.rest {
            Rest::Awake => return None,
            Rest::Owing | Rest::Asleep if self.op.owes() => Rest::Owing,
            Rest::Owing | Rest::Asleep => Rest::Asleep,
        };
        let before = std::mem::replace(&mut self.rest, rest);
        (before != rest).then_some(if rest == Rest::Asleep { Progress::Idle } else { Progress::Active })
    }

    /// When it wants to be told of the clock.
    pub(super) fn deadline(&mut self) -> Option<ProcTime> {
        let source = self.source.as_ref().and_then(SourceState::deadline);
        source.into_iter().chain(self.op.deadline()).min()
    }

    /// How far event time has come here; a source tells what its partitions say.
    pub(super) fn time(&self) -> TimeFigures {
        match &self.source {
            Some(source) => source.time(),
            None => self.hold.figures(&self.merge, self.sent),
        }
    }

    /// Where its rows went and what it holds.
    pub(super) fn figures(&self) -> OpFigures {
        self.source.as_ref().map_or_else(|| self.op.figures(), SourceState::figures)
    }
}

//! Operators: pure values that take batches and watermarks and send batches.
//!
//! An operator never blocks, reads no clock and spawns nothing; it runs to completion on every call. Its task merges
//! watermarks, forwards what it sends and tells it when its inputs have ended.

pub mod chain;
pub mod conditional;
pub mod deal_changes;
pub mod interval_join;
pub mod joined;
pub mod kernel;
pub mod key_by;
pub mod multi_join;
pub mod normalize;
pub mod product;
pub mod snapshot_join;
pub mod source;
pub mod temporal_join;
pub mod window_join;

use crate::account::OpFigures;
use crate::batch::AnyBatch;
use crate::delays::MatchDelays;
use crate::error::{OpError, RecordError};
use crate::state::{Sealed, Sealing};
use crate::time::{EventTime, ProcTime, Watermark};
use crate::watermark::Progress;

/// Which input of an operator, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputId(pub usize);

/// Which output of an operator: 0 is the main one, the others are side outputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub usize);

impl Port {
    /// The main output.
    pub const MAIN: Port = Port(0);
}

/// What an operator knows and may do during a call.
pub struct Cx<'a> {
    /// The processing time, handed in by the host.
    pub now: ProcTime,
    /// The watermark of the operator: the merge over its inputs.
    pub watermark: Watermark,
    /// Where its rows go.
    pub out: &'a mut Outbox,
}

/// What an operator has sent during a call.
#[derive(Debug, Default)]
pub struct Outbox {
    sent: Vec<(Port, AnyBatch)>,
    bad: Vec<(InputId, RecordError)>,
    failed: Option<OpError>,
    wanted: u64,
    rows: usize,
    limited: bool,
}

impl Outbox {
    /// An outbox of which these ports lead somewhere (a bit each).
    pub fn new(wanted: u64) -> Outbox {
        Outbox { wanted, ..Outbox::default() }
    }

    /// Whether anybody reads a port. What is sent to another one is dropped, so need not be made.
    #[inline]
    pub fn wants(&self, port: Port) -> bool {
        self.wanted >> port.0.min(63) & 1 == 1
    }

    /// Sends a batch; an empty one is not sent.
    pub fn send(&mut self, port: Port, batch: AnyBatch) {
        if !batch.is_empty() && self.wants(port) {
            self.rows += batch.len();
            self.sent.push((port, batch));
        }
    }

    /// Whether so much has been sent in this call that the rest should wait until it has gone on. Never in calls that
    /// have to be done at once.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.limited && self.rows >= ROWS_MAX
    }

    /// Says whether this call may leave work for later; returns whether it might before.
    pub fn limit(&mut self, limited: bool) -> bool {
        std::mem::replace(&mut self.limited, limited)
    }

    /// Reports a record of an input that could not become a row.
    pub fn report_bad(&mut self, input: InputId, record: RecordError) {
        self.bad.push((input, record));
    }

    /// Stops the flow after this call if this has failed; the first failure counts.
    pub fn fail_unless(&mut self, done: Result<(), OpError>) {
        if let Err(failed) = done {
            self.failed.get_or_insert(failed);
        }
    }

    /// What this call has failed by, if it has.
    ///
    /// # Errors
    /// That.
    pub fn take_failed(&mut self) -> Result<(), OpError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// What was sent, in order.
    pub fn take_sent(&mut self) -> Vec<(Port, AnyBatch)> {
        self.rows = 0;
        std::mem::take(&mut self.sent)
    }

    /// What was reported, in order.
    pub fn take_bad(&mut self) -> Vec<(InputId, RecordError)> {
        std::mem::take(&mut self.bad)
    }
}

/// One step of a flow on one partition.
pub trait Operator: Send {
    /// Rows have come on an input.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError>;

    /// Whether it has left work for later, because its outbox was full: nothing else is asked of it before
    /// [`on_more`](Self::on_more).
    fn has_more(&self) -> bool {
        false
    }

    /// Go on with the work that was left.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_more(&mut self, _cx: &mut Cx<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// Event time has moved on all inputs. Close what is closed; the task forwards the watermark.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_watermark(&mut self, _cx: &mut Cx<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// Whether event time waits for an input. How far another one is, is told by [`on_progress`](Self::on_progress) alone.
    fn waits_for(&self, _input: InputId) -> bool {
        true
    }

    /// An input that event time does not wait for says how far it is.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_progress(&mut self, _input: InputId, _progress: Progress, _cx: &mut Cx<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// All inputs have ended, after the last watermark.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_end(&mut self, _cx: &mut Cx<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// The clock has reached the deadline.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_clock(&mut self, _cx: &mut Cx<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// Send what is buffered only to make larger batches: nothing more is ready.
    ///
    /// # Errors
    /// If the flow cannot go on.
    fn on_flush(&mut self, _cx: &mut Cx<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// The earliest event time that may still be sent; the task never forwards a watermark beyond it.
    fn earliest_output(&mut self) -> Option<EventTime> {
        None
    }

    /// Whether it will still send rows though none comes any more: it is then not idle when its inputs are, or what it
    /// sends later would be late for those downstream.
    fn owes(&mut self) -> bool {
        self.earliest_output().is_some()
    }

    /// When to call `on_clock` at the latest.
    fn deadline(&mut self) -> Option<ProcTime> {
        None
    }

    /// How long its rows waited for each other, of a join whose rows expire or have to be near in time.
    fn delays(&self) -> Option<MatchDelays> {
        None
    }

    /// Where its rows went and what it holds.
    fn figures(&self) -> OpFigures;

    /// Notes from now on what changes, so that it can be sealed. What it holds already counts as sealed.
    fn keep(&mut self);

    /// Tells what has changed since the last time, or since [`keep`](Self::keep). It has left no work for later then, and
    /// what waited for company has been sent.
    ///
    /// # Errors
    /// If a row cannot be kept.
    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError>;

    /// Takes back a piece that was sealed, as it was last. All come before anything else does, in the order of their parts
    /// and keys within a group.
    ///
    /// # Errors
    /// If it is none of its own.
    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError>;

    /// All pieces have been taken back; it goes on from there, at this watermark and processing time.
    fn resume(&mut self, _watermark: Watermark, _now: ProcTime) {}
}

/// Rows that may be sent in one call before the rest waits.
const ROWS_MAX: usize = 16_384;

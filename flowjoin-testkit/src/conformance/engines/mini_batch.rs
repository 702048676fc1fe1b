//! A join whose records are worked on in batches, as the case cuts them.
//!
//! Records wait until one fills the batch, or until something comes that may not overtake them. Those of one input are
//! then one batch; each input has one, in the order of the inputs.

use super::flow::FlowEngine;
use crate::conformance::engine::{Engine, EngineError, Observed, Record};

/// A join of the core behind a batch that is being filled.
pub(super) struct MiniBatchEngine {
    join: FlowEngine,
    waiting: Vec<Record>,
}

impl MiniBatchEngine {
    /// The join, with an empty batch before it.
    pub fn new(join: FlowEngine) -> MiniBatchEngine {
        MiniBatchEngine { join, waiting: Vec::new() }
    }
}

impl Engine for MiniBatchEngine {
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        self.waiting.push(record);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|record| record.input);
        for batch in waiting.chunk_by(|one, other| one.input == other.input) {
            self.join.record_all(batch[0].input, batch.to_vec())?;
        }
        Ok(())
    }

    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        self.flush()?;
        self.join.watermark(input, t)
    }

    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        self.join.idle(input)
    }

    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        self.join.active(input)
    }

    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        self.flush()?;
        self.join.end_of_input(input)
    }

    fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
        self.join.processing_time(t)
    }

    fn observe(&mut self) -> Observed {
        self.join.observe()
    }
}

//! The operators without state: a function over batches, and the pass-through of unions and sinks.

use super::{Cx, InputId, Operator, Port};
use crate::account::{Account, OpFigures};
use crate::batch::AnyBatch;
use crate::error::OpError;
use crate::state::{Sealed, Sealing, decode, encode};

/// A function from a batch to a batch.
pub type BatchFn = dyn Fn(AnyBatch) -> Result<AnyBatch, OpError> + Send + Sync;

/// Applies a function to each batch: `map`, `filter`, `flat_map`.
pub struct Apply {
    function: std::sync::Arc<BatchFn>,
    rows: u64,
    emitted: u64,
}

impl Apply {
    /// An operator that applies this function.
    pub fn new(function: std::sync::Arc<BatchFn>) -> Apply {
        Apply { function, rows: 0, emitted: 0 }
    }
}

impl Operator for Apply {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.rows += batch.len() as u64;
        let out = (self.function)(batch)?;
        self.emitted += out.len() as u64;
        cx.out.send(Port::MAIN, out);
        Ok(())
    }

    fn figures(&self) -> OpFigures {
        passed(&[self.rows], self.emitted)
    }

    fn keep(&mut self) {}

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        into.put_own(COUNTS, &[], &encode(&(self.rows, self.emitted)));
        Ok(())
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        (self.rows, self.emitted) = decode(sealed.value)?;
        Ok(())
    }
}

/// Sends on what comes on any of its inputs.
pub struct Pass {
    rows: Vec<u64>,
}

impl Pass {
    /// A pass-through of so many inputs.
    pub fn new(inputs: usize) -> Pass {
        Pass { rows: vec![0; inputs] }
    }
}

impl Operator for Pass {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.rows[input.0] += batch.len() as u64;
        cx.out.send(Port::MAIN, batch);
        Ok(())
    }

    fn figures(&self) -> OpFigures {
        passed(&self.rows, self.rows.iter().sum())
    }

    fn keep(&mut self) {}

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        into.put_own(COUNTS, &[], &encode(&self.rows));
        Ok(())
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        self.rows = decode(sealed.value)?;
        Ok(())
    }
}

// The only part of the state of a step that holds no rows.
const COUNTS: u8 = 0;

fn passed(rows: &[u64], emitted: u64) -> OpFigures {
    let accounts = rows.iter().map(|&rows| Account { rows, matched: rows, ..Account::default() });
    OpFigures { accounts: accounts.collect(), emitted, ..OpFigures::default() }
}

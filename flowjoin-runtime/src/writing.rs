//! The writer of a sink in one task, and what has become of the rows that it was given.

use flowjoin_core::io::erased::AnyWriter;
use flowjoin_core::{Account, AnyBatch, IoError};

use crate::shell::guarded;

/// What a sink has been given by one task.
pub struct Writing {
    writer: Box<dyn AnyWriter>,
    /// Rows that the writer has taken.
    taken: u64,
    /// Those of them that it holds back no more.
    written: u64,
}

impl Writing {
    /// Nothing yet.
    pub fn new(writer: Box<dyn AnyWriter>) -> Writing {
        Writing { writer, taken: 0, written: 0 }
    }

    /// Hands a batch to the writer.
    pub async fn write(&mut self, batch: AnyBatch) -> Result<(), IoError> {
        let rows = batch.len() as u64;
        guarded("writing", self.writer.write(batch)).await?;
        self.taken += rows;
        if !self.writer.buffers() {
            self.written = self.taken;
        }
        Ok(())
    }

    /// Makes visible what it has taken.
    pub async fn flush(&mut self) -> Result<(), IoError> {
        guarded("flushing", self.writer.flush()).await?;
        self.written = self.taken;
        Ok(())
    }

    /// Nothing will come any more.
    pub async fn close(&mut self) -> Result<(), IoError> {
        guarded("closing", self.writer.close()).await?;
        self.written = self.taken;
        Ok(())
    }

    /// What has become of its rows. Those that are on their way to the sink in the task are not its rows yet.
    pub fn account(&self) -> Account {
        let &Writing { taken, written, .. } = self;
        Account { rows: taken, matched: written, open: taken - written, ..Account::default() }
    }
}

//! Which partitions may be read, across the tasks of a run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flowjoin_core::Progress;
use flowjoin_core::plan::NodeId;
use flowjoin_core::task::{Alignments, TaskId};
use tokio::sync::Notify;

/// The alignment groups of a run.
#[derive(Debug)]
pub struct Aligned {
    alignments: Mutex<Alignments>,
    moved: Notify,
}

impl Aligned {
    /// The groups of a deployment.
    pub fn new(alignments: Alignments) -> Aligned {
        Aligned { alignments: Mutex::new(alignments), moved: Notify::new() }
    }

    /// A partition says how far it is.
    pub fn hear(&self, task: TaskId, source: NodeId, slot: usize, progress: Progress) {
        let moved = self.lock().update(task, source, slot, progress);
        if moved {
            self.moved.notify_waiters();
        }
    }

    /// Whether a partition is too far ahead to be read.
    pub fn is_paused(&self, task: TaskId, source: NodeId, slot: usize) -> bool {
        self.lock().is_paused(task, source, slot)
    }

    /// Returns once one of these partitions of a task may be read.
    pub async fn freed(&self, task: TaskId, slots: &[(NodeId, usize)]) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if slots.iter().any(|&(source, slot)| !self.is_paused(task, source, slot)) {
                return;
            }
            moved.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alignments> {
        self.alignments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

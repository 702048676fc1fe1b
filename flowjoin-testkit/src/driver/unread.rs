//! What has been sent to sources that are not read now: alignment holds them until others of their group have come near.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flowjoin_core::Progress;
use flowjoin_core::plan::NodeId;
use flowjoin_core::task::{Alignments, TaskId, TaskInput};

use super::TestFlow;

// The task that reads a partition, its source, and its number there.
type Partition = (TaskId, NodeId, usize);

/// The partitions of aligned sources, and what waits in front of them.
pub(super) struct Unread {
    alignments: Alignments,
    queues: BTreeMap<Partition, VecDeque<TaskInput>>,
    // Those of which their tasks know that they are not read.
    paused: BTreeSet<Partition>,
}

impl Unread {
    pub(super) fn new(alignments: Alignments) -> Unread {
        Unread { alignments, queues: BTreeMap::new(), paused: BTreeSet::new() }
    }

    pub(super) fn hear(&mut self, task: TaskId, source: NodeId, slot: usize, progress: Progress) {
        self.alignments.update(task, source, slot, progress);
    }

    /// The tasks are made anew: they will tell how far their partitions are, and do not know which of them are paused.
    pub(super) fn go_back(&mut self, alignments: Alignments) {
        self.alignments = alignments;
        self.paused.clear();
    }

    fn is_paused(&self, (task, source, slot): Partition) -> bool {
        self.alignments.is_paused(task, source, slot)
    }

    // The first thing that waits in front of a partition that may be read.
    fn next(&mut self) -> Option<(TaskId, TaskInput)> {
        let free = self.queues.keys().copied().find(|&partition| !self.is_paused(partition))?;
        let queue = self.queues.get_mut(&free)?;
        let next = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&free);
        }
        Some((free.0, next))
    }

    // What the tasks do not know yet of which partitions are read.
    fn news(&mut self) -> Vec<(TaskId, TaskInput)> {
        let mut news = Vec::new();
        for partition in self.alignments.partitions() {
            let (task, source, slot) = partition;
            match (self.is_paused(partition), self.paused.contains(&partition)) {
                (true, false) => {
                    self.paused.insert(partition);
                    news.push((task, TaskInput::Paused { source, slot }));
                }
                (false, true) => {
                    self.paused.remove(&partition);
                    news.push((task, TaskInput::Resumed { source, slot }));
                }
                (true, true) | (false, false) => {}
            }
        }
        news
    }
}

impl TestFlow {
    /// How many pages and words have been sent to a source that is not read now, because it is ahead of others of its
    /// group. They are read in their order once the others have come near.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn unread(&self, source: &str) -> usize {
        let id = self.source(source);
        let of = self.unread.queues.iter().filter(|((_, source, _), _)| *source == id);
        of.map(|(_, queue)| queue.len()).sum()
    }

    // Hands in what a partition is sent, or keeps it until the partition may be read.
    pub(super) fn read(&mut self, task: TaskId, input: TaskInput) {
        let partition = match &input {
            TaskInput::Page { source, slot, .. } | TaskInput::Source { source, slot, .. } => (task, *source, *slot),
            _ => unreachable!("only pages and words of sources are read"),
        };
        let is_page = matches!(input, TaskInput::Page { .. });
        if self.unread.queues.contains_key(&partition) || is_page && self.unread.is_paused(partition) {
            self.unread.queues.entry(partition).or_default().push_back(input);
        } else {
            self.run_task(task.0, |task, now| task.handle(input, now));
            self.settle();
        }
        self.read_on();
    }

    // Reads what has waited, as far as that may be read now.
    pub(super) fn read_on(&mut self) {
        loop {
            for (task, input) in self.unread.news() {
                self.run_task(task.0, |task, now| task.handle(input, now));
            }
            let Some((task, input)) = self.unread.next() else { return };
            self.on_read_on();
            self.run_task(task.0, |task, now| task.handle(input, now));
            self.settle();
        }
    }
}

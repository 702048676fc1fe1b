//! Which partitions must not be read now, because others of their group are too far behind.
//!
//! A host tells it what the partitions of aligned sources say ([`Effect::Partition`](super::Effect::Partition)), and
//! asks before it reads one.

use std::collections::BTreeMap;

use super::{Reading, TaskId};
use crate::plan::{Build, NodeId, Plan};
use crate::watermark::{Alignment, Progress};

/// The alignment groups of a deployment.
#[derive(Clone, Debug, Default)]
pub struct Alignments {
    groups: Vec<Alignment>,
    // The group of a partition, and its number in it.
    places: BTreeMap<(TaskId, NodeId, usize), (usize, usize)>,
}

impl Alignments {
    /// The groups of a plan, over the partitions that its tasks read.
    pub fn of(plan: &Plan, readings: &[Reading]) -> Alignments {
        let mut all = Alignments::default();
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for reading in readings {
            let Build::Source(source) = &plan.node(reading.source).build else { continue };
            let Some(align) = source.align() else { continue };
            let group = *named.entry(&align.group).or_insert_with(|| {
                all.groups.push(Alignment::new(align.max_drift));
                all.groups.len() - 1
            });
            let member = all.groups[group].join();
            all.places.insert((reading.task, reading.source, reading.slot), (group, member));
        }
        all
    }

    /// A partition (by the task's count) says how far it is; returns whether others may now be read, or no longer be.
    pub fn update(&mut self, task: TaskId, source: NodeId, slot: usize, progress: Progress) -> bool {
        let place = self.places.get(&(task, source, slot));
        place.is_some_and(|&(group, member)| self.groups[group].update(member, progress))
    }

    /// The partitions that belong to a group.
    pub fn partitions(&self) -> Vec<(TaskId, NodeId, usize)> {
        self.places.keys().copied().collect()
    }

    /// Whether a partition is too far ahead to be read.
    pub fn is_paused(&self, task: TaskId, source: NodeId, slot: usize) -> bool {
        let place = self.places.get(&(task, source, slot));
        place.is_some_and(|&(group, member)| self.groups[group].is_paused(member))
    }
}

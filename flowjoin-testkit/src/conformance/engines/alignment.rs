//! The alignment of sources that may drift apart by a bounded span.

use std::collections::BTreeMap;

use flowjoin_core::watermark::Alignment;
use flowjoin_core::{Progress, millis};

use super::{Case, Engine, Unbuilt, flink_number, frontier, required};
use crate::conformance::engine::{AlignmentView, EngineError, Observed};

/// Plays `watermark_alignment` on the alignment of the core.
pub struct AlignmentEngine {
    group: Alignment,
    // A source belongs to the group from its first word on.
    members: BTreeMap<usize, usize>,
    published: Option<AlignmentView>,
}

impl AlignmentEngine {
    /// The group that a case configures.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn of(case: &Case) -> Result<AlignmentEngine, Unbuilt> {
        let max_drift: i64 = required(case, "max_drift")?;
        Ok(AlignmentEngine { group: Alignment::new(millis(max_drift)), members: BTreeMap::new(), published: None })
    }

    fn say(&mut self, input: usize, progress: Progress) -> Result<(), EngineError> {
        let group = &mut self.group;
        let member = *self.members.entry(input).or_insert_with(|| group.join());
        group.update(member, progress);
        Ok(())
    }
}

impl Engine for AlignmentEngine {
    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        // The greatest watermark is what a finished source reports.
        self.say(input, if t == i64::MAX { Progress::End } else { Progress::At(frontier(t)) })
    }

    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        self.say(input, Progress::Idle)
    }

    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        self.say(input, Progress::Active)
    }

    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        self.say(input, Progress::End)
    }

    fn announce(&mut self) -> Result<(), EngineError> {
        // While nobody holds the others, nothing is forbidden.
        let max_allowed = self.group.limit().map_or(i64::MAX, flink_number);
        let paused = self.members.iter().filter(|(_, member)| self.group.is_paused(**member));
        let paused = paused.map(|(&source, _)| source).collect();
        self.published = Some(AlignmentView { max_allowed, paused });
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        Observed { alignment: self.published.take(), ..Observed::default() }
    }
}

//! The alignment of sources that may drift apart by a bounded span.

use flowjoin_core::watermark::Alignment;
use flowjoin_core::{Progress, millis};

use super::{Case, Engine, Unbuilt, check_count, flink_number, frontier, required};
use crate::conformance::engine::{AlignmentView, EngineError, Observed};

/// Plays `watermark_alignment` on the alignment of the core.
pub struct AlignmentEngine {
    group: Alignment,
    sources: usize,
    published: Option<AlignmentView>,
}

impl AlignmentEngine {
    /// The group that a case configures; its sources are those that its steps speak of.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn of(case: &Case) -> Result<AlignmentEngine, Unbuilt> {
        let max_drift: i64 = required(case, "max_drift")?;
        let spoken_of = case.steps.iter().filter_map(|step| step.action.input());
        let sources = spoken_of.max().map_or(0, |last| last + 1);
        check_count(sources)?;
        Ok(AlignmentEngine { group: Alignment::new(sources, millis(max_drift)), sources, published: None })
    }
}

impl Engine for AlignmentEngine {
    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        self.group.update(input, Progress::At(frontier(t)));
        // The greatest watermark is what a finished source reports.
        if t == i64::MAX { self.end_of_input(input) } else { Ok(()) }
    }

    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        self.group.update(input, Progress::Idle);
        Ok(())
    }

    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        self.group.update(input, Progress::Active);
        Ok(())
    }

    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        self.group.update(input, Progress::End);
        Ok(())
    }

    fn announce(&mut self) -> Result<(), EngineError> {
        // While nobody holds the others, nothing is forbidden.
        let max_allowed = self.group.limit().map_or(i64::MAX, flink_number);
        let paused = (0..self.sources).filter(|&source| self.group.is_paused(source)).collect();
        self.published = Some(AlignmentView { max_allowed, paused });
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        Observed { alignment: self.published.take(), ..Observed::default() }
    }
}

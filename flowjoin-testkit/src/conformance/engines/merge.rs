//! The merge of watermarks over the channels of an exchange, or over the inputs of an operator.

use flowjoin_core::watermark::{Merged, Rejoin};
use flowjoin_core::{Merge, Progress};

use super::{Case, Engine, Unbuilt, check_count, flink_number, frontier, required};
use crate::conformance::engine::{EngineError, Observed, Status};

/// Plays `watermark_merge` on the merge of the core.
pub struct MergeEngine {
    merge: Merge,
    inputs: usize,
    seen: Observed,
}

impl MergeEngine {
    /// The merge that a case configures.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn of(case: &Case) -> Result<MergeEngine, Unbuilt> {
        let inputs: usize = required(case, "channels")?;
        check_count(inputs)?;
        let flavor: String = required(case, "flavor")?;
        let rejoin = match flavor.as_str() {
            "channels" => Rejoin::AfterCatchUp,
            "inputs" => Rejoin::AtOnce,
            other => return Err(Unbuilt::Malformed(format!("there is no flavor `{other}`"))),
        };
        Ok(MergeEngine { merge: Merge::new(inputs, rejoin), inputs, seen: Observed::default() })
    }

    fn update(&mut self, input: usize, progress: Progress) -> Result<(), EngineError> {
        if input >= self.inputs {
            return Err(EngineError::Refused(format!("there is no input {input}")));
        }
        let Merged { watermark, status } = self.merge.update(input, progress);
        self.seen.watermarks.extend(watermark.map(flink_number));
        self.seen.statuses.extend(match status {
            Some(Progress::Idle) => Some(Status::Idle),
            Some(Progress::Active) => Some(Status::Active),
            // The end is told by the watermark.
            Some(Progress::At(_) | Progress::End | Progress::Stopped) | None => None,
        });
        Ok(())
    }
}

impl Engine for MergeEngine {
    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        self.update(input, Progress::At(frontier(t)))
    }

    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        self.update(input, Progress::Idle)
    }

    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        self.update(input, Progress::Active)
    }

    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        self.update(input, Progress::End)
    }

    fn observe(&mut self) -> Observed {
        std::mem::take(&mut self.seen)
    }
}

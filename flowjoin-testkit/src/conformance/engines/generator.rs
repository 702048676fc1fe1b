//! The watermark of one source, by bounded out-of-orderness and idleness.

use std::collections::VecDeque;

use flowjoin_core::{EventTime, Generator, ProcTime, Progress, Watermarks, millis};

use super::{Case, Engine, Unbuilt, flink_number, option};
use crate::conformance::engine::{EngineError, Observed, Record, Status};
use crate::conformance::expect::Expected;
use crate::conformance::model::{Action, Strict};
use crate::conformance::rules::{Mismatch, Rules};

/// Plays `watermark_generator` on the generator of the core.
pub struct GeneratorEngine {
    generator: Generator,
    now: ProcTime,
    seen: Observed,
}

impl GeneratorEngine {
    /// The generator that a case configures; its clock starts at 0.
    ///
    /// # Errors
    /// If the configuration cannot be read, or its spans mean nothing.
    pub fn of(case: &Case) -> Result<GeneratorEngine, Unbuilt> {
        let bound: i64 = option(case, "max_out_of_orderness")?.unwrap_or(0);
        let idle: Option<i64> = option(case, "idle_timeout_ms")?;
        if bound < 0 {
            return Err(Unbuilt::Refused(format!("rows cannot be out of order by {bound} ms")));
        }
        if let Some(idle) = idle.filter(|&idle| idle <= 0) {
            return Err(Unbuilt::Refused(format!("a source cannot be idle after {idle} ms")));
        }
        let mut strategy = Watermarks::of_field("ts").out_of_order(millis(bound));
        if let Some(idle) = idle {
            strategy = strategy.idle(millis(idle));
        }
        let now = ProcTime::default();
        Ok(GeneratorEngine { generator: Generator::new(strategy, now), now, seen: Observed::default() })
    }

    fn move_clock(&mut self, t: i64) {
        self.now = ProcTime::from_millis(t);
        self.status_of(|generator, now| generator.on_clock(now));
    }

    fn status_of(&mut self, change: impl Fn(&mut Generator, ProcTime) -> Option<Progress>) {
        self.seen.statuses.extend(match change(&mut self.generator, self.now) {
            Some(Progress::Idle) => Some(Status::Idle),
            Some(Progress::Active) => Some(Status::Active),
            Some(Progress::At(_) | Progress::End | Progress::Stopped) | None => None,
        });
    }
}

impl Engine for GeneratorEngine {
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        if record.input != 0 {
            return Err(EngineError::Unsupported("record of a second input"));
        }
        let ts = record.ts.ok_or(EngineError::Unsupported("record without a time"))?;
        self.status_of(|generator, now| generator.on_rows(now));
        self.generator.on_row(EventTime::from_millis(ts));
        Ok(())
    }

    fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
        self.move_clock(t);
        Ok(())
    }

    fn tick(&mut self, t: i64) -> Result<(), EngineError> {
        self.seen.watermarks.extend(self.generator.advance(ProcTime::from_millis(t)).map(flink_number));
        self.move_clock(t);
        Ok(())
    }

    fn end_of_input(&mut self, _: usize) -> Result<(), EngineError> {
        self.seen.watermarks.push(i64::MAX);
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        std::mem::take(&mut self.seen)
    }
}

/// Where the generator differs from the letter of a case on purpose: a state may be told at an earlier step.
///
/// The idle clock starts at once and not at the first periodic check without a row, and a source is active with its
/// first row and not with its next watermark. So `idle` may come as soon as the source was quiet for as long as the
/// case says, and `active` with any row; both never later than asserted, and in the same order.
pub struct GeneratorRules {
    idle: Option<i64>,
    is_strict: bool,
    now: i64,
    quiet_since: i64,
    early: VecDeque<Status>,
}

impl GeneratorRules {
    /// The rules at the beginning of a case.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn of(case: &Case) -> Result<GeneratorRules, Unbuilt> {
        let is_strict = case.strict.contains(&Strict::Status);
        let idle = option(case, "idle_timeout_ms")?;
        Ok(GeneratorRules { idle, is_strict, now: 0, quiet_since: 0, early: VecDeque::new() })
    }

    fn may_be_early(&self, status: Status, is_record: bool) -> bool {
        match status {
            Status::Idle => self.idle.is_some_and(|idle| self.now - self.quiet_since >= idle),
            Status::Active => is_record,
        }
    }
}

impl Rules for GeneratorRules {
    fn adapt(&mut self, action: &Action, expected: &mut Expected, got: &mut Observed) -> Result<(), Mismatch> {
        let is_record = matches!(action, Action::Record { .. });
        if let Action::Tick { t } | Action::ProcessingTime { t } = action {
            self.now = *t;
        }
        let Some(asserted) = &mut expected.statuses else {
            // What comes where nothing is asserted may be asked for later.
            self.early.extend(got.statuses.drain(..));
            self.quiet_since = if is_record { self.now } else { self.quiet_since };
            return Ok(());
        };
        let asked_early = asserted.iter().zip(&self.early).take_while(|(asked, early)| asked == early).count();
        if *asserted != got.statuses {
            asserted.drain(..asked_early);
            self.early.drain(..asked_early);
        }
        let shared = asserted.iter().zip(&got.statuses).take_while(|(asked, came)| asked == came).count();
        let all_early = got.statuses[shared..].iter().all(|&status| self.may_be_early(status, is_record));
        if shared == asserted.len() && all_early {
            self.early.extend(got.statuses.drain(shared..));
        }
        self.quiet_since = if is_record { self.now } else { self.quiet_since };
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Mismatch> {
        match self.early.front() {
            Some(status) if self.is_strict => Err(Mismatch::new("status", "a state that some step asks for", status)),
            _ => Ok(()),
        }
    }
}

//! Plays cases.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::engine::{Engine, EngineError, Observed, Record, Unbuilt};
use super::engines::{engine_for, parallelisms, rules_for};
use super::expect::Expected;
use super::judge::Judge;
use super::model::{Action, Case, Phase, Verdict};
use super::rules::{Mismatch, Rules};

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps gave what they must.
    Pass,
    /// One did not.
    Fail(Failure),
    /// The case cannot be played here; the text is the reason.
    NotApplicable(String),
    /// The case is none: its configuration says what there is not; the text is what.
    Malformed(String),
}

/// The first step that did not give what it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step, counted from 0; none at the build or at the end.
    pub step: Option<usize>,
    /// What happened in it.
    pub action: String,
    /// What must have come, and what came.
    pub mismatch: Mismatch,
    /// How many tasks the operator ran as.
    pub parallelism: usize,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "step {step}, ")?;
        }
        write!(f, "{}: {}", self.action, self.mismatch)?;
        if self.parallelism > 1 { write!(f, " (at parallelism {})", self.parallelism) } else { Ok(()) }
    }
}

/// Plays a case on the engine of its operator, at each parallelism that the operator is tried at.
///
/// A panic of the engine is a failure of the case.
pub fn run(case: &Case) -> Outcome {
    for &parallelism in parallelisms(case) {
        let outcome = catch_unwind(AssertUnwindSafe(|| build_and_play(case, parallelism)));
        let outcome = outcome.unwrap_or_else(|panic| {
            let mismatch = Mismatch::new("engine", "no panic", panic_text(panic.as_ref()));
            Outcome::Fail(Failure { step: None, action: "play".to_string(), mismatch, parallelism })
        });
        match outcome {
            Outcome::Pass => {}
            Outcome::Fail(failure) => return Outcome::Fail(Failure { parallelism, ..failure }),
            Outcome::NotApplicable(_) | Outcome::Malformed(_) => return outcome,
        }
    }
    Outcome::Pass
}

fn build_and_play(case: &Case, parallelism: usize) -> Outcome {
    let asks_for_error = case.expect_error.as_ref().filter(|error| error.phase == Phase::Build);
    let built = engine_for(case, parallelism).and_then(|engine| Ok((engine, rules_for(case)?)));
    match (built, asks_for_error) {
        (Err(Unbuilt::NotApplicable(reason)), _) => Outcome::NotApplicable(reason),
        (Err(Unbuilt::Malformed(reason)), _) => Outcome::Malformed(reason),
        (Err(Unbuilt::Refused(_)), Some(_)) => Outcome::Pass,
        (Err(Unbuilt::Refused(reason)), None) => Outcome::NotApplicable(format!("refused by design: {reason}")),
        (Ok(_), Some(error)) if case.verdict == Verdict::Match => {
            failure(None, "build", Mismatch::new("error", &error.kind, "none"))
        }
        (Ok((mut engine, mut rules)), _) => play(case, engine.as_mut(), rules.as_mut()),
    }
}

/// Plays the steps of a case on an engine, and compares each.
pub fn play(case: &Case, engine: &mut dyn Engine, rules: &mut dyn Rules) -> Outcome {
    let mut script = Vec::new();
    for step in &case.steps {
        match Expected::of(case, step) {
            Ok(expected) => script.push((&step.action, expected)),
            Err(reason) => return Outcome::NotApplicable(reason),
        }
    }
    let mut judge = Judge::new(case);
    for (index, (action, mut expected)) in script.into_iter().enumerate() {
        let asks_for_error = must_fail(case, index);
        let named = || case.steps[index].to_string();
        match (feed(engine, action), asks_for_error) {
            (Err(EngineError::Unsupported(what)), _) => {
                return Outcome::NotApplicable(format!("the engine of {} has no `{what}`", case.operator));
            }
            (Err(EngineError::Refused(_)), true) => return Outcome::Pass,
            (Err(refused), false) => return failure(Some(index), &named(), Mismatch::new("step", "no error", refused)),
            // A restriction that is lifted: what must come out instead, the case does not say.
            (Ok(()), true) if case.verdict == Verdict::Improve => return Outcome::Pass,
            (Ok(()), true) => return failure(Some(index), &named(), Mismatch::new("step", "an error", "none")),
            (Ok(()), false) => {}
        }
        let mut got: Observed = engine.observe();
        let compared = judge
            .apply(&got.out)
            .and_then(|()| rules.adapt(action, &mut expected, &mut got))
            .and_then(|()| judge.compare(&expected, &got));
        if let Err(mismatch) = compared {
            return failure(Some(index), &named(), mismatch);
        }
    }
    match rules.finish() {
        Ok(()) => Outcome::Pass,
        Err(mismatch) => failure(None, "end of the case", mismatch),
    }
}

fn must_fail(case: &Case, index: usize) -> bool {
    case.expect_error.as_ref().is_some_and(|error| error.phase == Phase::Step && error.step.unwrap_or(index) == index)
}

fn feed(engine: &mut dyn Engine, action: &Action) -> Result<(), EngineError> {
    match action {
        Action::Record { input, kind, row, ts, flushed, .. } => {
            engine.record(Record { input: *input, kind: *kind, row: row.clone(), ts: *ts })?;
            if *flushed { engine.flush() } else { Ok(()) }
        }
        Action::Watermark { input, t } => engine.watermark(*input, *t),
        Action::Idle { input } => engine.idle(*input),
        Action::Active { input } => engine.active(*input),
        Action::EndOfInput { input } => engine.end_of_input(*input),
        Action::ProcessingTime { t } => engine.processing_time(*t),
        Action::Tick { t } => engine.tick(*t),
        Action::Announce {} => engine.announce(),
        Action::Flush {} => engine.flush(),
        Action::Table { .. } => Err(EngineError::Unsupported("table")),
        Action::TableAt { .. } => Err(EngineError::Unsupported("table_at")),
        Action::Complete { .. } => Err(EngineError::Unsupported("complete")),
    }
}

fn failure(step: Option<usize>, action: &str, mismatch: Mismatch) -> Outcome {
    Outcome::Fail(Failure { step, action: action.to_string(), mismatch, parallelism: 1 })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    format!("panic: {}", text.unwrap_or_else(|| "without a text".to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{NoRules, OutRow, cells};

    /// Sends every row on, refuses retractions.
    #[derive(Default)]
    struct Echo(Vec<OutRow>);

    impl Engine for Echo {
        fn record(&mut self, record: Record) -> Result<(), EngineError> {
            if !record.kind.adds() {
                return Err(EngineError::Refused(format!("a {} of an append-only input", record.kind)));
            }
            self.0.push(OutRow { kind: record.kind, row: cells(&record.row), ts: record.ts });
            Ok(())
        }

        fn observe(&mut self) -> Observed {
            Observed { out: std::mem::take(&mut self.0), ..Observed::default() }
        }
    }

    fn outcome(rest: &str) -> String {
        let case: Case = serde_json::from_str(&format!(r#"{{"id":"x","operator":"echo",{rest}}}"#)).unwrap();
        match play(&case, &mut Echo::default(), &mut NoRules) {
            Outcome::Pass => "pass".to_string(),
            Outcome::Fail(failure) => failure.to_string(),
            Outcome::NotApplicable(reason) => format!("n/a: {reason}"),
            Outcome::Malformed(reason) => format!("malformed: {reason}"),
        }
    }

    #[test]
    fn a_case_passes_if_every_step_does_and_else_says_which() {
        let steps = |kind, row| {
            format!(
                r#""steps":[{{"op":"record","kind":"{kind}","row":[1],"ts":5,
                    "expect":{{"out":[{{"kind":"+I","row":[{row}],"ts":5}}]}}}}]"#
            )
        };
        assert_eq!(outcome(&steps("+U", 1)), "pass");
        assert_eq!(
            outcome(&steps("+I", 2)),
            r#"step 0, record kind "+I" row [1] ts 5: out: expected +I[2] @5, got +I[1] @5"#
        );
    }

    #[test]
    fn what_cannot_be_played_or_compared_is_not_applicable() {
        let steps = |step| outcome(&format!(r#""steps":[{step}]"#));
        assert_eq!(steps(r#"{"op":"idle"}"#), "n/a: the engine of echo has no `idle`");
        assert_eq!(steps(r#"{"op":"table","put":{}}"#), "n/a: the engine of echo has no `table`");
        let full = steps(r#"{"op":"record","kind":"+I","row":[1],"flushed":true,"expect":{"out":[]}}"#);
        assert_eq!(full, "n/a: the engine of echo has no `flush`");
        let lookups = steps(r#"{"op":"record","kind":"+I","row":[1],"expect":{"lookups":1}}"#);
        assert_eq!(lookups, "n/a: nothing here counts look-ups");
    }

    #[test]
    fn an_error_that_is_asked_for_must_come_unless_a_restriction_is_lifted() {
        let with = |kind, verdict, phase| {
            outcome(&format!(
                r#""expect_error":{{"phase":"{phase}","step":0,"kind":"k"}},"verdict":"{verdict}",
                    "steps":[{{"op":"record","kind":"{kind}","row":[1]}}]"#
            ))
        };
        assert_eq!(with("-D", "match", "step"), "pass");
        assert!(with("+I", "match", "step").ends_with("step: expected an error, got none"));
        assert_eq!(with("+I", "improve", "step"), "pass");
        assert!(with("-D", "match", "build").contains("expected no error, got refused: a -D of an append-only input"));
    }
}

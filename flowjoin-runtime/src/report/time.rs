//! How far event time has come at a step, and what keeps it there.

use std::fmt;
use std::time::Duration;

use flowjoin_core::{InputState, InputTime, ProcTime, TimeFigures, Watermark};

use super::StepReport;

/// How far event time has come at a step, and what keeps it there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepTime {
    /// Its watermark: the least over its active inputs.
    pub watermark: Watermark,
    /// The watermark that it has told those downstream: behind its own while it holds rows that may still come out.
    pub told: Watermark,
    /// The input without which the watermark would be further; of a source, the partition.
    pub holding_input: Option<String>,
    /// How long the watermark has stood where it does because of that input.
    pub held_for: Duration,
    /// The partitions of a source; of other steps, nothing.
    pub partitions: Vec<InputTime>,
}

impl StepTime {
    /// What a step tells, whose inputs have these names; a source has one, named after itself.
    pub(super) fn of(kind: &str, names: &[String], figures: TimeFigures, now: ProcTime) -> StepTime {
        let is_source = kind == "source";
        let name = |input: usize| match is_source {
            true => format!("partition {input}"),
            false => names.get(input).cloned().unwrap_or_default(),
        };
        let since = figures.holding.map(|holding| now.since(holding.since).as_millis().max(0).unsigned_abs());
        StepTime {
            watermark: figures.watermark,
            told: figures.told,
            holding_input: figures.holding.map(|holding| name(holding.input)),
            held_for: Duration::from_millis(since.unwrap_or_default()),
            partitions: if is_source { figures.inputs } else { Vec::new() },
        }
    }

    /// What the only input of a source is like: as awake as its partitions.
    pub(super) fn of_source(&self) -> InputTime {
        let state = self.partitions.iter().map(|partition| partition.state).min();
        InputTime { state: state.unwrap_or(InputState::Active), watermark: self.watermark }
    }
}

/// A line for a step that has not come to its end.
pub(super) fn line(step: &StepReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let StepTime { watermark, told, holding_input, held_for, partitions } = &step.time;
    if *watermark == Watermark::END {
        return Ok(());
    }
    write!(f, "{} {}: event time {watermark}", step.kind, step.name)?;
    if told < watermark {
        write!(f, ", told {told} because of rows held")?;
    }
    if let Some(input) = holding_input {
        write!(f, ", held back by {input} for {:.1} s", held_for.as_secs_f64())?;
    }
    let asleep = |state| match step.kind.as_str() {
        "source" => {
            (0..).zip(partitions).filter(|(_, it)| it.state == state).map(|(n, _)| format!("partition {n}")).collect()
        }
        _ => step.inputs.iter().filter(|it| it.time.state == state).map(|it| it.name.clone()).collect::<Vec<_>>(),
    };
    for state in [InputState::Idle, InputState::Stopped, InputState::Finished] {
        let names: Vec<String> = asleep(state);
        if !names.is_empty() {
            write!(f, "; {state}: {}", names.join(", "))?;
        }
    }
    writeln!(f)
}

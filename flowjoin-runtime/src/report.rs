//! The accounting: where every row of every input has gone.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flowjoin_core::account::grouped;
use flowjoin_core::plan::explain::Explain;
use flowjoin_core::plan::{NodeId, Op};
use flowjoin_core::task::{TaskId, TimeRange, times_of};
use flowjoin_core::{Account, InputTime, MatchDelays, OpFigures};

pub use time::StepTime;

use crate::shell::{Figures, Shared};

mod time;
mod unmet;

/// Where all rows of a flow have gone, up to the moment it was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The name of the flow.
    pub flow: String,
    /// How long it has run.
    pub elapsed: Duration,
    /// Its sources, joins and sinks.
    pub steps: Vec<StepReport>,
    /// The longest that one call of a task took: a pause for all that waits behind it.
    pub longest_call: Duration,
    /// Whether the flow was stopped, by [`Running::stop`](crate::Running::stop), Ctrl-C or a bad record, before its sources
    /// had ended.
    pub stopped: bool,
    explain: Explain,
}

/// Where the rows of one step have gone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepReport {
    /// Its name.
    pub name: String,
    /// What it is: `source`, `multi join`, `sink`, …
    pub kind: String,
    /// Its inputs; a source has one, named after itself.
    pub inputs: Vec<InputReport>,
    /// Rows sent on the main output.
    pub emitted: u64,
    /// Bytes of state.
    pub state_bytes: u64,
    /// Of what the records were that it was told to pass over: a few names.
    pub passed_over_of: Vec<String>,
    /// How far event time has come there, and what keeps it.
    pub time: StepTime,
    /// How long its rows waited for each other, of a join whose rows expire or have to be near in time.
    pub delays: Option<MatchDelays>,
    // That nothing met in a join, and why that may be.
    unmet: Option<String>,
}

/// Where the rows of one input have gone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputReport {
    /// What it reads.
    pub name: String,
    /// The buckets: each row is in exactly one.
    pub account: Account,
    /// Rows held.
    pub state_rows: u64,
    /// How far event time has come there, and whether it is waited for.
    pub time: InputTime,
}

impl Report {
    /// The figures of all tasks, added up.
    pub(crate) fn of(shared: &Shared, told: &[Figures], elapsed: Duration) -> Report {
        let plan = &shared.plan;
        let mut sums = vec![OpFigures::default(); plan.nodes().len()];
        for (node, figures) in told.iter().flat_map(|told| &told.rows) {
            sums[node.0].add(figures);
        }
        let mut delays: Vec<Option<MatchDelays>> = vec![None; plan.nodes().len()];
        for (node, figures) in told.iter().flat_map(|told| &told.delays) {
            delays[node.0].get_or_insert_default().add(figures);
        }
        let mut seen: Vec<Option<TimeRange>> = vec![None; plan.nodes().len()];
        for &(node, range) in told.iter().flat_map(|told| &told.seen) {
            seen[node.0].get_or_insert(range).add(range);
        }
        let by_task = told.iter().enumerate();
        let times =
            by_task.flat_map(|(task, told)| told.times.iter().map(move |(node, t)| (TaskId(task), *node, t.clone())));
        let times = times_of(plan.nodes().len(), &shared.readings, times);
        let of_joins = delays.iter().enumerate().filter_map(|(node, delays)| Some((NodeId(node), delays.clone()?)));
        let explain = Explain::of(plan).after_run(of_joins);
        // A table has bad and orphan changes of its own.
        let counted = |op: &Op| op.is_join() || matches!(op, Op::Source | Op::Table { .. } | Op::Sink);
        let figures = sums.into_iter().zip(times).zip(delays);
        let steps = plan.nodes().iter().zip(figures).zip(&explain.steps);
        let steps = steps.filter(|((node, _), _)| counted(&node.op));
        let steps = steps.map(|((node, ((sum, time), delays)), step)| {
            let names: Vec<String> = match step.inputs.is_empty() {
                true => vec![step.name.clone()],
                false => step.inputs.iter().map(|input| input.name.clone()).collect(),
            };
            let at = StepTime::of(&step.kind, &names, time.clone(), shared.clock.now());
            let is_source = step.inputs.is_empty();
            let time_of = |index: usize| match is_source {
                true => at.of_source(),
                false => time.inputs.get(index).copied().unwrap_or_default(),
            };
            let input = |(index, name): (usize, String)| InputReport {
                name,
                account: sum.accounts.get(index).copied().unwrap_or_default(),
                state_rows: sum.state_rows.get(index).copied().unwrap_or_default(),
                time: time_of(index),
            };
            let inputs: Vec<InputReport> = names.into_iter().enumerate().map(input).collect();
            StepReport {
                unmet: unmet::told(plan, node, &inputs, &seen),
                inputs,
                time: at,
                delays,
                name: step.name.clone(),
                kind: step.kind.clone(),
                emitted: sum.emitted,
                state_bytes: sum.state_bytes,
                passed_over_of: sum.passed_over_of.into_iter().collect(),
            }
        });
        let longest_call = Duration::from_nanos(shared.longest_call.load(Ordering::Relaxed));
        let stopped = shared.cut_short.load(Ordering::Relaxed);
        let steps = steps.collect();
        Report { flow: plan.name().to_string(), elapsed, steps, longest_call, stopped, explain }
    }

    /// The step of this name; of a source and a sink of one name, the source.
    pub fn step(&self, name: &str) -> Option<&StepReport> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// The plan in words, with what this run has told of it: how long rows waited for each other, what a shorter time-to-live
    /// would have lost, and how much of the bounds of an interval join was used.
    pub fn explain(&self) -> &Explain {
        &self.explain
    }

    /// Whether every input's buckets add up to its rows.
    pub fn is_balanced(&self) -> bool {
        self.steps.iter().flat_map(|step| &step.inputs).all(|input| input.account.is_balanced())
    }
}

impl StepReport {
    /// What is most likely not as it was meant: a source all of whose records are of something that was not asked for, and
    /// a join that has ended, had rows on its sides, and not one of them met another.
    pub fn warning(&self) -> Option<String> {
        if let Some(unmet) = &self.unmet {
            return Some(format!("{} {}: {unmet}", self.kind, self.name));
        }
        let Account { rows, passed_over, .. } = self.inputs.first()?.account;
        if passed_over == 0 || passed_over < rows {
            return None;
        }
        let of = match self.passed_over_of.is_empty() {
            true => String::new(),
            false => format!(" they are of `{}`;", self.passed_over_of.join("`, `")),
        };
        let (records, kind, name) = (grouped(passed_over), &self.kind, &self.name);
        Some(format!("{kind} {name}: all {records} records were passed over;{of} is what it was asked for misspelt?"))
    }
}

const COLUMNS: [&str; 15] = [
    "step",
    "input",
    "rows in",
    "matched",
    "unmatched",
    "late",
    "expired",
    "null key",
    "bad",
    "passed over",
    "retracted",
    "orphan",
    "open",
    "(never seen)",
    "(no version)",
];

fn cells(step: &StepReport, input: &InputReport) -> [String; 15] {
    let Account { rows, matched, unmatched, late, expired, null_key, bad, retracted, orphan, open, .. } = input.account;
    let Account { passed_over, never_seen, no_version, .. } = input.account;
    let numbers = [
        rows,
        matched,
        unmatched,
        late,
        expired,
        null_key,
        bad,
        passed_over,
        retracted,
        orphan,
        open,
        never_seen,
        no_version,
    ];
    let mut cells: [String; 15] = Default::default();
    cells[0] = format!("{} {}", step.kind, step.name);
    cells[1] = if step.kind == "source" { String::new() } else { input.name.clone() };
    for (cell, number) in cells[2..].iter_mut().zip(numbers) {
        *cell = grouped(number);
    }
    cells
}

// Bytes in the largest unit of which there is one.
fn size(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{:.1} KiB", bytes as f64 / KIB as f64),
        MIB.. => format!("{:.1} MiB", bytes as f64 / MIB as f64),
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl fmt::Display for Report {
    /// A table with a line an input; columns that are zero for all are left out. Those in brackets are parts of the
    /// unmatched.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<[String; 15]> =
            self.steps.iter().flat_map(|step| step.inputs.iter().map(move |input| cells(step, input))).collect();
        let shown: Vec<usize> =
            (0..COLUMNS.len()).filter(|&column| column < 4 || rows.iter().any(|row| row[column] != "0")).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([COLUMNS[column].len()]).max().unwrap_or_default()
        };
        let stopped = if self.stopped { ", stopped before its sources had ended" } else { "" };
        writeln!(f, "accounting of flow {} after {:.2} s{stopped}", self.flow, self.elapsed.as_secs_f64())?;
        let head: [String; 15] = COLUMNS.map(String::from);
        for row in std::iter::once(&head).chain(&rows) {
            let cells = shown.iter().map(|&column| {
                let (cell, width) = (&row[column], width(column));
                if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  "))?;
        }
        for step in self.steps.iter().filter(|step| step.state_bytes > 0) {
            let held: u64 = step.inputs.iter().map(|input| input.state_rows).sum();
            writeln!(
                f,
                "{} {}: {} rows out, {} rows held, {} of state",
                step.kind,
                step.name,
                grouped(step.emitted),
                grouped(held),
                size(step.state_bytes)
            )?;
        }
        self.steps.iter().filter_map(StepReport::warning).try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        for step in &self.steps {
            time::line(step, f)?;
        }
        for step in &self.explain.steps {
            for line in &step.waits {
                writeln!(f, "{} {}: {line}", step.kind, step.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_the_unit_that_fits() {
        let told = [1, 1_023, 1_024, 1_536, (1 << 20) - 1, 1 << 20, 5 << 30].map(size);
        assert_eq!(told, ["1 B", "1023 B", "1.0 KiB", "1.5 KiB", "1024.0 KiB", "1.0 MiB", "5120.0 MiB"]);
    }
}

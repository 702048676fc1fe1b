//! What a flow is, in words: text, JSON and Mermaid, all from one description.

mod text;
mod words;

use serde::Serialize;

use super::{Build, Node, NodeId, Op, Plan};
use crate::delays::MatchDelays;
use crate::watermark::Watermarks;

/// A plan, described. `Display` gives the text; [`json`](Explain::json) and [`mermaid`](Explain::mermaid) the others.
#[derive(Clone, Debug, Serialize)]
pub struct Explain {
    /// The name of the flow.
    pub flow: String,
    /// Its steps; inputs come before what reads them.
    pub steps: Vec<Step>,
    /// How many exchanges there are, at a parallelism above one.
    pub exchanges: usize,
    /// How many stages there are, at a parallelism above one.
    pub stages: usize,
    /// What its author may want to think about.
    pub warnings: Vec<String>,
}

/// One step, described.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Its number.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// What it is: `source`, `multi join`, …
    pub kind: String,
    /// The key of a join or key by, as far as it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Settings, in words.
    pub detail: String,
    /// What works out the results of a regular or N-way join: `product`, or `conditional` where there are conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What the expiry of a row does to what it gave: `unmatches` or `retracts`; without it, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<String>,
    /// What it reads.
    pub inputs: Vec<StepInput>,
    /// What it sends, and where that goes.
    pub outputs: Vec<StepOutput>,
    /// What it keeps.
    pub state: Vec<StepState>,
    /// How watermarks are made, at a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermarks: Option<String>,
    /// After a run, how long its rows waited for each other, what a shorter time-to-live would have lost, and how much of the
    /// bounds of an interval join was used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// The place in the user's code.
    pub declared_at: String,
}

/// An input of a step, described.
#[derive(Clone, Debug, Serialize)]
pub struct StepInput {
    /// The step it comes from.
    pub from: usize,
    /// Its name there: that of the source or join it stems from.
    pub name: String,
    /// Whether it may be missing in the result.
    pub optional: bool,
    /// Whether it is a table that the join holds itself, out of the changes that come in.
    pub table: bool,
    /// The key of which one row stands at most, besides that of the join, as far as it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<String>,
    /// Whether there is a condition between it and the inputs before it.
    #[serde(skip_serializing_if = "is_false")]
    pub condition: bool,
    /// When its gap is told: `at once`, `at the end` or `after 5s`; without it, as is usual for the kind of join: at once
    /// in a regular join, and when it can no longer be filled in an interval join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<String>,
    /// `append-only` or `changelog`.
    pub mode: String,
    /// `exchange by key` or `forward`.
    pub edge: String,
}

/// An output of a step, described.
#[derive(Clone, Debug, Serialize)]
pub struct StepOutput {
    /// `main`, `unmatched orders`, `late orders`.
    pub port: String,
    /// `append-only` or `changelog`.
    pub mode: String,
    /// The steps that read it.
    pub to: Vec<usize>,
}

/// What a step keeps for one input, described.
#[derive(Clone, Debug, Serialize)]
pub struct StepState {
    /// The input.
    pub input: String,
    /// `rows by key`, `rows by key and time`, `one row a key`.
    pub shape: String,
    /// How long.
    pub keeps: String,
}

impl Explain {
    /// Describes a plan.
    pub fn of(plan: &Plan) -> Explain {
        let stages = super::Stages::of(plan, 2).stages.len();
        Explain {
            flow: plan.name().to_string(),
            steps: plan.nodes().iter().map(|node| words::step(plan, node)).collect(),
            exchanges: plan.nodes().iter().filter(|node| matches!(node.op, Op::KeyBy { .. })).count(),
            stages,
            warnings: words::warnings(plan),
        }
    }

    /// Adds what a run of the plan has told of its joins, by [`Task::delays`](crate::task::Task::delays) over all tasks.
    pub fn after_run(mut self, delays: impl IntoIterator<Item = (NodeId, MatchDelays)>) -> Explain {
        for (node, delays) in delays {
            if let Some(step) = self.steps.get_mut(node.0) {
                let names: Vec<String> = step.inputs.iter().map(|input| input.name.clone()).collect();
                step.waits = delays.told(&names);
            }
        }
        self
    }

    /// As JSON, indented.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"))
    }

    /// As a Mermaid flow chart.
    pub fn mermaid(&self) -> String {
        text::mermaid(self)
    }
}

impl std::fmt::Display for Explain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text::tree(self, f)
    }
}

// For serde, which hands over a reference.
fn is_false(flag: &bool) -> bool {
    !*flag
}

fn strategy(node: &Node) -> Option<Watermarks> {
    match &node.build {
        Build::Source(source) => Some(source.strategy()),
        Build::Operator(_) | Build::Sink(_) => None,
    }
}

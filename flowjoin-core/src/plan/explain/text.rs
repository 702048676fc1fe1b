//! Explain as a tree of text, from each sink down to its sources, and as a Mermaid flow chart.

use std::collections::BTreeSet;
use std::fmt::{Formatter, Result, Write};

use super::{Explain, Step, StepState};

/// Writes the tree.
pub fn tree(explain: &Explain, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "flow {}", explain.flow)?;
    let roots: Vec<&Step> = explain.steps.iter().filter(|step| is_root(explain, step)).collect();
    let mut tree = Tree { explain, told: BTreeSet::new(), lines: Vec::new() };
    for (index, root) in roots.iter().enumerate() {
        tree.branch(root, Branch { indent: "", last: index + 1 == roots.len(), mark: "", remark: String::new() });
    }
    let width = |(head, tail): &(String, String)| if tail.is_empty() { 0 } else { head.chars().count() };
    let column = tree.lines.iter().map(width).max().unwrap_or_default();
    for (head, tail) in &tree.lines {
        writeln!(f, "{}", format!("{head:<column$}  {tail}").trim_end())?;
    }
    match explain.exchanges {
        0 => writeln!(f, "stages: {}; nothing is exchanged between tasks", explain.stages)?,
        n => writeln!(
            f,
            "stages: {}, exchanges: {n} (⇄ by the hash of the key; with one task a stage nothing is exchanged)",
            explain.stages
        )?,
    }
    for warning in &explain.warnings {
        writeln!(f, "warning: {warning}")?;
    }
    Ok(())
}

// Sinks that only take a side output are told at their join, unless nothing else leads there.
fn is_root(explain: &Explain, step: &Step) -> bool {
    step.kind == "sink" && step.inputs.first().is_some_and(|input| side_of(explain, input.from, step.id).is_none())
}

// The port by which a step reads another, if it is a side output.
fn side_of(explain: &Explain, from: usize, reader: usize) -> Option<&str> {
    let outputs = explain.steps[from].outputs.iter().skip(1);
    outputs.filter(|output| output.to.contains(&reader)).map(|output| output.port.as_str()).next()
}

struct Tree<'a> {
    explain: &'a Explain,
    told: BTreeSet<usize>,
    // Each with what stands in the column on the right.
    lines: Vec<(String, String)>,
}

// Where a branch hangs, and how it is reached.
struct Branch<'a> {
    indent: &'a str,
    last: bool,
    mark: &'a str,
    remark: String,
}

impl Tree<'_> {
    fn branch(&mut self, step: &Step, Branch { indent, last, mark, remark }: Branch<'_>) {
        // A key by is told as a mark on what it keys.
        if step.kind == "key by" {
            return self.below(step, indent, last, "⇄ ");
        }
        let (knot, bar) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let head = format!("{indent}{knot}{mark}{}{remark}", headline(step));
        if !self.told.insert(step.id) {
            return self.lines.push((format!("{head} (as above)"), String::new()));
        }
        self.lines.push((head, column(step)));
        let indent = format!("{indent}{bar}");
        for note in notes(step) {
            self.lines.push((format!("{indent}│  {note}"), String::new()));
        }
        for (inputs, state) in state_in_groups(&step.state) {
            // A table has one input, and is named after it.
            let whose = if step.kind == "table" { String::new() } else { format!("{inputs}: ") };
            self.lines.push((format!("{indent}│  keeps {whose}{}, {}", state.shape, state.keeps), String::new()));
        }
        for line in &step.waits {
            self.lines.push((format!("{indent}│  in a run: {line}"), String::new()));
        }
        // The versions of a table lead to where it stands in the tree.
        let sides = step.outputs.iter().skip(1).filter(|output| step.kind != "table" && !output.to.is_empty());
        for output in sides {
            let to: Vec<String> = output.to.iter().map(|&id| headline(&self.explain.steps[id])).collect();
            self.lines.push((format!("{indent}│  {} → {}", output.port, to.join(", ")), String::new()));
        }
        self.below(step, &indent, true, "");
    }

    // The inputs of a step; all but the last of several hang on a bar.
    fn below(&mut self, step: &Step, indent: &str, last: bool, mark: &str) {
        for (index, input) in step.inputs.iter().enumerate() {
            let port = side_of(self.explain, input.from, step.id);
            let remark = port.map(|port| format!(", {port}")).unwrap_or_default();
            let last = last && index + 1 == step.inputs.len();
            self.branch(&self.explain.steps[input.from], Branch { indent, last, mark, remark });
        }
    }
}

// Inputs that are kept alike are told together.
fn state_in_groups(states: &[StepState]) -> Vec<(String, &StepState)> {
    let mut groups: Vec<(String, &StepState)> = Vec::new();
    for state in states {
        let alike = |other: &StepState| other.shape == state.shape && other.keeps == state.keeps;
        match groups.iter_mut().find(|(_, other)| alike(other)) {
            Some((inputs, _)) => *inputs += &format!(", {}", state.input),
            None => groups.push((state.input.clone(), state)),
        }
    }
    groups
}

// How a join works out its results, and what its author has asked for besides.
fn notes(step: &Step) -> Vec<String> {
    let mut notes = Vec::new();
    let with = step.inputs.iter().filter(|input| input.condition).map(|input| input.name.as_str());
    let with = with.collect::<Vec<_>>().join(", ");
    let kernel = step.kernel.as_ref().map(|kernel| format!("kernel {kernel}"));
    let with = (!with.is_empty()).then(|| format!("with a condition on {with}"));
    let how: Vec<String> = kernel.into_iter().chain(with).collect();
    if !how.is_empty() {
        notes.push(how.join(", "));
    }
    for input in &step.inputs {
        let unique = input.unique.as_ref().map(|key| format!("unique by {key}"));
        let gaps = input.gaps.as_ref().map(|when| format!("tells gaps {when}"));
        let table = input.table.then(|| "a table, held here".to_string());
        let told: Vec<String> = [table, unique, gaps].into_iter().flatten().collect();
        if !told.is_empty() {
            notes.push(format!("{}: {}", input.name, told.join(", ")));
        }
    }
    notes.extend(step.expiry.as_ref().map(|expiry| format!("expiry {expiry}")));
    notes
}

fn headline(step: &Step) -> String {
    let detail = if step.detail.is_empty() { String::new() } else { format!(", {}", step.detail) };
    match (step.kind.as_str(), &step.on) {
        ("source" | "sink", _) => format!("{} {} ({})", step.kind, step.name, step.detail),
        ("table", Some(key)) => format!("table {} by {key}", step.name),
        (kind, Some(key)) if kind != "key by" => {
            let mark = |optional| if optional { "?" } else { "" };
            let inputs: Vec<String> = step.inputs.iter().map(|i| format!("{}{}", i.name, mark(i.optional))).collect();
            format!("{kind} {} on {key} [{}]{detail}", step.name, inputs.join(", "))
        }
        (kind, Some(key)) => format!("{kind} {key}"),
        (kind, None) => format!("{kind}{detail}"),
    }
}

fn column(step: &Step) -> String {
    match (&step.watermarks, step.kind.as_str()) {
        (Some(watermarks), _) => watermarks.clone(),
        (None, "sink") => step.inputs.iter().map(|input| input.mode.clone()).collect(),
        (None, _) => step.outputs.first().map(|output| output.mode.clone()).unwrap_or_default(),
    }
}

/// Writes the flow chart.
pub fn mermaid(explain: &Explain) -> String {
    let mut out = String::from("flowchart LR\n");
    for step in &explain.steps {
        let label = headline(step).replace('"', "'");
        let (open, close) = match step.kind.as_str() {
            "source" => ("([", "])"),
            "sink" => ("[[", "]]"),
            "key by" => (">", "]"),
            _ if step.on.is_some() => ("{{", "}}"),
            _ => ("[", "]"),
        };
        let _ = writeln!(out, "  n{}{open}\"{label}\"{close}", step.id);
    }
    for step in &explain.steps {
        for (port, output) in step.outputs.iter().enumerate() {
            for to in &output.to {
                let words = if port == 0 { output.mode.clone() } else { format!("{}, {}", output.port, output.mode) };
                let arrow = if step.kind == "key by" { "==>" } else { "-->" };
                let _ = writeln!(out, "  n{} {arrow}|\"{words}\"| n{to}", step.id);
            }
        }
    }
    out
}

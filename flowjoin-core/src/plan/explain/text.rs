//! Explain as a tree of text, from each sink down to its sources, and as a Mermaid flow chart.

use std::collections::BTreeSet;
use std::fmt::{Formatter, Result, Write};

use super::{Explain, Step};

/// Writes the tree.
pub fn tree(explain: &Explain, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "flow {}", explain.flow)?;
    let roots: Vec<&Step> = explain.steps.iter().filter(|step| is_root(explain, step)).collect();
    let mut told = BTreeSet::new();
    for (index, root) in roots.iter().enumerate() {
        branch(explain, root, "", index + 1 == roots.len(), "", &mut told, f)?;
    }
    match explain.exchanges {
        0 => writeln!(f, "stages: {} (nothing is exchanged between tasks)", explain.stages)?,
        n => writeln!(
            f,
            "stages: {}, exchanges: {n} (one a key by; with parallelism 1 nothing is exchanged)",
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

fn branch(
    explain: &Explain,
    step: &Step,
    indent: &str,
    last: bool,
    marks: &str,
    told: &mut BTreeSet<usize>,
    f: &mut Formatter<'_>,
) -> Result {
    // A key by is a property of the edge, told by the join above it.
    if step.kind == "key by" && !step.inputs.is_empty() {
        return branch(explain, &explain.steps[step.inputs[0].from], indent, last, marks, told, f);
    }
    let (knot, bar) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
    let head = format!("{indent}{knot}{}{marks}", headline(step));
    let below = format!("{indent}{bar}");
    if !told.insert(step.id) {
        return writeln!(f, "{head} (as above)");
    }
    line(f, &head, &columns(step))?;
    for state in &step.state {
        writeln!(f, "{below}│  state {}/{}   {}, {}", step.name, state.input, state.shape, state.keeps)?;
    }
    for output in step.outputs.iter().skip(1).filter(|output| !output.to.is_empty()) {
        let to: Vec<String> = output.to.iter().map(|&id| headline(&explain.steps[id])).collect();
        writeln!(f, "{below}│  {} → {}", output.port, to.join(", "))?;
    }
    for (index, input) in step.inputs.iter().enumerate() {
        let side = side_of(explain, input.from, step.id).map(|port| format!(" ({port})")).unwrap_or_default();
        branch(explain, &explain.steps[input.from], &below, index + 1 == step.inputs.len(), &side, told, f)?;
    }
    Ok(())
}

fn headline(step: &Step) -> String {
    match step.kind.as_str() {
        "source" | "sink" => format!("{} {} ({})", step.kind, step.name, step.detail),
        "join" | "multi join" | "interval join" => {
            let mark = |optional| if optional { "?" } else { "" };
            let inputs: Vec<String> = step.inputs.iter().map(|i| format!("{}{}", i.name, mark(i.optional))).collect();
            format!("{} {} {} [{}]", step.kind, step.name, step.detail, inputs.join(", "))
        }
        kind => kind.to_string(),
    }
}

fn columns(step: &Step) -> String {
    match (&step.watermarks, step.kind.as_str()) {
        (Some(watermarks), _) => watermarks.clone(),
        (None, "sink") => step.inputs.iter().map(|input| input.mode.clone()).collect(),
        (None, _) => step.outputs.first().map(|output| output.mode.clone()).unwrap_or_default(),
    }
}

fn line(f: &mut Formatter<'_>, head: &str, tail: &str) -> Result {
    let width = head.chars().count().max(58);
    writeln!(f, "{head:<width$}  {tail}")
}

/// Writes the flow chart.
pub fn mermaid(explain: &Explain) -> String {
    let mut out = String::from("flowchart LR\n");
    for step in &explain.steps {
        let label = headline(step).replace('"', "'");
        let (open, close) = match step.kind.as_str() {
            "source" => ("([", "])"),
            "sink" => ("[[", "]]"),
            "join" | "multi join" | "interval join" => ("{{", "}}"),
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

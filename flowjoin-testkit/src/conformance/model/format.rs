//! Which operators there are, and which options each of them has.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Action, Case};

/// Checks the operator of a case, the names of its options, and that its rows are of its inputs.
///
/// # Errors
/// With what there is not.
pub fn check(case: &Case) -> Result<(), String> {
    let Some((_, options)) = OPERATORS.iter().find(|(operator, _)| *operator == case.operator) else {
        return Err(format!("there is no operator `{}`", case.operator));
    };
    let config = match &case.config {
        Value::Object(config) => config,
        Value::Null => return Ok(()),
        other => return Err(format!("`config` is {other}, and not an object")),
    };
    if let Some(name) = config.keys().find(|name| !options.contains(&name.as_str())) {
        return Err(format!("{} has no option `{name}`; there are {}", case.operator, options.join(", ")));
    }
    match config.get("inputs") {
        None => Ok(()),
        Some(inputs) => check_inputs(case, inputs),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    fields: Vec<String>,
    #[serde(default)]
    key: Vec<String>,
    #[serde(default)]
    unique_key: Option<Vec<String>>,
    #[serde(default, rename = "ttl_ms")]
    _ttl_ms: IgnoredAny,
}

fn check_inputs(case: &Case, inputs: &Value) -> Result<(), String> {
    let inputs: Vec<Input> = serde_json::from_value(inputs.clone()).map_err(|error| format!("`inputs`: {error}"))?;
    let mut names = BTreeSet::new();
    for input in &inputs {
        if !names.insert(&input.name) {
            return Err(format!("two inputs have the name `{}`", input.name));
        }
        let mut used = input.key.iter().chain(input.unique_key.iter().flatten());
        if let Some(name) = used.find(|name| !input.fields.contains(name)) {
            return Err(format!("the input `{}` has no field `{name}`", input.name));
        }
    }
    for (index, step) in case.steps.iter().enumerate() {
        let Some(input) = step.action.input() else { continue };
        let Some(spec) = inputs.get(input) else {
            return Err(format!("step {index}: there is no input {input}"));
        };
        if let Action::Record { row, .. } = &step.action
            && row.len() != spec.fields.len()
        {
            let (name, fields) = (&spec.name, spec.fields.len());
            return Err(format!("step {index}: a row of {} values, where `{name}` has {fields} fields", row.len()));
        }
    }
    Ok(())
}

// Each with its options.
const OPERATORS: &[(&str, &[&str])] = &[
    ("regular_join", &["type", "inputs", "where"]),
    ("multi_join", &["inputs", "joins", "require_common_key"]),
    (
        "interval_join",
        &[
            "type",
            "inputs",
            "where",
            "flavor",
            "lower",
            "upper",
            "lower_inclusive",
            "upper_inclusive",
            "min_cleanup",
            "time",
        ],
    ),
    ("window_join", &["type", "inputs", "where", "flavor", "window", "allowed_lateness"]),
    ("temporal_join_event_time", &["type", "inputs", "where", "idle_retention_ms"]),
    ("temporal_join_processing_time", &["type", "inputs", "where", "idle_retention_ms"]),
    ("snapshot_join", &["type", "inputs", "where", "build_time_field", "load_completed_time", "load_idle_timeout_ms"]),
    (
        "lookup_join",
        &[
            "type",
            "inputs",
            "where",
            "lookup_key",
            "table_unique",
            "pre_filter",
            "cache",
            "retry",
            "materialize",
            "upsert_key",
            "async",
        ],
    ),
    ("delta_join", &["type", "inputs", "where", "cache"]),
    ("broadcast_join", &["type", "inputs", "where", "star"]),
    ("mini_batch_join", &["type", "inputs", "where", "size"]),
    ("upsert_materializer", &["primary_key", "inputs", "upsert_key", "ttl_ms"]),
    ("compacting_materializer", &["primary_key", "inputs", "upsert_key", "ttl_ms", "conflict"]),
    ("watermark_generator", &["max_out_of_orderness", "idle_timeout_ms"]),
    ("watermark_merge", &["channels", "flavor"]),
    ("watermark_alignment", &["max_drift"]),
];

//! Which engine plays which operator.
//!
//! This is the place to plug in: an operator that flowjoin has gets an arm in [`engine_for`], and, where it differs
//! from the letter of the cases by design, one in [`rules_for`].

mod alignment;
mod flow;
mod generator;
mod interval;
mod join;
mod materializer;
mod merge;
mod mini_batch;
mod temporal;
mod window;

pub use alignment::AlignmentEngine;
pub use generator::{GeneratorEngine, GeneratorRules};
pub use merge::MergeEngine;

use flowjoin_core::{EventTime, Watermark};

use super::engine::{Engine, Unbuilt};
use super::interval_rules::IntervalRules;
use super::join_rules::JoinRules;
use super::materializer_rules::MaterializerRules;
use super::model::Case;
use super::rules::{NoRules, Rules};
use super::spec::{IntervalSpec, JoinSpec, MaterializerSpec, Need, TemporalSpec, WindowSpec, check_demands};
use super::temporal_rules::TemporalRules;

/// What the engines of regular and multi joins can do beyond a plain join of append-only inputs.
pub const JOIN_MEETS: &[Need] =
    &[Need::Retractions, Need::Replacements, Need::Filters, Need::Conditions, Need::Existence];

/// What the engine of interval joins can do beyond a plain join of append-only inputs.
pub const INTERVAL_MEETS: &[Need] = &[Need::Filters, Need::Conditions];

/// An engine for a case, run as so many tasks.
///
/// # Errors
/// If nothing here plays the operator or what the case needs of it, or if the operator refuses the configuration.
pub fn engine_for(case: &Case, parallelism: usize) -> Result<Box<dyn Engine>, Unbuilt> {
    match case.operator.as_str() {
        "watermark_merge" => Ok(Box::new(MergeEngine::of(case)?)),
        "watermark_alignment" => Ok(Box::new(AlignmentEngine::of(case)?)),
        "watermark_generator" => Ok(Box::new(GeneratorEngine::of(case)?)),
        "regular_join" | "multi_join" | "mini_batch_join" => {
            let spec = JoinSpec::of(case)?;
            check_demands(&spec.demands, JOIN_MEETS)?;
            join::engine(&spec, parallelism)
        }
        "interval_join" => {
            let spec = IntervalSpec::of(case)?;
            check_demands(&spec.demands, INTERVAL_MEETS)?;
            interval::engine(&spec, parallelism)
        }
        "temporal_join_event_time" | "temporal_join_processing_time" | "snapshot_join" => {
            let spec = TemporalSpec::of(case)?;
            check_demands(&spec.demands, &[])?;
            temporal::engine(&spec, parallelism)
        }
        "window_join" => {
            let spec = WindowSpec::of(case)?;
            check_demands(&spec.demands, &[])?;
            window::engine(&spec, parallelism)
        }
        "upsert_materializer" | "compacting_materializer" => {
            materializer::engine(&MaterializerSpec::of(case)?, parallelism)
        }
        other => Err(Unbuilt::NotApplicable(format!("there is no engine for `{other}`"))),
    }
}

/// The design differences that a case is played under.
///
/// # Errors
/// As [`engine_for`].
pub fn rules_for(case: &Case) -> Result<Box<dyn Rules>, Unbuilt> {
    Ok(match case.operator.as_str() {
        "regular_join" | "multi_join" | "mini_batch_join" => Box::new(JoinRules::new(JoinSpec::of(case)?)),
        "upsert_materializer" | "compacting_materializer" => {
            Box::new(MaterializerRules::new(MaterializerSpec::of(case)?))
        }
        "temporal_join_event_time" | "temporal_join_processing_time" | "snapshot_join" => {
            Box::new(TemporalRules::new(TemporalSpec::of(case)?))
        }
        "interval_join" => Box::new(IntervalRules::new(IntervalSpec::of(case)?)),
        "watermark_generator" => Box::new(GeneratorRules::of(case)?),
        _ => Box::new(NoRules),
    })
}

/// As how many tasks an operator is tried: what comes out must not depend on it.
pub fn parallelisms(case: &Case) -> &'static [usize] {
    match case.operator.as_str() {
        "regular_join"
        | "multi_join"
        | "mini_batch_join"
        | "interval_join"
        | "temporal_join_event_time"
        | "temporal_join_processing_time"
        | "snapshot_join"
        | "window_join"
        | "upsert_materializer"
        | "compacting_materializer" => &[1, 4],
        _ => &[1],
    }
}

/// The frontier of a Flink watermark: rows up to and at `t` have come. The greatest `t` is the end of time.
pub fn frontier(t: i64) -> Watermark {
    Watermark::at(EventTime::from_millis(t.saturating_add(1)))
}

/// The Flink watermark of a frontier.
pub fn flink_number(frontier: Watermark) -> i64 {
    match frontier {
        Watermark::END => i64::MAX,
        _ => frontier.time().as_millis().saturating_sub(1),
    }
}

// An option of a case, if it is there.
fn option<T: serde::de::DeserializeOwned>(case: &Case, name: &str) -> Result<Option<T>, Unbuilt> {
    let value = case.config.get(name).cloned().unwrap_or_default();
    let parsed: Result<Option<T>, _> = serde_json::from_value(value);
    parsed.map_err(|error| Unbuilt::Malformed(format!("the option `{name}`: {error}")))
}

// An option that a case must have.
fn required<T: serde::de::DeserializeOwned>(case: &Case, name: &str) -> Result<T, Unbuilt> {
    option(case, name)?.ok_or_else(|| Unbuilt::Malformed(format!("the case has no option `{name}`")))
}

// A number in a case is not a promise that so much memory is there.
fn check_count(inputs: usize) -> Result<(), Unbuilt> {
    if inputs <= INPUTS_MAX {
        return Ok(());
    }
    Err(Unbuilt::NotApplicable(format!("{inputs} inputs are more than can be played here")))
}

const INPUTS_MAX: usize = 10_000;

#[cfg(test)]
mod tests;

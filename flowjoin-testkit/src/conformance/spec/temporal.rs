//! Temporal and snapshot joins: a probe, and the versions of a table or the rows that stand in it.

use flowjoin_core::{EventTime, Loaded, millis};

use super::join::demands_of_steps;
use super::{Config, Demand, InputSpec, Unbuilt, malformed, not_applicable, roles_of};
use crate::conformance::model::{Action, Case};
use crate::oracle::Role;

/// Probes (input 0) with a table (input 1).
#[derive(Clone, Debug, PartialEq)]
pub struct TemporalSpec {
    /// The probes and the table.
    pub inputs: [InputSpec; 2],
    /// Whether a probe without a row of the table is in the result.
    pub optional: bool,
    /// Which row of the table a probe meets.
    pub as_of: AsOf,
    /// What the case asks for beyond append-only probes.
    pub demands: Vec<Demand>,
}

/// Which row of a table a probe meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AsOf {
    /// The version that held at its time.
    Version,
    /// What stands when it arrives; or when the table has been loaded, if it is to wait for that.
    Arrival(Option<Loaded>),
}

impl TemporalSpec {
    /// The join of a `temporal_join_event_time`, `temporal_join_processing_time` or `snapshot_join` case.
    ///
    /// # Errors
    /// If the configuration cannot be read here.
    pub fn of(case: &Case) -> Result<TemporalSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let join_type: String = config.take("type")?.unwrap_or_default();
        let inputs = config.inputs(2..=2)?;
        let retention: Option<i64> = config.take("idle_retention_ms")?;
        let _build_time: Option<String> = config.take("build_time_field")?;
        let completed: Option<i64> = config.take("load_completed_time")?;
        let quiet: Option<i64> = config.take("load_idle_timeout_ms")?;
        config.finish()?;
        let inputs: [InputSpec; 2] =
            inputs.try_into().map_err(|_| malformed("a temporal join has 2 inputs".to_string()))?;
        if inputs[0].key.is_empty() || inputs[0].key.len() != inputs[1].key.len() {
            return Err(Unbuilt::Refused("a join needs one key that both inputs have".to_string()));
        }
        if retention.is_some() {
            let reason = "versions are kept by event time, and not for so long after their key was last used";
            return Err(not_applicable(reason.to_string()));
        }
        let optional = match roles_of(&join_type)? {
            [Role::Required, Role::Required] => false,
            [Role::Required, Role::Optional] => true,
            _ => return Err(not_applicable(format!("there is no {join_type} join of this kind"))),
        };
        // All rows up to the time of a Flink watermark have come, so the frontier is one beyond.
        let at = |t: i64| Loaded::at(EventTime::from_millis(t.saturating_add(1)));
        let load = match (completed, quiet.map(millis)) {
            (Some(t), Some(span)) => Some(at(t).or_quiet_for(span)),
            (Some(t), None) => Some(at(t)),
            (None, quiet) => quiet.map(Loaded::quiet_for),
        };
        let is_versioned = case.operator == "temporal_join_event_time";
        let as_of = if is_versioned { AsOf::Version } else { AsOf::Arrival(load) };
        Ok(TemporalSpec { demands: demands(case, &inputs), inputs, optional, as_of })
    }
}

// Only the probes have to be facts.
fn demands(case: &Case, inputs: &[InputSpec; 2]) -> Vec<Demand> {
    let is_of_table = |action: &Action| matches!(action, Action::Record { input: 1, .. });
    // Steps keep their numbers.
    let mut probes = case.clone();
    for step in probes.steps.iter_mut().filter(|step| is_of_table(&step.action)) {
        step.action = Action::Flush {};
    }
    let bags = inputs.clone().map(|input| InputSpec { unique_key: None, ..input });
    demands_of_steps(&probes, &bags, "rows that look others up are facts only, by design")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::spec::Need;
    use flowjoin_core::RowKind;
    use serde_json::{Value, json};

    fn spec(operator: &str, more: Value, steps: Value) -> Result<TemporalSpec, Unbuilt> {
        let input = |name| json!({"name": name, "fields": ["k", "v"], "key": ["k"], "unique_key": null});
        let mut config = json!({"type": "left", "inputs": [input("P"), input("V")]});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let case = json!({"id": "x", "operator": operator, "config": config, "steps": steps});
        TemporalSpec::of(&serde_json::from_value(case).unwrap())
    }

    #[test]
    fn the_operator_says_which_row_is_met_and_the_options_when() {
        let as_of = |operator, more| spec(operator, more, json!([])).map(|spec| (spec.optional, spec.as_of));
        assert_eq!(as_of("temporal_join_event_time", json!({})), Ok((true, AsOf::Version)));
        assert_eq!(as_of("temporal_join_processing_time", json!({"type": "inner"})), Ok((false, AsOf::Arrival(None))));
        let loaded = Loaded::at(EventTime::from_millis(101)).or_quiet_for(millis(50));
        let config = json!({"load_completed_time": 100, "load_idle_timeout_ms": 50});
        assert_eq!(as_of("snapshot_join", config), Ok((true, AsOf::Arrival(Some(loaded)))));
        let refused = |more| matches!(as_of("snapshot_join", more), Err(Unbuilt::NotApplicable(_)));
        assert!(refused(json!({"type": "full"})) && refused(json!({"idle_retention_ms": 5})));
    }

    #[test]
    fn only_probes_have_to_be_facts() {
        let step = |input, kind: RowKind| json!({"op": "record", "input": input, "kind": kind, "row": ["k", "v"]});
        let demands = |input| {
            let steps = json!([step(input, RowKind::Insert), step(input, RowKind::Delete)]);
            spec("snapshot_join", json!({}), steps).unwrap().demands
        };
        assert_eq!(demands(1), []);
        assert_eq!((demands(0).len(), demands(0)[0].need), (1, Need::Retractions));
    }
}

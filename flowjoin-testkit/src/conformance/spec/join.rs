//! Regular joins, and what they share with multi joins.

use flowjoin_core::RowKind;

use super::condition::WrittenCondition;
use super::{
    Cell, Condition, Config, Demand, Effect, Holdings, InputSpec, Need, Unbuilt, cells, existence, malformed, roles_of,
};
use crate::conformance::cell::row_text;
use crate::conformance::model::{Action, Case};
use crate::oracle::Role;

/// A join of N inputs over one key, from the left.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinSpec {
    /// The inputs, with keys of one length.
    pub inputs: Vec<InputSpec>,
    /// What each of them is to those before it.
    pub roles: Vec<Role>,
    /// For each input what it and those before it must fulfil beyond the key; nothing for the first.
    pub conditions: Vec<Vec<Condition>>,
    /// How many records make a batch, where they are worked on in batches.
    pub batch: Option<usize>,
    /// What the case asks for beyond a plain join of append-only inputs.
    pub demands: Vec<Demand>,
}

impl JoinSpec {
    /// The join of a `regular_join` or a `mini_batch_join` case.
    ///
    /// # Errors
    /// If the configuration is not one that can be read here; the text is the reason.
    pub fn regular(case: &Case) -> Result<JoinSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let join_type: String = config.take("type")?.unwrap_or_default();
        let inputs = config.inputs(2..=12)?;
        let written: Vec<WrittenCondition> = config.take("where")?.unwrap_or_default();
        let batch = config.take("size")?;
        config.finish()?;
        if inputs.len() != 2 {
            return Err(malformed(format!("a regular join has 2 inputs, not {}", inputs.len())));
        }
        if inputs[0].key.is_empty() || inputs[0].key.len() != inputs[1].key.len() {
            return Err(Unbuilt::Refused("a join needs one key that both inputs have".to_string()));
        }
        let roles = roles_of(&join_type)?;
        let conditions = vec![vec![], Condition::read_all(&written, &inputs)?];
        let mut demands: Vec<Demand> = existence(&roles, &join_type).into_iter().collect();
        demands.extend(demand_of(&conditions.concat(), &roles));
        demands.extend(demands_of_steps(case, &inputs, NOT_PLAYED));
        demands.extend(demand_of_partners(case, &inputs, &roles));
        Ok(JoinSpec { inputs, roles: roles.to_vec(), conditions, batch, demands })
    }

    /// The join of a `regular_join`, a `mini_batch_join` or a `multi_join` case.
    ///
    /// # Errors
    /// As [`regular`](Self::regular) and [`multi`](Self::multi).
    pub fn of(case: &Case) -> Result<JoinSpec, Unbuilt> {
        if case.operator == "multi_join" { JoinSpec::multi(case) } else { JoinSpec::regular(case) }
    }

    /// Which inputs may be missing in the result.
    pub fn optional(&self) -> Vec<bool> {
        self.roles.iter().map(|role| *role == Role::Optional).collect()
    }

    /// The inputs whose rows are in the result.
    pub fn shown(&self) -> impl Iterator<Item = usize> {
        (0..self.inputs.len()).filter(|&input| matches!(self.roles[input], Role::Required | Role::Optional))
    }
}

// Where every input is required, a condition only chooses among the results; else it decides what is padded.
pub(super) fn demand_of(conditions: &[Condition], roles: &[Role]) -> Option<Demand> {
    let (need, reason) = match roles.iter().any(|role| *role != Role::Required) {
        true => (Need::Conditions, "conditions beyond the key of an outer join are not played here yet"),
        false => (Need::Filters, "conditions beyond the key are not played here yet"),
    };
    (!conditions.is_empty()).then(|| Demand { need, reason: reason.to_string() })
}

/// What the rows of a case ask for: retractions, of which it is said why an engine without them plays none, and rows that
/// replace one that is still held.
pub(super) fn demands_of_steps(case: &Case, inputs: &[InputSpec], retractions: &str) -> Vec<Demand> {
    let mut demands = Vec::new();
    let mut held = Holdings::new(inputs);
    for (index, step) in case.steps.iter().enumerate() {
        let (input, kind, row) = match &step.action {
            Action::ProcessingTime { t } => {
                held.clock(*t);
                continue;
            }
            Action::Record { input, kind, row, .. } => (*input, *kind, row),
            _ => continue,
        };
        if kind != RowKind::Insert {
            let reason = format!("step {index} is a {kind}, and {retractions}");
            demands.push(Demand { need: Need::Retractions, reason });
        }
        if let Effect::Replaced(_) = held.apply(input, kind, row) {
            let row = row_text(&cells(row));
            let reason =
                format!("step {index} replaces the row with the unique key of {row}, which is not played here yet");
            demands.push(Demand { need: Need::Replacements, reason });
        }
    }
    demands
}

/// Why an engine may play no retractions of an input that can have them.
pub(super) const NOT_PLAYED: &str = "retracting inputs are not played here yet";

// Flink writes an outer row again whenever its number of partners changes, and its time-to-live begins anew. Whether a
// case can only be passed so: a partner of an outer row comes or goes after the row's own time was over.
fn demand_of_partners(case: &Case, inputs: &[InputSpec], roles: &[Role; 2]) -> Option<Demand> {
    let mut now = 0;
    // For each outer input the rows by key, with the ends of their life by either rule.
    let mut lives: [Vec<(Option<Vec<Cell>>, i64, i64)>; 2] = Default::default();
    for (index, step) in case.steps.iter().enumerate() {
        let (input, kind, row) = match &step.action {
            Action::ProcessingTime { t } => {
                now = *t;
                continue;
            }
            Action::Record { input, kind, row, .. } if *input < 2 => (*input, *kind, row),
            _ => continue,
        };
        let key = inputs[input].key_of(row);
        let other = 1 - input;
        let ttl = |input: usize| inputs[input].ttl.map_or(i64::MAX, |ttl| ttl.as_millis());
        for (partner, own_end, end) in &mut lives[other] {
            if key.is_some() && *partner == key && now < *end {
                if *own_end <= now {
                    let reason = format!(
                        "step {index} finds a row whose time-to-live is over, which Flink began anew when a partner came \
                         or went: by design it counts from the row's own write"
                    );
                    return Some(Demand { need: Need::Refreshes, reason });
                }
                *end = now.saturating_add(ttl(other));
            }
        }
        if roles[other] == Role::Optional && kind == RowKind::Insert {
            let end = now.saturating_add(ttl(input));
            lives[input].push((key, end, end));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowjoin_core::millis;
    use serde_json::{Value, json};

    fn case(join_type: &str, more: Value, steps: Value) -> Case {
        let mut config = json!({"type": join_type, "inputs": [
            {"name": "L", "fields": ["a", "k"], "key": ["k"], "unique_key": null},
            {"name": "R", "fields": ["k", "b"], "key": ["k"], "unique_key": ["k"], "ttl_ms": 10}]});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let case = json!({"id": "x", "operator": "regular_join", "config": config, "steps": steps});
        serde_json::from_value(case).unwrap()
    }

    fn needs(spec: &JoinSpec) -> Vec<Need> {
        spec.demands.iter().map(|demand| demand.need).collect()
    }

    #[test]
    fn types_become_flags_and_names_become_places() {
        use Role::{Exists, NotExists, Optional, Required};
        for (join_type, roles) in [
            ("inner", [Required, Required]),
            ("left", [Required, Optional]),
            ("right", [Optional, Required]),
            ("full", [Optional, Optional]),
        ] {
            let spec = JoinSpec::regular(&case(join_type, json!({}), json!([]))).unwrap();
            assert_eq!((&spec.roles[..], needs(&spec).len()), (&roles[..], 0));
            assert_eq!((&spec.inputs[0].key, &spec.inputs[1].key), (&vec![1], &vec![0]));
            assert_eq!(spec.inputs[1].ttl, Some(millis(10)));
            assert_eq!(spec.inputs[0].key_of(&[json!(7), json!(null)]), None);
            assert_eq!(spec.inputs[0].key_of(&[json!(null), json!(7.0)]), Some(vec![Cell::Whole(7)]));
        }
        for (join_type, role) in [("semi", Exists), ("anti", NotExists)] {
            let spec = JoinSpec::regular(&case(join_type, json!({}), json!([]))).unwrap();
            assert_eq!((spec.roles[1], needs(&spec)), (role, vec![Need::Existence]));
            assert_eq!(spec.shown().collect::<Vec<_>>(), [0]);
        }
    }

    #[test]
    fn what_there_is_not_is_malformed() {
        let reason = |join_type, more| JoinSpec::regular(&case(join_type, more, json!([]))).unwrap_err();
        let text = |unbuilt| match unbuilt {
            Unbuilt::NotApplicable(reason) => format!("n/a: {reason}"),
            Unbuilt::Malformed(reason) => reason,
            Unbuilt::Refused(reason) => format!("refused: {reason}"),
        };
        assert_eq!(text(reason("sideways", json!({}))), "there is no join type `sideways`");
        assert_eq!(text(reason("inner", json!({"mood": 1}))), "there is no option `mood`");
        assert!(text(reason("inner", json!({"inputs": 1}))).starts_with("the option `inputs`: invalid type"));
        let no_key = json!({"inputs": [{"name": "L", "fields": ["a"]}, {"name": "R", "fields": ["a"]}]});
        assert_eq!(text(reason("inner", no_key)), "refused: a join needs one key that both inputs have");
    }

    #[test]
    fn a_row_replaces_another_only_while_that_is_held() {
        let record = |input: usize, kind: &str| json!({"op": "record", "input": input, "kind": kind, "row": [1, 2]});
        let clock = |t: i64| json!({"op": "processing_time", "t": t});
        let needs = |steps| needs(&JoinSpec::regular(&case("inner", json!({}), steps)).unwrap());
        assert_eq!(needs(json!([record(1, "+I"), clock(9), record(1, "+I")])), [Need::Replacements]);
        assert_eq!(needs(json!([record(1, "+I"), clock(10), record(1, "+I")])), []);
        assert_eq!(needs(json!([record(0, "+I"), record(0, "+I")])), []);
        assert_eq!(needs(json!([record(1, "+I"), record(1, "-D"), record(1, "+I")])), [Need::Retractions]);
    }

    #[test]
    fn a_partner_writes_no_row_again() {
        let record = |input: usize, kind: &str| json!({"op": "record", "input": input, "kind": kind, "row": [1, 1]});
        let clock = |t: i64| json!({"op": "processing_time", "t": t});
        let steps = |last: i64| json!([record(1, "+I"), clock(6), record(0, "+I"), clock(last), record(0, "-D")]);
        let needs = |join, last| needs(&JoinSpec::regular(&case(join, json!({}), steps(last))).unwrap());
        assert_eq!(needs("right", 10), [Need::Retractions, Need::Refreshes]);
        assert_eq!(needs("right", 9), [Need::Retractions]);
        assert_eq!(needs("right", 16), [Need::Retractions]);
        assert_eq!(needs("inner", 10), [Need::Retractions]);
    }
}

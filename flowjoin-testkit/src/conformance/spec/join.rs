//! Regular joins, and what they share with multi joins.

use flowjoin_core::RowKind;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Cell, Config, Demand, Effect, Holdings, InputSpec, Need, Unbuilt, cells, existence, not_applicable, optional_of,
};
use crate::conformance::cell::row_text;
use crate::conformance::model::{Action, Case, Step};

/// A join of N inputs over one key.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinSpec {
    /// The inputs, with keys of one length.
    pub inputs: Vec<InputSpec>,
    /// Which of them may be missing in the result.
    pub optional: Vec<bool>,
    /// What the pairs must fulfil beyond the key.
    pub conditions: Vec<Condition>,
    /// What the case asks for beyond a plain join of append-only inputs.
    pub demands: Vec<Demand>,
}

/// `left op right`, true, false, or unknown where an operand is null.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The first operand.
    pub left: Operand,
    /// How they are compared.
    pub comparison: Comparison,
    /// The second operand.
    pub right: Operand,
}

/// One side of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value of a row.
    Field {
        /// Of which input.
        input: usize,
        /// At which place.
        place: usize,
    },
    /// A fixed value.
    Literal(Cell),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Comparison {
    /// `=`
    #[serde(rename = "=", alias = "==")]
    Equal,
    /// `<>`
    #[serde(rename = "<>", alias = "!=")]
    NotEqual,
    /// `<`
    #[serde(rename = "<")]
    Less,
    /// `<=`
    #[serde(rename = "<=")]
    LessOrEqual,
    /// `>`
    #[serde(rename = ">")]
    Greater,
    /// `>=`
    #[serde(rename = ">=")]
    GreaterOrEqual,
}

/// A condition as it is written: `["L.a", ">", "R.b"]`.
pub(super) type WrittenCondition = (Value, Comparison, Value);

impl JoinSpec {
    /// The join of a `regular_join` case.
    ///
    /// # Errors
    /// If the configuration is not one that can be read here; the text is the reason.
    pub fn regular(case: &Case) -> Result<JoinSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let join_type: String = config.take("type")?.unwrap_or_default();
        let inputs = config.inputs()?;
        let written: Vec<WrittenCondition> = config.take("where")?.unwrap_or_default();
        config.finish()?;
        if inputs.len() != 2 {
            return Err(not_applicable(format!("a regular join has 2 inputs, not {}", inputs.len())));
        }
        if inputs[0].key.is_empty() || inputs[0].key.len() != inputs[1].key.len() {
            return Err(Unbuilt::Refused("a join needs one key that both inputs have".to_string()));
        }
        let optional = optional_of(&join_type)?;
        let mut demands: Vec<Demand> = optional.is_none().then(|| existence(&join_type)).into_iter().collect();
        let conditions = Condition::read_all(&written, &inputs);
        let optional = optional.unwrap_or_default();
        demands.extend(demand_of(&conditions, &optional));
        demands.extend(demands_of_steps(case, &inputs));
        demands.extend(demand_of_partners(case, &inputs, &optional));
        Ok(JoinSpec { inputs, optional: optional.to_vec(), conditions, demands })
    }

    /// The join of a `regular_join` or a `multi_join` case.
    ///
    /// # Errors
    /// As [`regular`](Self::regular) and [`multi`](Self::multi).
    pub fn of(case: &Case) -> Result<JoinSpec, Unbuilt> {
        if case.operator == "multi_join" { JoinSpec::multi(case) } else { JoinSpec::regular(case) }
    }
}

impl Condition {
    pub(super) fn read_all(written: &[WrittenCondition], inputs: &[InputSpec]) -> Vec<Condition> {
        let read = |(left, comparison, right): &WrittenCondition| Condition {
            left: Operand::read(left, inputs),
            comparison: *comparison,
            right: Operand::read(right, inputs),
        };
        written.iter().map(read).collect()
    }

    /// Whether the rows (one an input, none where it is missing) fulfil it; none if that is unknown.
    pub fn holds(&self, rows: &[Option<&[Cell]>]) -> Option<bool> {
        let order = self.left.value(rows)?.compare(&self.right.value(rows)?)?;
        Some(match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        })
    }
}

impl Operand {
    // `Input.field` if there are such an input and such a field; everything else is a literal.
    fn read(written: &Value, inputs: &[InputSpec]) -> Operand {
        let field = |text: &str| {
            let (name, field) = text.split_once('.')?;
            let input = inputs.iter().position(|input| input.name == name)?;
            let place = inputs[input].fields.iter().position(|known| known == field)?;
            Some(Operand::Field { input, place })
        };
        written.as_str().and_then(field).unwrap_or_else(|| Operand::Literal(written.into()))
    }

    fn value(&self, rows: &[Option<&[Cell]>]) -> Option<Cell> {
        let cell = match self {
            Operand::Literal(cell) => cell.clone(),
            Operand::Field { input, place } => rows.get(*input).copied().flatten()?.get(*place)?.clone(),
        };
        Some(cell).filter(|cell| !cell.is_null())
    }
}

// Where every input is required, a condition only chooses among the results; else it decides what is padded.
pub(super) fn demand_of(conditions: &[Condition], optional: &[bool]) -> Option<Demand> {
    let (need, reason) = match optional.contains(&true) {
        true => (Need::Conditions, "conditions beyond the key of an outer join are not played here yet"),
        false => (Need::Filters, "conditions beyond the key are not played here yet"),
    };
    (!conditions.is_empty()).then(|| Demand { need, reason: reason.to_string() })
}

/// What the rows of a case ask for: retractions, and rows that replace one that is still held.
pub(super) fn demands_of_steps(case: &Case, inputs: &[InputSpec]) -> Vec<Demand> {
    let mut demands = Vec::new();
    let mut held = Holdings::new(inputs);
    let known = |(index, step): (usize, &Step)| Some((index, step.action().ok()?));
    for (index, action) in case.steps.iter().enumerate().filter_map(known) {
        let (input, kind, row) = match action {
            Action::ProcessingTime(t) => {
                held.clock(t);
                continue;
            }
            Action::Record { input, kind, row, .. } => (input, kind, row),
            _ => continue,
        };
        if kind != RowKind::Insert {
            let reason = format!("step {index} is a {kind}, and retracting inputs are not played here yet");
            demands.push(Demand { need: Need::Retractions, reason });
        }
        if let Effect::Replaced(_) = held.apply(input, kind, &row) {
            let row = row_text(&cells(&row));
            let reason =
                format!("step {index} replaces the row with the unique key of {row}, which is not played here yet");
            demands.push(Demand { need: Need::Replacements, reason });
        }
    }
    demands
}

// Flink writes an outer row again whenever its number of partners changes, and its time-to-live begins anew. Whether a
// case can only be passed so: a partner of an outer row comes or goes after the row's own time was over.
fn demand_of_partners(case: &Case, inputs: &[InputSpec], optional: &[bool; 2]) -> Option<Demand> {
    let mut now = 0;
    // For each outer input the rows by key, with the ends of their life by either rule.
    let mut lives: [Vec<(Option<Vec<Cell>>, i64, i64)>; 2] = Default::default();
    for (index, action) in case.steps.iter().enumerate().filter_map(|(n, step)| Some((n, step.action().ok()?))) {
        let (input, kind, row) = match action {
            Action::ProcessingTime(t) => {
                now = t;
                continue;
            }
            Action::Record { input, kind, row, .. } if input < 2 => (input, kind, row),
            _ => continue,
        };
        let key = inputs[input].key_of(&row);
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
        if optional[other] && kind == RowKind::Insert {
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
    use serde_json::json;

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
        for (join_type, optional) in
            [("inner", [false, false]), ("left", [false, true]), ("right", [true, false]), ("full", [true, true])]
        {
            let spec = JoinSpec::regular(&case(join_type, json!({}), json!([]))).unwrap();
            assert_eq!((&spec.optional[..], needs(&spec).len()), (&optional[..], 0));
            assert_eq!((&spec.inputs[0].key, &spec.inputs[1].key), (&vec![1], &vec![0]));
            assert_eq!(spec.inputs[1].ttl, Some(millis(10)));
            assert_eq!(spec.inputs[0].key_of(&[json!(7), json!(null)]), None);
            assert_eq!(spec.inputs[0].key_of(&[json!(null), json!(7.0)]), Some(vec![Cell::Whole(7)]));
        }
        assert_eq!(needs(&JoinSpec::regular(&case("anti", json!({}), json!([]))).unwrap()), [Need::Existence]);
    }

    #[test]
    fn what_is_not_known_is_not_applicable() {
        let reason = |join_type, more| JoinSpec::regular(&case(join_type, more, json!([]))).unwrap_err();
        let text = |unbuilt| match unbuilt {
            Unbuilt::NotApplicable(reason) => reason,
            Unbuilt::Refused(reason) => format!("refused: {reason}"),
        };
        assert_eq!(text(reason("sideways", json!({}))), "the join type `sideways` is not known here");
        assert_eq!(text(reason("inner", json!({"mood": 1}))), "the option `mood` is not known here");
        assert!(text(reason("inner", json!({"inputs": 1}))).starts_with("the option `inputs`: invalid type"));
        let no_key = json!({"inputs": [{"fields": ["a"]}, {"fields": ["a"]}]});
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

    #[test]
    fn conditions_have_three_values() {
        let more = json!({"where": [["L.a", ">", "R.b"], ["L.a", "<>", 5]]});
        let spec = JoinSpec::regular(&case("left", more, json!([]))).unwrap();
        assert_eq!(needs(&spec), [Need::Conditions]);
        let holds = |condition: usize, a: Value, b: Value| {
            let (left, right) = (cells(&[a, json!(1)]), cells(&[json!(1), b]));
            spec.conditions[condition].holds(&[Some(&left), Some(&right)])
        };
        assert_eq!(holds(0, json!(2), json!(1.5)), Some(true));
        assert_eq!(holds(0, json!(1), json!(1)), Some(false));
        assert_eq!(holds(0, json!(1), json!(null)), None);
        assert_eq!(holds(1, json!(5), json!(0)), Some(false));
        assert_eq!(spec.conditions[0].holds(&[Some(&cells(&[json!(1), json!(1)])), None]), None);
    }
}

//! Multi joins: a left-deep chain of inner and left joins, as one product over a common key.
//!
//! In a chain, an input hangs on those that its `on` names. A join in the middle that is inner makes all that it hangs
//! on required: `A LEFT B INNER C on B.k = C.k` has no row without B. An input that hangs on one that is still optional
//! matches nothing where that one is missing: what it has in common with that stays a condition.

use serde::Deserialize;

use super::condition::WrittenCondition;
use super::join::{NOT_PLAYED, demand_of, demands_of_steps};
use super::{Comparison, Condition, Config, JoinSpec, Operand, Unbuilt, malformed, not_applicable};
use crate::conformance::model::Case;
use crate::oracle::Role;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenJoin {
    #[serde(rename = "type")]
    join_type: String,
    #[serde(default)]
    on: Vec<WrittenCondition>,
}

/// A value of a row: its input, and its place.
type Field = (usize, usize);

impl JoinSpec {
    /// The join of a `multi_join` case.
    ///
    /// # Errors
    /// If the configuration cannot be read here, or is not a product over one common key; the text is the reason.
    pub fn multi(case: &Case) -> Result<JoinSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let mut inputs = config.inputs(2..=12)?;
        let joins: Vec<WrittenJoin> = config.take("joins")?.unwrap_or_default();
        // A join without a common key is refused whether the case requires one or not.
        let _asked: Option<bool> = config.take("require_common_key")?;
        config.finish()?;
        if joins.len() + 1 != inputs.len() {
            return Err(malformed(format!("{} joins cannot chain {} inputs", joins.len(), inputs.len())));
        }
        let mut conditions = vec![Vec::new()];
        for join in &joins {
            conditions.push(Condition::read_all(&join.on, &inputs)?);
        }
        let roles = roles(&joins, &conditions)?;
        let keys = common_keys(&conditions.concat(), inputs.len());
        if keys.is_empty() {
            return Err(Unbuilt::Refused("a multi join needs one key that all inputs have".to_string()));
        }
        for (index, input) in inputs.iter_mut().enumerate() {
            input.key =
                keys.iter().flat_map(|class| class.iter().filter(|field| field.0 == index)).map(|f| f.1).collect();
        }
        let is_key = |condition: &Condition| {
            equality(condition).is_some_and(|(left, _)| keys.iter().any(|class| class.contains(&left)))
        };
        for (input, conditions) in conditions.iter_mut().enumerate() {
            let may_miss = |condition: &Condition| {
                let is_optional = |other| roles[other] == Role::Optional;
                hangs_on(input, std::slice::from_ref(condition)).any(is_optional)
            };
            conditions.retain(|condition| !is_key(condition) || may_miss(condition));
        }
        let mut demands: Vec<_> = demand_of(&conditions.concat(), &roles).into_iter().collect();
        demands.extend(demands_of_steps(case, &inputs, NOT_PLAYED));
        Ok(JoinSpec { inputs, roles, conditions, batch: None, demands })
    }
}

// What each input is to those before it; the module says by which rules.
fn roles(joins: &[WrittenJoin], conditions: &[Vec<Condition>]) -> Result<Vec<Role>, Unbuilt> {
    let mut roles = vec![Role::Required];
    for join in joins {
        roles.push(match join.join_type.as_str() {
            "inner" => Role::Required,
            "left" => Role::Optional,
            "right" | "full" | "semi" | "anti" => {
                return Err(not_applicable(format!("a chain with a {} join is not played here", join.join_type)));
            }
            other => return Err(malformed(format!("there is no join type `{other}`"))),
        });
    }
    // An input comes after all that it hangs on, so one pass from the end reaches everything.
    for input in (1..roles.len()).rev().collect::<Vec<_>>() {
        if roles[input] == Role::Required {
            hangs_on(input, &conditions[input]).for_each(|other| roles[other] = Role::Required);
        }
    }
    Ok(roles)
}

fn hangs_on(input: usize, conditions: &[Condition]) -> impl Iterator<Item = usize> {
    let operands = conditions.iter().flat_map(|condition| [&condition.left, &condition.right]);
    operands.filter_map(move |operand| match operand {
        Operand::Field { input: other, .. } if *other != input => Some(*other),
        Operand::Field { .. } | Operand::Literal(_) => None,
    })
}

fn equality(condition: &Condition) -> Option<(Field, Field)> {
    match (&condition.left, condition.comparison, &condition.right) {
        (Operand::Field { input, place }, Comparison::Equal, Operand::Field { input: other, place: other_place }) => {
            Some(((*input, *place), (*other, *other_place)))
        }
        _ => None,
    }
}

// The classes of equal fields that have exactly one field of every input, in the order of the first input.
fn common_keys(conditions: &[Condition], inputs: usize) -> Vec<Vec<Field>> {
    let mut classes: Vec<Vec<Field>> = Vec::new();
    for (left, right) in conditions.iter().filter_map(equality) {
        let (mut joined, rest): (Vec<_>, Vec<_>) =
            classes.into_iter().partition(|class| class.contains(&left) || class.contains(&right));
        joined.push(vec![left, right]);
        let mut class = joined.concat();
        class.sort();
        class.dedup();
        classes = rest;
        classes.push(class);
    }
    classes.retain(|class| class.iter().map(|field| field.0).eq(0..inputs));
    classes.sort();
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::spec::Need;
    use serde_json::{Value, json};

    // `left A.k=B.k & A.v>B.v; inner A.k=C.k` over inputs A, B, … with the fields k and v.
    fn multi(chain: &str) -> Result<JoinSpec, Unbuilt> {
        let joins: Vec<Value> = chain
            .split(';')
            .map(|join| {
                let (join_type, on) = join.trim().split_once(' ').unwrap();
                let condition = |text: &str| {
                    let at = text.find(['=', '>']).unwrap();
                    json!([text[..at].trim(), &text[at..=at], text[at + 1..].trim()])
                };
                json!({"type": join_type, "on": on.split('&').map(condition).collect::<Vec<_>>()})
            })
            .collect();
        let input = |name: usize| json!({"name": char::from(b'A' + name as u8).to_string(), "fields": ["k", "v"]});
        let inputs: Vec<Value> = (0..=joins.len()).map(input).collect();
        let config = json!({"inputs": inputs, "joins": joins, "require_common_key": true});
        let case = json!({"id": "x", "operator": "multi_join", "config": config, "steps": []});
        JoinSpec::multi(&serde_json::from_value(case).unwrap())
    }

    fn keys_of(spec: &JoinSpec) -> Vec<Vec<usize>> {
        spec.inputs.iter().map(|input| input.key.clone()).collect()
    }

    fn optional(chain: &str) -> Vec<bool> {
        multi(chain).unwrap().optional()
    }

    #[test]
    fn an_inner_join_makes_required_what_it_hangs_on() {
        assert_eq!(optional("left A.k=B.k; inner A.k=C.k"), [false, true, false]);
        assert_eq!(optional("left A.k=B.k; inner B.k=C.k"), [false, false, false]);
        assert_eq!(optional("left A.k=B.k; left A.k=C.k"), [false, true, true]);
        assert_eq!(optional("inner A.k=B.k; left B.k=C.k"), [false, false, true]);
        assert_eq!(optional("left A.k=B.k; left B.k=C.k; inner C.k=D.k"), [false; 4]);
    }

    #[test]
    fn an_input_that_hangs_on_an_optional_one_matches_nothing_without_it() {
        let kept = |chain: &str| -> Vec<usize> { multi(chain).unwrap().conditions.iter().map(Vec::len).collect() };
        assert_eq!(kept("left A.k=B.k; left B.k=C.k"), [0, 0, 1]);
        assert_eq!(kept("left A.k=B.k; left A.k=C.k & B.v>C.v"), [0, 0, 1]);
        assert_eq!(kept("left A.k=B.k; left A.k=C.k"), [0, 0, 0]);
        assert_eq!(kept("left A.k=B.k; inner B.k=C.k"), [0, 0, 0]);
        assert_eq!(multi("left A.k=B.k; left B.k=C.k").unwrap().demands[0].need, Need::Conditions);
    }

    #[test]
    fn the_key_is_what_all_inputs_have_in_common() {
        let spec = multi("inner A.k=B.v; inner B.v=C.k").unwrap();
        assert_eq!(keys_of(&spec), [vec![0], vec![1], vec![0]]);
        let spec = multi("inner A.v=B.v & A.k=B.k; left A.k=C.k & A.v=C.v").unwrap();
        assert_eq!(keys_of(&spec), [vec![0, 1], vec![0, 1], vec![0, 1]]);
        assert!(spec.demands.is_empty());
        let spec = multi("inner A.k=B.k & A.v=B.v; inner B.k=C.k & A.v>C.v").unwrap();
        assert_eq!(keys_of(&spec), [vec![0], vec![0], vec![0]]);
        assert_eq!((spec.conditions.concat().len(), spec.demands[0].need), (2, Need::Filters));
        let refused = multi("left A.k=B.k; inner B.v=C.v").unwrap_err();
        assert!(matches!(refused, Unbuilt::Refused(reason) if reason.contains("one key that all inputs have")));
    }
}

//! Conditions beyond the key, as cases write them: `["L.a", ">", "R.b"]`.

use serde::Deserialize;
use serde_json::Value;

use super::{Cell, InputSpec, Unbuilt, malformed};

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

impl Condition {
    pub(super) fn read_all(written: &[WrittenCondition], inputs: &[InputSpec]) -> Result<Vec<Condition>, Unbuilt> {
        let read = |(left, comparison, right): &WrittenCondition| {
            let (left, right) = (Operand::read(left, inputs)?, Operand::read(right, inputs)?);
            Ok(Condition { left, comparison: *comparison, right })
        };
        written.iter().map(read).collect()
    }

    /// Whether all of them hold: only what is known to be true does.
    pub fn all_hold(conditions: &[Condition], rows: &[Option<&[Cell]>]) -> bool {
        conditions.iter().all(|condition| condition.holds(rows) == Some(true))
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
    // `Input.field` if there is such an input; everything else is a literal.
    fn read(written: &Value, inputs: &[InputSpec]) -> Result<Operand, Unbuilt> {
        let field = |text: &'_ str| {
            let (name, field) = text.split_once('.')?;
            Some((inputs.iter().position(|input| input.name == name)?, field.to_string()))
        };
        let Some((input, field)) = written.as_str().and_then(field) else {
            return Ok(Operand::Literal(written.into()));
        };
        let place = inputs[input].fields.iter().position(|known| *known == field);
        let missing = || malformed(format!("the input `{}` has no field `{field}`", inputs[input].name));
        Ok(Operand::Field { input, place: place.ok_or_else(missing)? })
    }

    fn value(&self, rows: &[Option<&[Cell]>]) -> Option<Cell> {
        let cell = match self {
            Operand::Literal(cell) => cell.clone(),
            Operand::Field { input, place } => rows.get(*input).copied().flatten()?.get(*place)?.clone(),
        };
        Some(cell).filter(|cell| !cell.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::cell::cells;
    use serde_json::json;

    fn read(written: Value) -> Result<Vec<Condition>, Unbuilt> {
        let input = |name: &str, fields: [&str; 2]| InputSpec {
            name: name.to_string(),
            fields: fields.map(String::from).to_vec(),
            key: vec![],
            unique_key: None,
            ttl: None,
        };
        let written: Vec<WrittenCondition> = serde_json::from_value(written).unwrap();
        Condition::read_all(&written, &[input("L", ["a", "k"]), input("R", ["k", "b"])])
    }

    #[test]
    fn conditions_have_three_values() {
        let conditions = read(json!([["L.a", ">", "R.b"], ["L.a", "<>", 5]])).unwrap();
        let holds = |condition: usize, a: Value, b: Value| {
            let (left, right) = (cells(&[a, json!(1)]), cells(&[json!(1), b]));
            conditions[condition].holds(&[Some(&left), Some(&right)])
        };
        assert_eq!(holds(0, json!(2), json!(1.5)), Some(true));
        assert_eq!(holds(0, json!(1), json!(1)), Some(false));
        assert_eq!(holds(0, json!(1), json!(null)), None);
        assert_eq!(holds(1, json!(5), json!(0)), Some(false));
        let left = cells(&[json!(1), json!(1)]);
        assert_eq!(conditions[0].holds(&[Some(&left), None]), None);
        assert!(!Condition::all_hold(&conditions, &[Some(&left), None]) && Condition::all_hold(&[], &[]));
    }

    #[test]
    fn a_field_that_an_input_has_not_is_no_literal() {
        let refused = Unbuilt::Malformed("the input `L` has no field `aa`".to_string());
        assert_eq!(read(json!([["L.aa", "=", 1]])).unwrap_err(), refused);
        let literal = read(json!([["X.a", "=", "L.k"]])).unwrap();
        assert_eq!(literal[0].left, Operand::Literal(Cell::Text("X.a".to_string())));
    }
}

//! Values of rows, made comparable: numbers by what they are worth, objects by their sorted fields.

use std::cmp::Ordering;
use std::fmt;
use std::mem::discriminant;

use flowjoin_core::FloatKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One value of a row; 1 and 1.0 are the same value. The order is for sorting; conditions use [`compare`](Self::compare).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cell {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number, however it was written.
    Whole(i128),
    /// A number with a fraction, or beyond the whole ones.
    Fraction(FloatKey),
    /// A text.
    Text(String),
    /// A list of values.
    List(Vec<Cell>),
    /// An object, its fields sorted by name.
    Object(Vec<(String, Cell)>),
}

/// A row as values that can be compared.
pub type CellRow = Vec<Cell>;

/// The values of a row.
pub fn cells(row: &[Value]) -> CellRow {
    row.iter().map(Cell::from).collect()
}

impl Cell {
    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }

    /// The order of two values as a condition sees it; none if one is null, or they are of different kinds.
    pub fn compare(&self, other: &Cell) -> Option<Ordering> {
        match (self, other) {
            // A fraction is never a whole number of a size that a double holds exactly, so this is no rounding.
            (Cell::Whole(whole), Cell::Fraction(float)) => (*whole as f64).partial_cmp(&float.value()),
            (Cell::Fraction(float), Cell::Whole(whole)) => float.value().partial_cmp(&(*whole as f64)),
            (Cell::Null, _) | (_, Cell::Null) => None,
            _ if discriminant(self) == discriminant(other) => Some(self.cmp(other)),
            _ => None,
        }
    }
}

impl From<&Value> for Cell {
    fn from(value: &Value) -> Cell {
        match value {
            Value::Null => Cell::Null,
            Value::Bool(truth) => Cell::Bool(*truth),
            Value::Number(number) => from_number(number),
            Value::String(text) => Cell::Text(text.clone()),
            Value::Array(values) => Cell::List(cells(values)),
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), value.into())).collect();
                sorted.sort();
                Cell::Object(sorted)
            }
        }
    }
}

fn from_number(number: &serde_json::Number) -> Cell {
    if let Some(whole) = number.as_i128() {
        return Cell::Whole(whole);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    // Doubles of this size are exact, and whole ones beyond it are compared as doubles.
    if float.fract() == 0.0 && float.abs() <= EXACT_MAX {
        Cell::Whole(float as i128)
    } else {
        Cell::Fraction(FloatKey::new(float))
    }
}

const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("null"),
            Cell::Bool(truth) => write!(f, "{truth}"),
            Cell::Whole(whole) => write!(f, "{whole}"),
            Cell::Fraction(float) => write!(f, "{}", float.value()),
            Cell::Text(text) => write!(f, "{text:?}"),
            Cell::List(values) => write_list(f, "[", values, "]"),
            Cell::Object(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                write!(f, "{{{}}}", fields.join(", "))
            }
        }
    }
}

/// Writes a list of things between two brackets.
pub(super) fn write_list<T: fmt::Display>(
    f: &mut dyn fmt::Write,
    open: &str,
    values: &[T],
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    for (place, value) in values.iter().enumerate() {
        write!(f, "{}{value}", if place == 0 { "" } else { ", " })?;
    }
    f.write_str(close)
}

/// A row as text: `[1, "a", null]`.
pub(super) fn row_text(row: &[Cell]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_list(&mut text, "[", row, "]");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(json: &str) -> Cell {
        Cell::from(&serde_json::from_str::<Value>(json).unwrap())
    }

    #[test]
    fn numbers_are_compared_by_what_they_are_worth() {
        assert_eq!(cell("1"), cell("1.0"));
        assert_eq!(cell("-0.0"), cell("0"));
        assert_eq!(cell("1e3"), cell("1000"));
        assert_ne!(cell("1.5"), cell("1"));
        assert_ne!(cell("9223372036854775807"), cell("9223372036854775806"));
        assert_eq!(cell("18446744073709551615"), Cell::Whole(u64::MAX.into()));
        assert_ne!(cell("1"), cell("\"1\""));
        assert_ne!(cell("null"), cell("0"));
    }

    #[test]
    fn values_of_one_kind_have_an_order() {
        use Ordering::{Equal, Greater, Less};
        for (left, right, order) in [
            ("2", "1.5", Some(Greater)),
            ("1.5", "2", Some(Less)),
            ("2", "2.0", Some(Equal)),
            ("\"a\"", "\"b\"", Some(Less)),
            ("null", "1", None),
            ("null", "null", None),
            ("1", "\"1\"", None),
        ] {
            assert_eq!(cell(left).compare(&cell(right)), order, "{left} {right}");
        }
    }

    #[test]
    fn objects_are_compared_without_their_order() {
        assert_eq!(cell(r#"{"a":1,"b":[2]}"#), cell(r#"{"b":[2.0],"a":1}"#));
    }

    #[test]
    fn rows_are_printed_as_they_are_written() {
        assert_eq!(row_text(&[cell("1"), cell("\"a\""), cell("null"), cell("0.5")]), r#"[1, "a", null, 0.5]"#);
    }
}

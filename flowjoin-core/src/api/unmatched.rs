//! Rows that came out on a side output.
//!
//! In JSON the fields of the row stand beside those added here; a row that is not a map, or has such fields of its own,
//! is put under `row`.

use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::account::Reason;
use crate::time::{EventTime, Span};

/// A row that left a join without ever having been in its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmatched<T> {
    /// The row.
    pub row: T,
    /// Why it left.
    pub reason: Reason,
}

/// A row that came behind the watermark, and was not joined.
///
/// In JSON the fields are `watermark`, `late_by_ms`, `input` and `operator`, beside those of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late<T> {
    /// The row.
    pub row: T,
    /// The watermark of the join when it came: the row's time is before it.
    pub watermark: EventTime,
    /// How far behind the watermark its time is: by so much more disorder (`out_of_order`), and it would not have been
    /// late.
    pub late_by: Span,
    /// The input of the join that it came on, as explain and the accounting name it.
    pub input: Arc<str>,
    /// The name of the join.
    pub operator: Arc<str>,
}

// What is told beside a row.
#[derive(Serialize, Deserialize)]
struct Left {
    reason: Reason,
}

#[derive(Serialize, Deserialize)]
struct Missed<S> {
    watermark: EventTime,
    late_by_ms: Span,
    input: S,
    operator: S,
}

#[derive(Serialize)]
struct Under<'a, T, W> {
    row: &'a T,
    #[serde(flatten)]
    why: &'a W,
}

fn beside<T: Serialize, W: Serialize, S: Serializer>(serializer: S, row: &T, why: &W) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return (row, why).serialize(serializer);
    }
    if let (Ok(Value::Object(mut map)), Ok(Value::Object(fields))) =
        (serde_json::to_value(row), serde_json::to_value(why))
        && fields.keys().all(|field| !map.contains_key(field))
    {
        map.extend(fields);
        return map.serialize(serializer);
    }
    Under { row, why }.serialize(serializer)
}

fn apart<'de, T, W, D>(deserializer: D, fields: &[&'static str]) -> Result<(T, W), D::Error>
where
    T: DeserializeOwned,
    W: DeserializeOwned,
    D: Deserializer<'de>,
{
    if !deserializer.is_human_readable() {
        return <(T, W)>::deserialize(deserializer);
    }
    let mut map = Map::deserialize(deserializer)?;
    let mut why = Map::new();
    for &field in fields {
        let value = map.shift_remove(field).ok_or_else(|| D::Error::missing_field(field))?;
        why.insert(field.to_string(), value);
    }
    let why = serde_json::from_value(Value::Object(why)).map_err(D::Error::custom)?;
    let nested = (map.len() == 1).then(|| map.get("row").cloned()).flatten();
    let row = match serde_json::from_value(Value::Object(map)) {
        Ok(row) => row,
        Err(error) => match nested.map(serde_json::from_value) {
            Some(Ok(row)) => row,
            _ => return Err(D::Error::custom(error)),
        },
    };
    Ok((row, why))
}

impl<T: Serialize> Serialize for Unmatched<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        beside(serializer, &self.row, &Left { reason: self.reason })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Unmatched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (row, Left { reason }) = apart(deserializer, &["reason"])?;
        Ok(Unmatched { row, reason })
    }
}

impl<T: Serialize> Serialize for Late<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Late { row, watermark, late_by, input, operator } = self;
        let missed = Missed { watermark: *watermark, late_by_ms: *late_by, input: &input[..], operator: &operator[..] };
        beside(serializer, row, &missed)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Late<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (row, missed) = apart(deserializer, &["watermark", "late_by_ms", "input", "operator"])?;
        let Missed::<String> { watermark, late_by_ms, input, operator } = missed;
        Ok(Late { row, watermark, late_by: late_by_ms, input: input.into(), operator: operator.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::millis;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Order {
        id: u64,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Refund {
        reason: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Click {
        input: String,
    }

    fn late<T>(row: T) -> Late<T> {
        let watermark = EventTime::from_millis(5);
        Late { row, watermark, late_by: millis(3), input: "orders".into(), operator: "paid".into() }
    }

    fn comes_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T, json: &str) {
        assert_eq!(serde_json::to_string(&value).unwrap(), json);
        assert_eq!(serde_json::from_str::<T>(json).unwrap(), value);
        let config = bincode::config::standard();
        let bytes = bincode::serde::encode_to_vec(&value, config).unwrap();
        assert_eq!(bincode::serde::decode_from_slice::<T, _>(&bytes, config).unwrap().0, value);
    }

    #[test]
    fn the_fields_of_the_row_stand_beside_the_reason() {
        comes_back(
            Unmatched { row: Order { id: u64::MAX }, reason: Reason::Expired },
            r#"{"id":18446744073709551615,"reason":"expired"}"#,
        );
        comes_back(
            late(Order { id: 1 }),
            r#"{"id":1,"watermark":"1970-01-01T00:00:00.005Z","late_by_ms":3,"input":"orders","operator":"paid"}"#,
        );
    }

    #[test]
    fn a_row_that_is_no_map_or_has_such_a_field_is_put_under_row() {
        comes_back(Unmatched { row: (1, 2), reason: Reason::NullKey }, r#"{"row":[1,2],"reason":"null_key"}"#);
        let refund = Refund { reason: "broken".to_string() };
        comes_back(
            Unmatched { row: refund, reason: Reason::Expired },
            r#"{"row":{"reason":"broken"},"reason":"expired"}"#,
        );
        let click = Click { input: "mouse".to_string() };
        comes_back(
            late(click),
            r#"{"row":{"input":"mouse"},"watermark":"1970-01-01T00:00:00.005Z","late_by_ms":3,"input":"orders","operator":"paid"}"#,
        );
    }
}

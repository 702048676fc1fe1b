//! Rows that came out on a side output.
//!
//! In JSON the fields of the row stand beside those added here; a row that is not a map, or has such fields of its own,
//! is put under `row`.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::account::Reason;
use crate::time::EventTime;

/// A row that left a join without ever having been in its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmatched<T> {
    /// The row.
    pub row: T,
    /// Why it left.
    pub reason: Reason,
}

/// A row that came behind the watermark, and was not joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late<T> {
    /// The row.
    pub row: T,
    /// The watermark of the join when it came: the row's time is before it.
    pub watermark: EventTime,
}

fn beside<T: Serialize, S: Serializer>(
    serializer: S,
    name: &'static str,
    row: &T,
    (field, value): (&'static str, impl Serialize),
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable()
        && let (Ok(Value::Object(mut map)), Ok(value)) = (serde_json::to_value(row), serde_json::to_value(&value))
        && !map.contains_key(field)
    {
        map.insert(field.to_string(), value);
        return map.serialize(serializer);
    }
    let mut out = serializer.serialize_struct(name, 2)?;
    out.serialize_field("row", row)?;
    out.serialize_field(field, &value)?;
    out.end()
}

#[derive(Deserialize)]
struct Nested<T, V> {
    row: T,
    #[serde(alias = "reason", alias = "watermark")]
    value: V,
}

fn apart<'de, T, V, D>(deserializer: D, field: &'static str) -> Result<(T, V), D::Error>
where
    T: DeserializeOwned,
    V: DeserializeOwned,
    D: Deserializer<'de>,
{
    if !deserializer.is_human_readable() {
        let Nested { row, value } = Nested::deserialize(deserializer)?;
        return Ok((row, value));
    }
    let mut map = serde_json::Map::deserialize(deserializer)?;
    let value = map.remove(field).ok_or_else(|| D::Error::missing_field(field))?;
    let value = serde_json::from_value(value).map_err(D::Error::custom)?;
    let nested = (map.len() == 1).then(|| map.get("row").cloned()).flatten();
    let row = match serde_json::from_value(Value::Object(map)) {
        Ok(row) => row,
        Err(error) => match nested.map(serde_json::from_value) {
            Some(Ok(row)) => row,
            _ => return Err(D::Error::custom(error)),
        },
    };
    Ok((row, value))
}

impl<T: Serialize> Serialize for Unmatched<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        beside(serializer, "Unmatched", &self.row, ("reason", self.reason))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Unmatched<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (row, reason) = apart(deserializer, "reason")?;
        Ok(Unmatched { row, reason })
    }
}

impl<T: Serialize> Serialize for Late<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        beside(serializer, "Late", &self.row, ("watermark", self.watermark))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Late<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (row, watermark) = apart(deserializer, "watermark")?;
        Ok(Late { row, watermark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Order {
        id: u64,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Refund {
        reason: String,
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
        let late = Late { row: Order { id: 1 }, watermark: EventTime::from_millis(5) };
        comes_back(late, r#"{"id":1,"watermark":"1970-01-01T00:00:00.005Z"}"#);
    }

    #[test]
    fn a_row_that_is_no_map_or_has_such_a_field_is_put_under_row() {
        comes_back(Unmatched { row: (1, 2), reason: Reason::NullKey }, r#"{"row":[1,2],"reason":"null_key"}"#);
        let refund = Refund { reason: "broken".to_string() };
        comes_back(
            Unmatched { row: refund, reason: Reason::Expired },
            r#"{"row":{"reason":"broken"},"reason":"expired"}"#,
        );
    }
}

//! Which fields a row has in JSON, found out from its type alone.
//!
//! A derived `Deserialize` of a struct hands its names to the deserializer before anything is read. One with a
//! flattened field, or written by hand, may not; then nothing is known.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The names that a row is read by, aliases too, or nothing if its type does not tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFields(Option<&'static [&'static str]>);

/// Whether a row has a field of some name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    Yes,
    No,
    Unknown,
}

impl RowFields {
    pub(crate) fn of<T: DeserializeOwned>() -> RowFields {
        let mut found = None;
        // It cannot succeed: the probe has nothing to read from.
        let _ = T::deserialize(Probe(&mut found));
        RowFields(found)
    }

    pub(crate) fn has(self, name: &str) -> Has {
        match self.0 {
            Some(names) if names.contains(&name) => Has::Yes,
            Some(_) => Has::No,
            None => Has::Unknown,
        }
    }

    /// Whether the row certainly has no such field.
    pub(crate) fn lacks(self, name: &str) -> bool {
        self.has(name) == Has::No
    }
}

struct Probe<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Some(fields);
        Err(Error::custom("only the names were asked for"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[test]
    fn the_names_are_those_of_the_json() {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[allow(dead_code)]
        struct Order {
            order_id: u64,
            #[serde(alias = "sum")]
            amount: i64,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Wrapped(Order);
        for fields in [RowFields::of::<Order>(), RowFields::of::<Wrapped>()] {
            assert_eq!(["orderId", "amount", "sum"].map(|name| fields.has(name)), [Has::Yes; 3]);
            assert!(fields.lacks("order_id"));
        }
    }

    #[test]
    fn of_what_is_no_plain_struct_nothing_is_known() {
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Open {
            id: u64,
            #[serde(flatten)]
            more: BTreeMap<String, u64>,
        }
        assert_eq!(RowFields::of::<Open>().has("id"), Has::Unknown);
        assert_eq!(RowFields::of::<u64>().has("id"), Has::Unknown);
        assert!(!RowFields::of::<Vec<u64>>().lacks("id"));
    }
}

//! Which fields a row has in JSON, found out from its type alone.

use flowjoin_core::names::field_names;
use serde::de::DeserializeOwned;

use crate::file::json_place;

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
        RowFields(field_names::<T>())
    }

    pub(crate) fn has(self, name: &str) -> Has {
        match self.0 {
            Some(names) if names.contains(&name) => Has::Yes,
            Some(_) => Has::No,
            None => Has::Unknown,
        }
    }

    /// Reads a row. Of a row with named fields, a derived `Deserialize` would take a list as well, by the order of its
    /// fields; nobody means that.
    pub(crate) fn read_row<T: DeserializeOwned>(self, text: &str) -> Result<T, String> {
        match self.0 {
            Some(names) if text.trim_start().starts_with('[') => {
                Err(format!("this is a list, and a row is an object with the fields `{}`", names.join("`, `")))
            }
            Some(_) | None => json_place::read(text),
        }
    }

    /// Whether the row certainly has no such field.
    pub(crate) fn lacks(self, name: &str) -> bool {
        self.has(name) == Has::No
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

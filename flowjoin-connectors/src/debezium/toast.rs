//! Columns that an event does not tell, since they are large and have not changed (TOAST in PostgreSQL).
//!
//! In their place stands a placeholder, in a form that fits the type of the column. The row of now is then the one
//! before with the other columns changed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flowjoin_core::Keyed;
use flowjoin_core::io::Patch;
use serde_json::{Value, json};

use crate::file::json_place;
use crate::json::{Object, write_object};

/// What stands in the place of a column that was not sent.
#[derive(Clone, Debug)]
pub(super) struct Placeholder {
    /// Texts of JSON that are strings.
    strings: Vec<String>,
    /// Arrays and objects.
    compounds: Vec<Value>,
}

impl Placeholder {
    pub(super) fn new(word: &str) -> Placeholder {
        let base64 = STANDARD.encode(word);
        // A map of text comes as JSON within a string, or as an object.
        let map = json!({ word: word });
        let strings = [json!(word), json!(base64), json!(map.to_string())].map(|value| value.to_string());
        let numbers: Vec<i8> = word.bytes().map(|byte| byte as i8).collect();
        let mut compounds = vec![json!([word]), json!([base64]), json!(numbers), map];
        if word == DEFAULT {
            compounds.push(json!([DEFAULT_UUID]));
        }
        Placeholder { strings: strings.into(), compounds }
    }

    /// Whether the text of a column is the placeholder.
    pub(super) fn is(&self, text: &str) -> bool {
        match text.as_bytes().first() {
            Some(b'"') => self.strings.iter().any(|string| string == text),
            // Longer than any of them with some room to spare, so most arrays are not read twice.
            Some(b'[' | b'{') if text.len() <= 16 * self.strings[0].len() => {
                serde_json::from_str(text).is_ok_and(|value: Value| self.compounds.contains(&value))
            }
            _ => false,
        }
    }
}

impl Default for Placeholder {
    fn default() -> Placeholder {
        Placeholder::new(DEFAULT)
    }
}

/// A row of which all but some columns are known, each with its text.
pub(super) struct Partial {
    /// Of what, for errors.
    pub(super) table: String,
    pub(super) known: Vec<(String, String)>,
    pub(super) missing: Vec<String>,
}

impl Partial {
    /// Takes what is missing from the row before.
    pub(super) fn patch<T: Keyed>(self) -> Patch<T> {
        Patch::new(move |before: Option<&T>| {
            let before = before.ok_or_else(|| self.without_row_before())?;
            self.merge(before).map_err(|reason| format!("{}{reason}", self.table))
        })
    }

    fn merge<T: Keyed>(&self, before: &T) -> Result<T, String> {
        let text = serde_json::to_string(before).map_err(|error| format!("the row before is no JSON: {error}"))?;
        let before: Object<'_> = json_place::read(&text)?;
        let known = self.known.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        // A field that the row does not write is one that it reads from nothing.
        let kept = self.missing.iter().filter_map(|name| Some((name.as_str(), before.get(name)?)));
        json_place::read(&write_object(known.chain(kept)))
    }

    fn without_row_before(&self) -> String {
        let missing: Vec<String> = self.missing.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "{}what has not changed was not sent ({}), and there is no row before to take it from; set REPLICA IDENTITY \
             FULL on the table, or begin with an initial snapshot",
            self.table,
            missing.join(", ")
        )
    }
}

const DEFAULT: &str = "__debezium_unavailable_value";
/// The UUID made of the default word: version 3, of its bytes without a name space.
const DEFAULT_UUID: &str = "b68a35a7-17ad-35b3-af2a-ae46edb4545a";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_known_in_all_its_forms() {
        let placeholder = Placeholder::default();
        let numbers = DEFAULT.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
        for text in [
            "\"__debezium_unavailable_value\"",
            "\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"",
            "[\"__debezium_unavailable_value\"]",
            "[ \"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\" ]",
            &format!("[{numbers}]"),
            "{\"__debezium_unavailable_value\":\"__debezium_unavailable_value\"}",
            "\"{\\\"__debezium_unavailable_value\\\":\\\"__debezium_unavailable_value\\\"}\"",
        ] {
            assert!(placeholder.is(text), "{text}");
            assert!(!Placeholder::new("gone").is(text), "{text}");
        }
        for text in ["null", "5", "\"\"", "[]", "{}", "[\"__debezium_unavailable_value\",\"a\"]", "\"_\""] {
            assert!(!placeholder.is(text), "{text}");
        }
        assert!(Placeholder::new("gone").is("\"Z29uZQ==\"") && Placeholder::new("gone").is("[103,111,110,101]"));
    }
}

//! A JSON object as the texts of its fields, in order.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, each with its text. No name comes twice.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// How many fields it has.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The text of a field; `null` is a text like any other.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.get())
    }

    /// The text of a field that is there and not null.
    pub(crate) fn given(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(given)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), value.get()))
    }
}

/// A text of JSON, unless it is null.
pub(crate) fn given(text: &str) -> Option<&str> {
    (text != "null").then_some(text)
}

/// As much of a text as a reason has room for.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}..", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Puts an object together out of the texts of its fields.
pub(crate) fn write_object<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::from("{");
    for (name, value) in fields {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A name as it stands in the text, or a copy where it is written with escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        let mut names: Vec<&str> = fields.iter().map(|(name, _): &(Cow<'de, str>, _)| name.as_ref()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(A::Error::custom(format!("duplicate field `{}`", pair[0]))),
            None => Ok(Object { fields }),
        }
    }
}

const SHOWN_CHARS: usize = 64;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_as_they_came() {
        let text = r#"{"a": 18446744073709551616, "\u0062" : [1, {"c":1.50}],"d":null}"#;
        let object: Object<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(object.get("a"), Some("18446744073709551616"));
        assert_eq!(object.get("b"), Some("[1, {\"c\":1.50}]"));
        assert_eq!((object.get("d"), object.given("d"), object.len()), (Some("null"), None, 3));
        let again = write_object(object.iter());
        assert_eq!(again, r#"{"a":18446744073709551616,"b":[1, {"c":1.50}],"d":null}"#);
        assert_eq!(write_object([("a\"b", "1")]), r#"{"a\"b":1}"#);
    }

    #[test]
    fn a_long_text_is_shown_by_its_beginning() {
        assert_eq!(shown("short"), "short");
        assert_eq!(shown(&"é".repeat(1_000)), format!("{}..", "é".repeat(64)));
    }

    #[test]
    fn a_name_that_comes_twice_is_refused() {
        let error = serde_json::from_str::<Object<'_>>(r#"{"a":1,"b":2,"a":3}"#).unwrap_err();
        assert!(error.to_string().contains("duplicate field `a`"), "{error}");
    }
}

//! Keys out of JSON: of the fields that `Keyed::key_name` names, in that order.
//!
//! A key of one field is that field of an object, or a bare value. A key of several is those fields of an object, or
//! an array of them.

use std::borrow::Cow;

use flowjoin_core::{IoError, Keyed};
use serde::de::DeserializeOwned;

use super::{Object, shown};
use crate::file::json_place;

/// The names in JSON of the fields of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyFields {
    names: Vec<String>,
    /// Whether the key is a tuple; one of a single value is not.
    is_tuple: bool,
}

impl KeyFields {
    /// The fields that the row names, or those that the user gave in their place.
    ///
    /// # Errors
    /// If the user gave another number of names than the key has fields.
    pub(crate) fn of<T: Keyed>(in_place: Option<&[String]>) -> Result<KeyFields, IoError> {
        let name = T::key_name();
        let inner = name.strip_prefix('(').and_then(|name| name.strip_suffix(')'));
        let named: Vec<String> = match inner {
            Some(inner) => inner.split(',').map(|name| name.trim().to_string()).collect(),
            None => vec![name.to_string()],
        };
        let Some(names) = in_place else { return Ok(KeyFields { names: named, is_tuple: inner.is_some() }) };
        // A row whose `Keyed` is written by hand may not say that its key has several fields.
        let is_tuple = inner.is_some() || names.len() > 1;
        if names.is_empty() || inner.is_some() && names.len() != named.len() {
            let what = format!("`.key_fields` names {} fields, and the key is `{name}`; name as many", names.len());
            return Err(IoError::new(what));
        }
        Ok(KeyFields { names: names.to_vec(), is_tuple })
    }

    /// Whether a field is one of the key.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// Reads a key that stands for itself: an object with its fields, an array of them, or a bare value.
    pub(crate) fn read<K: DeserializeOwned>(&self, key: &str) -> Result<K, String> {
        match key.as_bytes().first() {
            Some(b'{') => {
                let object: Object<'_> = json_place::read(key)?;
                let found = self.pick(|name| Ok(object.get(name).map(Cow::Borrowed)));
                // A key can be a struct of the user's: then the object is all of it.
                found.or_else(|reason| serde_json::from_str(key).map_err(|_| reason))
            }
            // The key itself may be a list; if not, it is the only field of one.
            Some(b'[') if !self.is_tuple => json_place::read(key).or_else(|reason| {
                let only: Result<(K,), _> = serde_json::from_str(key);
                only.map(|(key,)| key).map_err(|_| format!("the key {}: {reason}", shown(key)))
            }),
            Some(b'[') | None => json_place::read(key),
            Some(_) if self.is_tuple => {
                Err(format!("the key {} is one value, and has to have {}", shown(key), self.in_words()))
            }
            Some(_) => json_place::read(key).map_err(|reason| format!("the key {}: {reason}", shown(key))),
        }
    }

    /// Reads the key out of fields, each asked for by its name.
    pub(crate) fn pick<'t, K: DeserializeOwned>(
        &self,
        find: impl Fn(&str) -> Result<Option<Cow<'t, str>>, String>,
    ) -> Result<K, String> {
        let field = |name: &String| {
            find(name)?.ok_or_else(|| {
                let remedy = "`.key_fields` says what its fields are called in JSON";
                format!("there is no field `{name}`, and the key is {}; {remedy}", self.in_words())
            })
        };
        if let ([name], false) = (self.names.as_slice(), self.is_tuple) {
            return json_place::read(&field(name)?).map_err(|reason| format!("the key `{name}`: {reason}"));
        }
        let fields = self.names.iter().map(field).collect::<Result<Vec<_>, String>>()?;
        json_place::read(&format!("[{}]", fields.join(",")))
            .map_err(|reason| format!("the key of {}: {reason}", self.in_words()))
    }

    fn in_words(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }
}

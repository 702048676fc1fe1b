//! What a line of JSON tells of a table: a row, a change that says what it does, or a key with a value.
//!
//! The three look alike when a row has fields of the names that the forms use. So it is not guessed: the names that
//! the row type is read by decide, and where they leave two readings the line is bad and says which setting it needs.

use std::borrow::Cow;
use std::marker::PhantomData;

use flowjoin_core::Key;
use flowjoin_core::Keyed;
use flowjoin_core::io::TableChange;
use serde::de::DeserializeOwned;

use super::changes::{ReadChange, Told};
use super::json::{may_have, of_another_kind};
use super::json_place;
use crate::json::{Has, KeyFields, Object, RowFields, given, shown, write_object};

/// Which form lines have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each line tells by its names.
    #[default]
    Told,
    Plain,
    Changes,
    KeyValue,
}

/// Reads lines of rows `T`.
pub(crate) struct JsonChange<T> {
    form: Form,
    fields: RowFields,
    key: KeyFields,
    row: PhantomData<fn() -> T>,
}

/// How one line is to be read.
enum Shape<'a> {
    Row,
    Change(Object<'a>),
    KeyValue(Object<'a>),
}

impl<T: Keyed> ReadChange<T> for JsonChange<T>
where
    T::Key: DeserializeOwned,
{
    fn read(&mut self, line: &str) -> Result<Told<T>, String> {
        // A row that can be read is one, whatever its fields are called.
        let change = self.shape(line).and_then(|shape| match shape {
            Shape::Row => self.fields.read_row(line).map(TableChange::Put),
            Shape::Change(object) => self.change(&object),
            Shape::KeyValue(object) => self.key_value(&object),
        });
        change.map(Told::Change).map_err(|reason| match of_another_kind(line.as_bytes()) {
            // It is opened as a table already.
            hint if hint.contains("JsonLines::table") => reason,
            hint => reason + hint,
        })
    }
}

impl<T: Keyed> JsonChange<T>
where
    T::Key: DeserializeOwned,
{
    pub(crate) fn new(form: Form, key: KeyFields) -> JsonChange<T> {
        JsonChange { form, fields: RowFields::of::<T>(), key, row: PhantomData }
    }

    fn shape<'a>(&self, line: &'a str) -> Result<Shape<'a>, String> {
        match self.form {
            Form::Plain => Ok(Shape::Row),
            Form::Changes => json_place::read(line).map(Shape::Change),
            Form::KeyValue => json_place::read(line).map(Shape::KeyValue),
            // Most lines of most files are told to be rows by this look at the text.
            Form::Told if !may_have(line, "\"op\"") && !may_have(line, "\"value\"") => Ok(Shape::Row),
            Form::Told => match line.trim_start().starts_with('{') {
                true => self.told(json_place::read(line)?),
                false => Ok(Shape::Row),
            },
        }
    }

    fn told<'a>(&self, object: Object<'a>) -> Result<Shape<'a>, String> {
        if let Some(op) = object.get("op") {
            let is_op = adds(op).is_some();
            return match self.fields.has("op") {
                Has::No if is_op => Ok(Shape::Change(object)),
                Has::No => Err(format!("{}; {OWN_OP}", unknown(op))),
                // As our own sinks write a row that has a field `op`.
                Has::Yes if is_op && is_whole(&object) && self.fields.lacks("row") => Ok(Shape::Change(object)),
                Has::Unknown if is_op => Err(UNCLEAR_OP.to_string()),
                Has::Yes if is_op && is_whole(&object) => Err(UNCLEAR_OP.to_string()),
                Has::Yes | Has::Unknown => Ok(Shape::Row),
            };
        }
        if object.len() == 2 && object.has("key") && object.has("value") {
            return match self.fields.lacks("key") && self.fields.lacks("value") {
                true => Ok(Shape::KeyValue(object)),
                false => Err(UNCLEAR_VALUE.to_string()),
            };
        }
        Ok(Shape::Row)
    }

    fn change(&self, object: &Object<'_>) -> Result<TableChange<T>, String> {
        let Some(op) = object.get("op") else {
            return Err("there is no `op`: a change says +I, +U, -U or -D".to_string());
        };
        let adds = adds(op).ok_or_else(|| unknown(op))?;
        // A row of the one field `row` is written with its fields, as it has no `op`.
        let has_row = self.fields.has("row") == Has::Yes && self.fields.lacks("op");
        let row = match object.get("row") {
            Some(row) if is_whole(object) && !has_row => Cow::Borrowed(row),
            _ => Cow::Owned(write_object(object.iter().filter(|(name, _)| *name != "op"))),
        };
        match (adds, self.fields.read_row::<T>(&row)) {
            (true, row) => row.map(TableChange::Put),
            (false, Ok(gone)) if self.tells_more_than_key(&row)? => Ok(TableChange::delete_row(gone)),
            (false, Ok(gone)) => Ok(TableChange::delete(gone.key())),
            // To delete, the key is enough.
            (false, Err(reason)) => {
                let key = self.key.read(&row).map_err(|_| reason)?;
                Ok(TableChange::delete(key))
            }
        }
    }

    /// A row can be read of its key alone, if it may leave out the rest. Then nothing is known of the rest.
    fn tells_more_than_key(&self, row: &str) -> Result<bool, String> {
        if !row.starts_with('{') {
            return Ok(true);
        }
        let object: Object<'_> = json_place::read(row)?;
        Ok(object.iter().any(|(name, _)| !self.key.has(name) && !self.fields.lacks(name)))
    }

    fn key_value(&self, object: &Object<'_>) -> Result<TableChange<T>, String> {
        let Some(value) = object.get("value") else {
            return Err("there is no `value`; a row that is gone has the value null".to_string());
        };
        let key = object.given("key").map(|key| self.key.read::<T::Key>(key)).transpose()?;
        if given(value).is_none() {
            let key = key.ok_or_else(|| match T::Key::may_be_null() {
                true => "`key` and value are both null, which names no row; a key that is null is told with its field, as in \
                         `{\"key\":{\"id\":null},\"value\":null}`",
                false => "there is no `key`, and the value is null: whose row is gone?",
            })?;
            return Ok(TableChange::delete(key));
        }
        let row: T = self.fields.read_row(value).map_err(|reason| format!("in `value`: {reason}"))?;
        match key {
            // A null value under that key would never delete this row.
            Some(key) if key != row.key() => {
                Err(format!("`key` is {key:?}, and the key of the row in `value` is {:?}", row.key()))
            }
            _ => Ok(TableChange::Put(row)),
        }
    }
}

/// Whether a change adds, if the text is one of the four words for it.
fn adds(op: &str) -> Option<bool> {
    // Some writers put a `+` as `\u002B`.
    match serde_json::from_str::<Cow<'_, str>>(op).ok()?.as_ref() {
        "+I" | "+U" => Some(true),
        "-U" | "-D" => Some(false),
        _ => None,
    }
}

/// Whether the row stands apart, under `row`.
fn is_whole(object: &Object<'_>) -> bool {
    object.len() == 2 && object.has("op") && object.has("row")
}

fn unknown(op: &str) -> String {
    format!("`op` is {}, and has to be one of \"+I\", \"+U\", \"-U\", \"-D\"", shown(op))
}

const OWN_OP: &str = "if it is a column that the row leaves out, say `.plain()`";
const UNCLEAR_OP: &str =
    "`op` can be what the line does or a column of the row; say `.changes()` for the one, `.plain()` for the other";
const UNCLEAR_VALUE: &str = "`key` and `value` can be those of a message or columns of the row; say `.key_value()` for the one, `.plain()` for the other";

//! The columns of a row as an event has them, read by its schema or by the user's settings.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::schema::{Columns, Meaning};
use super::toast::Placeholder;
use super::{TimeForm, decimal, time};
use crate::file::json_place;
use crate::json::{Object, given, shown, write_object};

/// What the user says about columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Where the event has no schema.
    pub(super) columns: Columns,
    pub(super) times: TimeForm,
    pub(super) placeholder: Placeholder,
    /// Whether images before are known to have every column.
    pub(super) whole_images: bool,
}

/// A row image: `before`, `after`, or a message key.
pub(super) struct Image<'a> {
    object: Object<'a>,
    text: &'a str,
    /// Nothing if the event has no schema.
    schema: Option<Arc<Columns>>,
    settings: &'a Settings,
}

/// All columns of an image.
pub(super) struct Row<'i> {
    pub(super) columns: Vec<(&'i str, Cow<'i, str>)>,
    /// Those that were not sent.
    pub(super) unavailable: Vec<&'i str>,
    /// Whether the columns are all that came, with their texts.
    is_as_it_came: bool,
}

impl<'a> Image<'a> {
    pub(super) fn of(text: &'a str, schema: Option<Arc<Columns>>, settings: &'a Settings) -> Result<Image<'a>, String> {
        Ok(Image { object: json_place::read(text)?, text, schema, settings })
    }

    /// The text of a column, unless it was not sent.
    pub(super) fn column(&self, name: &str) -> Result<Option<Cow<'a, str>>, String> {
        match self.object.get(name) {
            Some(text) if !self.settings.placeholder.is(text) => self.read_column(name, text).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    pub(super) fn row(&self) -> Result<Row<'_>, String> {
        let columns = Vec::with_capacity(self.object.len());
        let mut row = Row { columns, unavailable: Vec::new(), is_as_it_came: true };
        for (name, text) in self.object.iter() {
            if self.settings.placeholder.is(text) {
                row.unavailable.push(name);
                row.is_as_it_came = false;
            } else {
                let read = self.read_column(name, text)?;
                row.is_as_it_came &= matches!(read, Cow::Borrowed(_));
                row.columns.push((name, read));
            }
        }
        Ok(row)
    }

    /// The row as JSON; what came is used as it is if nothing in it means something else.
    pub(super) fn write(&self, row: &Row<'_>) -> Cow<'a, str> {
        match row.is_as_it_came {
            true => Cow::Borrowed(self.text),
            false => Cow::Owned(write_object(row.columns.iter().map(|(name, text)| (*name, text.as_ref())))),
        }
    }

    /// What may be amiss if a column is not what the row's field expects.
    pub(super) fn hint(&self, column: &str) -> &'static str {
        match (self.meaning(column), &self.schema) {
            (Some(Meaning::Decimal { .. } | Meaning::VariableDecimal), _) => DECIMAL_HINT,
            (Some(Meaning::Timestamp(_) | Meaning::Date), _) => TIME_HINT,
            (Some(Meaning::ArrayOf(_) | Meaning::Text), _) | (None, Some(_)) => "",
            (None, None) => SCHEMA_HINT,
        }
    }

    /// Refuses a text that most likely is a decimal as bytes, of which nothing says the scale: it would else be handed over
    /// as letters.
    pub(super) fn must_be_clear(&self, name: &str, text: &str) -> Result<(), String> {
        let clear = self.schema.is_some() || self.meaning(name).is_some() || !decimal::may_be_one(text);
        if clear {
            return Ok(());
        }
        Err(format!(
            "`{name}`: {} looks like a decimal as bytes, and the event has no schema that says its scale; say \
             `.decimal_scale(\"{name}\", digits)`, or `.text(\"{name}\")` if it is what it says",
            shown(text)
        ))
    }

    fn meaning(&self, name: &str) -> Option<&Meaning> {
        let told = self.schema.as_ref().and_then(|schema| schema.get(name));
        told.or_else(|| self.settings.columns.get(name))
    }

    fn read_column(&self, name: &str, text: &'a str) -> Result<Cow<'a, str>, String> {
        let read = match self.meaning(name) {
            Some(meaning) => read(meaning, text, self.settings.times).map_err(|reason| {
                let is_set = !self.schema.as_ref().is_some_and(|schema| schema.contains_key(name));
                format!("`{name}`: {reason}{}", if is_set { remedy(meaning) } else { "" })
            })?,
            // Nothing else that a connector sends is an object of these two fields.
            None if self.schema.is_none() && text.starts_with('{') => variable(text).ok(),
            None => None,
        };
        Ok(read.map_or(Cow::Borrowed(text), Cow::Owned))
    }
}

/// Whether the text of a column can stand where the column was not sent: null, or where that is not allowed, the zero of
/// its type.
pub(super) fn may_be_unsent(text: &str) -> bool {
    let bare = text.trim_matches('"');
    matches!(text, "null" | "false" | "[]" | "{}")
        || bare.chars().all(|c| matches!(c, '0' | '.' | ':' | '-' | 'T' | 'Z'))
        || bare.starts_with("1970-01-01")
}

/// The value as JSON, or nothing if it is to stay as it came.
fn read(meaning: &Meaning, text: &str, times: TimeForm) -> Result<Option<String>, String> {
    if given(text).is_none() {
        return Ok(None);
    }
    match meaning {
        Meaning::Timestamp(unit) => time::timestamp(integer(text)?, *unit, times),
        Meaning::Date => time::date(integer(text)?, times),
        Meaning::Text => Ok(None),
        // A converter can be told to write decimals as numbers.
        Meaning::Decimal { .. } if !text.starts_with('"') => Ok(None),
        Meaning::Decimal { scale } => decimal::plain(&json_place::read::<String>(text)?, *scale).map(in_quotes),
        Meaning::VariableDecimal if !text.starts_with('{') => Ok(None),
        Meaning::VariableDecimal => variable(text).map(Some),
        Meaning::ArrayOf(of) => {
            let items: Vec<&RawValue> = json_place::read(text)?;
            let read =
                items.iter().map(|item| Ok(read(of, item.get(), times)?.unwrap_or_else(|| item.get().to_string())));
            Ok(Some(format!("[{}]", read.collect::<Result<Vec<String>, String>>()?.join(","))))
        }
    }
}

fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("{} is not an integer of 64 bits", shown(text)))
}

fn in_quotes(text: String) -> Option<String> {
    Some(format!("\"{text}\""))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    scale: i32,
    value: String,
}

fn variable(text: &str) -> Result<String, String> {
    let Variable { scale, value } = json_place::read(text)?;
    Ok(format!("\"{}\"", decimal::plain(&value, i64::from(scale))?))
}

/// The setting that told what a column means.
fn remedy(meaning: &Meaning) -> &'static str {
    match meaning {
        Meaning::Timestamp(_) => "; is `.timestamp_unit` right? text of ISO 8601 needs no setting",
        Meaning::Date => "; is `.date` right? text of ISO 8601 needs no setting",
        Meaning::Decimal { .. } => {
            "; is `.decimal_scale` right? with decimal.handling.mode string or double, there is nothing to set"
        }
        Meaning::VariableDecimal | Meaning::ArrayOf(_) | Meaning::Text => "",
    }
}

const DECIMAL_HINT: &str = "; a decimal is handed over as text: let the field be a `String` or a type of decimals, or \
                            set decimal.handling.mode to double";
const TIME_HINT: &str = "; in what form a time is handed over, `.times` says";
const SCHEMA_HINT: &str = "; the event has no schema: if this is a decimal, a timestamp or a date, say so with \
                           `.decimal_scale`, `.timestamp_unit` or `.date`";

//! From an event to a change of the table.

use std::marker::PhantomData;

use flowjoin_core::io::{Moved, MovedTo, Patch, TableChange};
use flowjoin_core::{Key, Keyed};
use serde::de::DeserializeOwned;

use super::columns::{Image, Settings, may_be_unsent};
use super::envelope::{Event, Message, Op, Part};
use super::schema::Schemas;
use super::toast::Partial;
use crate::file::{ReadChange, Told, json_place};
use crate::json::{Has, KeyFields, RowFields, given};

/// Reads lines of events about rows `T`.
pub(super) struct EventChange<T: Keyed> {
    /// Whose events count; without it, all.
    table: Option<String>,
    settings: Settings,
    key: KeyFields,
    fields: RowFields,
    of_values: Schemas,
    of_keys: Schemas,
    /// The key that was deleted last, and where in the log that was.
    deleted: Option<(serde_json::Value, T::Key)>,
    row: PhantomData<fn() -> T>,
}

impl<T: Keyed> ReadChange<T> for EventChange<T>
where
    T::Key: DeserializeOwned,
{
    fn read(&mut self, line: &str) -> Result<Told<T>, String> {
        let Message { key, value } = Message::of(line)?;
        let Some(value) = value else { return self.tombstone(key) };
        let Some(event) = Event::of(value.payload)? else { return Ok(Told::Nothing) };
        let table = event.source.full_name();
        if !self.counts(table.as_deref())? {
            return Ok(Told::OfOther(table.unwrap_or_default()));
        }
        let prefix = table.as_ref().map_or(String::new(), |table| format!("`{table}`: "));
        let change = self.change(&event, key, value.schema, &prefix);
        change.map(|change| Told::Change(of_record(change, line))).map_err(|reason| format!("{prefix}{reason}"))
    }
}

impl<T: Keyed> EventChange<T>
where
    T::Key: DeserializeOwned,
{
    pub(super) fn new(table: Option<String>, settings: Settings, key: KeyFields) -> EventChange<T> {
        let fields = RowFields::of::<T>();
        EventChange {
            table,
            settings,
            key,
            fields,
            of_values: Schemas::default(),
            of_keys: Schemas::default(),
            deleted: None,
            row: PhantomData,
        }
    }

    fn counts(&self, found: Option<&str>) -> Result<bool, String> {
        match (&self.table, found) {
            (None, _) => Ok(true),
            (Some(wanted), Some(found)) => {
                Ok(found.strip_suffix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
            }
            (Some(_), None) => Err("`source` does not say the table, which `.table` asks for".to_string()),
        }
    }

    /// A tombstone follows the event of the delete, to let the topic forget the key. Without a key it says nothing,
    /// and in a file of several tables not whose key it is.
    fn tombstone(&mut self, key: Option<Part<'_>>) -> Result<Told<T>, String> {
        match key {
            Some(key) if self.table.is_none() => {
                let key = self.message_key(key)?;
                Ok(Told::Change(TableChange::delete(key)))
            }
            Some(_) | None => Ok(Told::Nothing),
        }
    }

    fn change(
        &mut self,
        event: &Event<'_>,
        key: Option<Part<'_>>,
        schema: Option<&str>,
        table: &str,
    ) -> Result<TableChange<T>, String> {
        let time = event.source.time();
        if event.op == Op::Truncate {
            return Ok(TableChange::Truncate { time });
        }
        let message_key = key.map(|key| self.message_key(key));
        let schema = schema.map(|schema| self.of_values.of_value(schema)).transpose()?;
        let image = |name, text: Option<_>| {
            let image = text.map(|text| Image::of(text, schema.clone(), &self.settings)).transpose();
            image.map_err(|reason| format!("in `{name}`: {reason}"))
        };
        let (before, after) = (image("before", event.before)?, image("after", event.after)?);
        if event.op == Op::Delete {
            let key = self.key_of(before.as_ref(), message_key)?;
            let row = before.as_ref().and_then(|before| self.whole(before, event));
            self.deleted = event.source.place().map(|place| (place.clone(), key.clone()));
            return Ok(TableChange::Delete { key, time, row });
        }
        let after = after.ok_or_else(|| no_after(event))?;
        // A snapshot and an insert have no row before.
        let before = before.filter(|_| event.op == Op::Update);
        let put = self.put(&after, before.as_ref(), message_key, table)?;
        // Without REPLICA IDENTITY FULL the image before has only the columns of the key, or is not there.
        let from = before.as_ref().and_then(|before| self.key.pick::<T::Key>(|name| before.column(name)).ok());
        // A new primary key is told by a delete and an insert of one place in the log.
        let deleted = self.deleted.take().filter(|(place, _)| event.source.place() == Some(place)).map(|(_, key)| key);
        let whole = || before.as_ref().and_then(|before| self.whole(before, event));
        // A null of an image that may lack columns may be one that was not sent.
        let from = from.or(deleted).filter(|from| !from.is_null() || whole().is_some());
        Ok(match (from, put) {
            (Some(from), Put::Row(to)) if from != to.key() && event.op == Op::Update => {
                TableChange::Move(Box::new(Moved { row: whole(), from, time, to: MovedTo::Row(to) }))
            }
            (Some(from), Put::Patch { key, patch }) if from != key => {
                TableChange::Move(Box::new(Moved { row: whole(), from, time, to: MovedTo::Patch { key, patch } }))
            }
            (_, Put::Row(row)) => TableChange::Put(row),
            (_, Put::Patch { key, patch }) => TableChange::Patch { key, time, patch: Box::new(patch) },
        })
    }

    /// The row before, if its image has all of it. Columns that PostgreSQL has not sent look like those that are null or
    /// zero, so that an image of it with any such column is not taken for whole, unless the user says that it is.
    fn whole(&self, before: &Image<'_>, event: &Event<'_>) -> Option<Box<T>> {
        let row = before.row().ok()?;
        if row.unavailable.iter().any(|name| !self.fields.lacks(name)) {
            return None;
        }
        let mut others =
            row.columns.iter().filter(|(name, _)| !self.key.has(name) && !self.fields.lacks(name)).peekable();
        let is_told = others.peek().is_some() && others.all(|(_, text)| !may_be_unsent(text));
        if !(is_told || self.settings.whole_images || event.source.has_whole_images()) {
            return None;
        }
        json_place::read(&before.write(&row)).ok().map(Box::new)
    }

    /// The row of now, or what is known of it.
    fn put(
        &self,
        after: &Image<'_>,
        before: Option<&Image<'_>>,
        message_key: Option<Result<T::Key, String>>,
        table: &str,
    ) -> Result<Put<T>, String> {
        let mut row = after.row()?;
        for (name, text) in &row.columns {
            if self.fields.has(name) == Has::Yes {
                after.must_be_clear(name, text)?;
            }
        }
        let mut missing = Vec::new();
        for name in std::mem::take(&mut row.unavailable) {
            if self.fields.lacks(name) {
                continue;
            }
            // A value that is not told is never null.
            match before.map(|before| before.column(name)).transpose()?.flatten() {
                Some(text) if given(&text).is_some() => row.columns.push((name, text)),
                Some(_) | None => missing.push(name.to_string()),
            }
        }
        if missing.is_empty() {
            let read = json_place::read(&after.write(&row));
            return read.map(Put::Row).map_err(|reason| with_hint(reason, after));
        }
        let key = self.key_of(Some(after), message_key)?;
        let known = row.columns.into_iter().map(|(name, text)| (name.to_string(), text.into_owned())).collect();
        let partial = Partial { table: table.to_string(), known, missing };
        Ok(Put::Patch { key, patch: partial.patch() })
    }

    /// The key as the row has it, or else as the message has it.
    fn key_of(&self, image: Option<&Image<'_>>, message_key: Option<Result<T::Key, String>>) -> Result<T::Key, String> {
        let of_row = image.map(|image| self.key.pick(|name| image.column(name)));
        match (of_row, message_key) {
            (Some(Ok(key)), _) | (_, Some(Ok(key))) => Ok(key),
            (Some(Err(reason)), _) => Err(format!("{reason}; the key has to be within the table's REPLICA IDENTITY")),
            (None, Some(Err(reason))) => Err(reason),
            (None, None) => Err(NO_KEY.to_string()),
        }
    }

    fn message_key(&mut self, key: Part<'_>) -> Result<T::Key, String> {
        let schema = key.schema.map(|schema| self.of_keys.of_key(schema)).transpose()?;
        let read = match key.payload.starts_with('{') {
            true => {
                let image = Image::of(key.payload, schema, &self.settings)?;
                self.key.pick(|name| image.column(name))
            }
            false => self.key.read(key.payload),
        };
        read.map_err(|reason| format!("in the key of the message: {reason}"))
    }
}

/// The row of now, or what is known of it.
enum Put<T: Keyed> {
    Row(T),
    Patch { key: T::Key, patch: Patch<T> },
}

/// Whether a patch can be applied is known later: the line goes with it.
fn of_record<T: Keyed>(change: TableChange<T>, line: &str) -> TableChange<T> {
    match change {
        TableChange::Patch { key, time, patch } => {
            TableChange::Patch { key, time, patch: Box::new(patch.of_record(line)) }
        }
        TableChange::Move(moved) => {
            let to = match moved.to {
                MovedTo::Patch { key, patch } => MovedTo::Patch { key, patch: patch.of_record(line) },
                MovedTo::Row(row) => MovedTo::Row(row),
            };
            TableChange::Move(Box::new(Moved { to, ..*moved }))
        }
        TableChange::Put(_) | TableChange::Delete { .. } | TableChange::Truncate { .. } => change,
    }
}

fn no_after(event: &Event<'_>) -> String {
    match event.before {
        Some(_) => "the event has no `after`, and only a delete goes without".to_string(),
        None => "the event has neither `before` nor `after`".to_string(),
    }
}

/// Adds what may be amiss with the column that a reason begins with.
fn with_hint(reason: String, image: &Image<'_>) -> String {
    let column = reason.strip_prefix('`').and_then(|rest| rest.split(['`', '.', '[']).next());
    let column = column.filter(|_| reason.contains("invalid type"));
    let hint = column.map_or("", |column| image.hint(column));
    reason + hint
}

const NO_KEY: &str = "the event says neither a row `before` nor a key, so it is not known whose row is gone; set the \
                      table's REPLICA IDENTITY, or write the lines with the keys of the messages";

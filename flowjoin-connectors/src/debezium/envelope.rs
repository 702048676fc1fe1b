//! From a line to an event: with or without schema, with or without the message around it.

use flowjoin_core::EventTime;
use serde::Deserialize;

use crate::file::json_place;
use crate::json::{Object, given, shown};

/// A message of a topic, as a line has it.
pub(super) struct Message<'a> {
    /// Nothing if it is null or the line has only the value.
    pub(super) key: Option<Part<'a>>,
    /// Nothing if it is a tombstone.
    pub(super) value: Option<Part<'a>>,
}

/// A key or a value; neither is null.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) schema: Option<&'a str>,
    pub(super) payload: &'a str,
}

/// What happened to a row, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Created, or read by a snapshot.
    Create,
    Update,
    Delete,
    Truncate,
}

pub(super) struct Event<'a> {
    pub(super) op: Op,
    pub(super) before: Option<&'a str>,
    pub(super) after: Option<&'a str>,
    pub(super) source: Source,
}

/// Where an event comes from.
#[derive(Default, Deserialize)]
pub(super) struct Source {
    ts_ms: Option<i64>,
    lsn: Option<serde_json::Value>,
    connector: Option<String>,
    db: Option<String>,
    schema: Option<String>,
    table: Option<String>,
    collection: Option<String>,
}

impl<'a> Message<'a> {
    pub(super) fn of(line: &'a str) -> Result<Message<'a>, String> {
        let Some(text) = given(line.trim()) else { return Ok(Message { key: None, value: None }) };
        let object: Object<'a> = json_place::read(text)?;
        if object.has("op") || object.has("payload") || !object.has("value") {
            return Ok(Message { key: None, value: Part::of_object(&object, text) });
        }
        let part = |name| object.given(name).map(Part::of).transpose().map(Option::flatten);
        Ok(Message { key: part("key")?, value: part("value")? })
    }
}

impl<'a> Part<'a> {
    fn of(text: &'a str) -> Result<Option<Part<'a>>, String> {
        match text.starts_with('{') {
            true => Ok(Part::of_object(&json_place::read(text)?, text)),
            false => Ok(Some(Part { schema: None, payload: text })),
        }
    }

    /// Takes what is in it out of `schema` and `payload`, if these are around it; nothing if that is null.
    fn of_object(object: &Object<'a>, text: &'a str) -> Option<Part<'a>> {
        let is_wrapped = (object.has("schema") || object.len() == 1) && !object.has("op");
        match object.get("payload") {
            Some(payload) if is_wrapped => {
                given(payload).map(|payload| Part { schema: object.given("schema"), payload })
            }
            Some(_) | None => Some(Part { schema: None, payload: text }),
        }
    }
}

impl<'a> Event<'a> {
    /// The event that a value is; nothing if it is none of a row, such as a heartbeat.
    pub(super) fn of(payload: &'a str) -> Result<Option<Event<'a>>, String> {
        let object: Object<'a> = json_place::read(payload)?;
        let Some(op) = object.get("op") else {
            return if is_passed_over(&object) { Ok(None) } else { Err(NO_OP.to_string()) };
        };
        let op = match op {
            "\"c\"" | "\"r\"" => Op::Create,
            "\"u\"" => Op::Update,
            "\"d\"" => Op::Delete,
            "\"t\"" => Op::Truncate,
            // A message that a program has put into the log, not into a table.
            "\"m\"" => return Ok(None),
            _ => return Err(format!("`op` is {}, and has to be one of c, r, u, d, t, m", shown(op))),
        };
        let source = object.given("source").map(json_place::read).transpose();
        let source: Source = source.map_err(|reason| format!("in `source`: {reason}"))?.unwrap_or_default();
        Ok(Some(Event { op, before: object.given("before"), after: object.given("after"), source }))
    }
}

/// Changes of the schema, heartbeats, and the ends of transactions.
fn is_passed_over(object: &Object<'_>) -> bool {
    object.has("ddl")
        || object.has("tableChanges")
        || object.has("ts_ms") && object.len() == 1
        || object.has("status") && object.has("id") && object.has("event_count")
}

impl Source {
    pub(super) fn time(&self) -> Option<EventTime> {
        self.ts_ms.map(EventTime::from_millis)
    }

    /// The place in the log of the database, if it is known: a change of the key is told by two events of one place.
    pub(super) fn place(&self) -> Option<&serde_json::Value> {
        self.lsn.as_ref().filter(|lsn| !lsn.is_null())
    }

    /// Whether an image before has every column: other databases than PostgreSQL have no other images.
    pub(super) fn has_whole_images(&self) -> bool {
        self.connector.as_ref().is_some_and(|connector| connector != "postgresql")
    }

    /// As much of `database.schema.table` as is known.
    pub(super) fn full_name(&self) -> Option<String> {
        let table = self.table.as_ref().or(self.collection.as_ref())?;
        let parts: Vec<&str> = [&self.db, &self.schema].into_iter().flatten().map(String::as_str).collect();
        Some([parts, vec![table]].concat().join("."))
    }
}

const NO_OP: &str = "there is no `op`, so this is no change event; if the topic holds rows only (as \
                     ExtractNewRecordState makes them), read it with `JsonLines::table`";

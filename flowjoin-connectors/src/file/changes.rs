//! Lines of a file as changes of a table, whatever the format of a line.

use std::path::Path;

use flowjoin_core::io::{Reader, TableChange};
use flowjoin_core::{IoError, Keyed};
use serde::de::Error;

use super::OnBad;
use super::json::{too_long, utf8};
use super::lines::{Line, Lines};
use super::reader::{Decode, Decoded, Failure, FileReader, Outcome};

/// What a line tells.
pub(crate) enum Told<T: Keyed> {
    /// Nothing about any row.
    Nothing,
    /// Something of another table, of this name.
    OfOther(String),
    Change(TableChange<T>),
}

/// Turns a line into a change.
pub(crate) trait ReadChange<T: Keyed>: Send {
    /// What the line tells, or why it cannot be told.
    fn read(&mut self, line: &str) -> Result<Told<T>, String>;
}

/// Opens a file; see [`FileSet::open_changes`](super::FileSet::open_changes).
pub(super) fn open<T: Keyed>(
    path: &Path,
    (bytes_max, on_bad): (usize, &OnBad),
    format: impl ReadChange<T> + 'static,
) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
    let decode = ChangeDecode { lines: Lines::open(path, bytes_max)?, bytes_max, format };
    Ok(Box::new(FileReader::new(decode, path, on_bad)?))
}

/// The one change that a value given by a test is.
pub(crate) fn only_change<T: Keyed>(
    format: &mut impl ReadChange<T>,
    value: &serde_json::Value,
) -> Result<TableChange<T>, serde_json::Error> {
    match format.read(&value.to_string()).map_err(serde_json::Error::custom)? {
        Told::Change(change) => Ok(change),
        Told::Nothing => Err(serde_json::Error::custom("this tells no change of the table")),
        Told::OfOther(table) => {
            Err(serde_json::Error::custom(format!("this is of `{table}`, and `.table` asks for another")))
        }
    }
}

struct ChangeDecode<F> {
    lines: Lines,
    bytes_max: usize,
    format: F,
}

impl<T: Keyed, F: ReadChange<T>> Decode<TableChange<T>> for ChangeDecode<F> {
    fn next(&mut self) -> Result<Option<Decoded<TableChange<T>>>, Failure> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        let (outcome, bytes) = match line {
            Line::Whole(line) => (decode(line, &mut self.format), line.len() + 1),
            Line::TooLong(start) => (too_long(start, self.bytes_max), self.bytes_max),
        };
        Ok(Some(Decoded { outcome, line: self.lines.number(), bytes }))
    }

    fn raw(&self) -> &[u8] {
        self.lines.line()
    }

    fn done(&self) -> (u64, u64) {
        self.lines.meter().done()
    }
}

fn decode<T: Keyed>(line: &[u8], format: &mut impl ReadChange<T>) -> Outcome<TableChange<T>> {
    if line.trim_ascii().is_empty() {
        return Outcome::Blank;
    }
    match utf8(line).and_then(|text| format.read(text)) {
        Ok(Told::Nothing) => Outcome::Blank,
        Ok(Told::OfOther(table)) => Outcome::PassedOver { of: table },
        Ok(Told::Change(change)) => Outcome::Row(change),
        Err(reason) => Outcome::Bad { reason, raw: line.to_vec() },
    }
}

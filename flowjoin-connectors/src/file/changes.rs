//! Lines of a file as changes of a table, whatever the format of a line.

use std::path::Path;

use flowjoin_core::io::{Reader, TableChange};
use flowjoin_core::{IoError, Keyed};
use serde::de::Error;

use super::json::{too_long, utf8};
use super::lines::{Line, Lines};
use super::reader::{Decode, Decoded, Failure, FileReader, Outcome};

/// What a line tells.
pub(crate) enum Changes<T: Keyed> {
    /// Nothing about the table.
    None,
    One(TableChange<T>),
    /// One after the other: a row that has moved from one key to another.
    Two(TableChange<T>, TableChange<T>),
}

/// Turns a line into changes.
pub(crate) trait ReadChange<T: Keyed>: Send {
    /// What the line tells, or why it cannot be told.
    fn read(&mut self, line: &str) -> Result<Changes<T>, String>;
}

/// Opens a file; see [`FileSet::open_changes`](super::FileSet::open_changes).
pub(super) fn open<T: Keyed>(
    path: &Path,
    bytes_max: usize,
    format: impl ReadChange<T> + 'static,
) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
    let decode = ChangeDecode { lines: Lines::open(path, bytes_max)?, bytes_max, format, second: None };
    Ok(Box::new(FileReader::new(decode, path.display().to_string())))
}

/// The one change that a value given by a test is.
pub(crate) fn only_change<T: Keyed>(
    format: &mut impl ReadChange<T>,
    value: &serde_json::Value,
) -> Result<TableChange<T>, serde_json::Error> {
    match format.read(&value.to_string()).map_err(serde_json::Error::custom)? {
        Changes::One(change) => Ok(change),
        Changes::None => Err(serde_json::Error::custom("this tells no change of the table")),
        Changes::Two(..) => {
            let what = "this is two changes, as the row gets another key; give the delete and the row one by one";
            Err(serde_json::Error::custom(what))
        }
    }
}

struct ChangeDecode<T: Keyed, F> {
    lines: Lines,
    bytes_max: usize,
    format: F,
    /// The second change of the line before.
    second: Option<TableChange<T>>,
}

impl<T: Keyed, F: ReadChange<T>> Decode<TableChange<T>> for ChangeDecode<T, F> {
    fn next(&mut self) -> Result<Option<Decoded<TableChange<T>>>, Failure> {
        if let Some(second) = self.second.take() {
            return Ok(Some(Decoded { outcome: Outcome::Row(second), line: self.lines.number(), bytes: 0 }));
        }
        let Some(line) = self.lines.next()? else { return Ok(None) };
        let (outcome, bytes) = match line {
            Line::Whole(line) => {
                let (outcome, second) = decode(line, &mut self.format);
                self.second = second;
                (outcome, line.len() + 1)
            }
            Line::TooLong(start) => (too_long(start, self.bytes_max), self.bytes_max),
        };
        Ok(Some(Decoded { outcome, line: self.lines.number(), bytes }))
    }

    fn done(&self) -> (u64, u64) {
        self.lines.meter().done()
    }
}

type Told<T> = (Outcome<TableChange<T>>, Option<TableChange<T>>);

fn decode<T: Keyed>(line: &[u8], format: &mut impl ReadChange<T>) -> Told<T> {
    if line.trim_ascii().is_empty() {
        return (Outcome::Blank, None);
    }
    match utf8(line).and_then(|text| format.read(text)) {
        Ok(Changes::None) => (Outcome::Blank, None),
        Ok(Changes::One(change)) => (Outcome::Row(change), None),
        Ok(Changes::Two(first, second)) => (Outcome::Row(first), Some(second)),
        Err(reason) => (Outcome::Bad { reason, raw: line.to_vec() }, None),
    }
}

//! What becomes of records that cannot become rows.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flowjoin_core::io::{BadRecords, FailOnBad};
use flowjoin_core::{IoError, RecordError};
use serde::Serialize;

use super::open;

/// What a file source does with a record that cannot become a row.
///
/// Such a record is counted in the flow's account under any of these; it never vanishes.
///
/// ```
/// use flowjoin_connectors::{JsonLines, OnBad};
///
/// let orders = JsonLines::file("data/orders.jsonl").on_bad(OnBad::dead_letter("out/bad-orders.jsonl"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnBad {
    /// The flow stops with the file, the line and the reason.
    #[default]
    Fail,
    /// The record is counted and otherwise forgotten.
    Skip,
    /// The record is counted and written to this file, as one JSON object a line: `file`, `line`, `reason`, and the
    /// record as it came in `raw`, or in `raw_hex` if it is not UTF-8.
    ///
    /// The file is emptied when a run begins and is complete up to the last bad record at any time. Give each source
    /// a file of its own, or one empties what the other has written.
    DeadLetter(PathBuf),
}

impl OnBad {
    /// [`OnBad::DeadLetter`] with this path.
    pub fn dead_letter(path: impl Into<PathBuf>) -> OnBad {
        OnBad::DeadLetter(path.into())
    }

    /// Begins a run over these files.
    pub(super) fn open(&self, sources: &[PathBuf]) -> Result<Box<dyn BadRecords>, IoError> {
        match self {
            OnBad::Fail => Ok(Box::new(FailOnBad)),
            OnBad::Skip => Ok(Box::new(SkipBad)),
            OnBad::DeadLetter(path) => Ok(Box::new(DeadLetters::create(path, sources)?)),
        }
    }
}

struct SkipBad;

impl BadRecords for SkipBad {
    fn note(&mut self, _: &RecordError) -> Result<(), IoError> {
        Ok(())
    }
}

/// A file of bad records. Each is written by one call and not held back: what stands there survives a crash.
struct DeadLetters {
    file: File,
    path: PathBuf,
}

#[derive(Serialize)]
struct DeadLetter<'a> {
    file: &'a str,
    line: Option<u64>,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_hex: Option<String>,
}

impl DeadLetters {
    fn create(path: &Path, sources: &[PathBuf]) -> Result<DeadLetters, IoError> {
        if let Ok(same) = fs::canonicalize(path) {
            // Creating it would empty the very file that is to be read.
            if sources.iter().any(|source| fs::canonicalize(source).is_ok_and(|source| source == same)) {
                let path = path.display();
                return Err(IoError::new(format!("`{path}` is both source and dead-letter file; choose another")));
            }
        }
        Ok(DeadLetters { file: open::create(path)?, path: path.to_path_buf() })
    }
}

impl BadRecords for DeadLetters {
    fn note(&mut self, record: &RecordError) -> Result<(), IoError> {
        let text = std::str::from_utf8(&record.raw).ok();
        let letter = DeadLetter {
            file: &record.origin,
            line: record.position,
            reason: &record.reason,
            raw: text,
            raw_hex: text.is_none().then(|| hex(&record.raw)),
        };
        let failed = |path: &Path| format!("cannot write the dead-letter file `{}`", path.display());
        let mut line = serde_json::to_vec(&letter).map_err(|cause| IoError::caused(failed(&self.path), cause))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|cause| IoError::caused(failed(&self.path), cause))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(HEX[usize::from(digit)])).collect()
}

const HEX: &[u8; 16] = b"0123456789abcdef";

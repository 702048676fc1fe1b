//! Files as sources and sinks: JSON Lines and CSV, plain or gzip by the suffix `.gz`.
//!
//! Reading has three layers: bytes of a file with a meter (`open`), records with their line numbers (`lines`,
//! `csv_records`), rows or reasons (`json`, `csv`, `csv_row`) or changes of a table (`changes`, `json_table`); `reader`
//! makes pages of them, and `waiting` reads what is no file on a disk. Writing has two: rows to text (`json_sink`, `csv_sink`), and one file shared by the writers of
//! all tasks (`shared`).

mod bad;
mod changes;
mod csv;
mod csv_records;
mod csv_row;
mod csv_sink;
mod json;
mod json_change;
pub(crate) mod json_place;
mod json_sink;
mod json_table;
mod lines;
mod open;
mod reader;
mod shared;
mod waiting;

use std::path::PathBuf;

use flowjoin_core::io::{BadRecords, Endpoint, Reader, TableChange};
use flowjoin_core::{IoError, Keyed};

pub use self::bad::OnBad;
pub(crate) use self::changes::{ReadChange, Told, only_change};
pub use self::csv::Csv;
pub use self::csv_sink::CsvSink;
pub use self::json::JsonLines;
pub(crate) use self::json_change::{Form, JsonChange};
pub use self::json_sink::{JsonLinesChangelog, JsonLinesSink, JsonLinesUpsert};
pub use self::json_table::JsonTable;

/// What the sources of files have in common: each file is a partition.
#[derive(Clone, Debug)]
pub(crate) struct FileSet {
    paths: Vec<PathBuf>,
    pub(crate) name: String,
    pub(crate) on_bad: OnBad,
    pub(crate) record_bytes_max: usize,
}

impl FileSet {
    pub(crate) fn new(paths: Vec<PathBuf>) -> FileSet {
        let name = paths.first().map_or_else(|| "no files".to_string(), |path| open::stem(path));
        FileSet { paths, name, on_bad: OnBad::Fail, record_bytes_max: RECORD_BYTES_MAX }
    }

    pub(crate) fn endpoint(&self, kind: &str) -> Endpoint {
        let detail = match self.paths.as_slice() {
            [] => String::new(),
            [path] => path.display().to_string(),
            [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()),
        };
        let dead_letters = match &self.on_bad {
            OnBad::DeadLetter(path) => Some(path.clone()),
            OnBad::Fail | OnBad::Skip => None,
        };
        Endpoint::new(kind, &self.name).with_detail(detail).reading(self.paths.iter().cloned()).writing(dead_letters)
    }

    pub(crate) fn partitions(&self) -> Result<usize, IoError> {
        match self.paths.len() {
            0 => Err(IoError::new("a file source has no files; name at least one")),
            count => Ok(count),
        }
    }

    fn path(&self, partition: usize) -> Result<&PathBuf, IoError> {
        let count = self.paths.len();
        let missing = || IoError::new(format!("`{}` has {count} files and no partition {partition}", self.name));
        self.paths.get(partition).ok_or_else(missing)
    }

    /// Reads one file of changes of a table, a change or two a line.
    pub(crate) fn open_changes<T: Keyed>(
        &self,
        partition: usize,
        format: impl ReadChange<T> + 'static,
    ) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
        changes::open(self.path(partition)?, (self.record_bytes_max, &self.on_bad), format)
    }

    pub(crate) fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.on_bad.open(&self.paths)
    }
}

/// A record longer than this is not read into memory, unless the user asks for more.
const RECORD_BYTES_MAX: usize = 64 << 20;

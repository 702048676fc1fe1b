//! JSON Lines as sinks: rows, changes, or the latest row of each key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

use async_trait::async_trait;
use flowjoin_core::io::{ByKey, Endpoint, Sink, TakesAppend, TakesChanges, Writer};
use flowjoin_core::{Batch, Data, IoError, Keyed, RowKind};
use serde::Serialize;
use serde::de::IgnoredAny;

use super::shared::{SharedFile, SharedWriter, only_inserts};

/// Writes each row as a line of JSON; made by [`JsonLines::sink`](crate::JsonLines::sink). Takes inserts only.
///
/// The file is emptied when a run begins and directories above it are created; a name that ends in `.gz` means gzip.
/// All tasks write to the one file, whole lines, in no order between tasks. `/dev/stdout` is the output of the process, which
/// is not emptied. A float that is no number or infinite is written as `null`, as JSON has no word for it.
///
/// ```
/// use flowjoin_connectors::JsonLines;
/// use flowjoin_core::io::Sink;
/// use flowjoin_core::{Batch, EventTime};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("flowjoin-doc-sink-{}.jsonl", std::process::id()));
/// let sink = JsonLines::sink(&path);
/// let mut writer = Sink::<Vec<u64>>::open(&sink, 0, 1)?;
/// writer.write(Batch::from_rows(vec![vec![1, 2], vec![3]], vec![EventTime::MIN; 2])).await?;
/// writer.close().await?;
/// assert_eq!(std::fs::read_to_string(&path)?, "[1,2]\n[3]\n");
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct JsonLinesSink {
    file: SharedFile,
}

/// Writes each change as a line of JSON that says what it does; made by
/// [`JsonLines::changelog`](crate::JsonLines::changelog).
///
/// The row's own fields follow `op`, one of `+I`, `-U`, `+U`, `-D`:
///
/// ```text
/// {"op":"+I","order_id":1,"status":null}
/// {"op":"-U","order_id":1,"status":null}
/// {"op":"+U","order_id":1,"status":"sent"}
/// ```
///
/// A row that is not a JSON object, or has a field `op` of its own, stands whole under `row`: `{"op":"+I","row":7}`.
/// The file is as for [`JsonLinesSink`].
#[derive(Debug)]
pub struct JsonLinesChangelog {
    file: SharedFile,
}

/// Writes the latest row of each key; made by [`JsonLines::upsert`](crate::JsonLines::upsert). Rows must be [`Keyed`].
///
/// Of the changes to a key in one batch only the last is written: `{"op":"+U",..}` with the row if it adds, and
/// `{"op":"-D",..}` with the row taken back if it takes back. Who applies the lines in order, by key, has the
/// result at the end of every batch. Nothing is remembered from batch to batch, so
///
/// - a key that came and went within one batch still gets a `-D`, though it was never written: deleting what
///   is not there does nothing;
/// - an update that is cut by the end of a batch is a `-D` and then a `+U`.
///
/// Changes to a key must come from one task, as they do out of a join or table on that key: between tasks there is no
/// order. Lines and file are as for [`JsonLinesChangelog`].
#[derive(Debug)]
pub struct JsonLinesUpsert {
    file: SharedFile,
}

macro_rules! made_of_a_path {
    ($($sink:ident),*) => {$(
        impl $sink {
            pub(super) fn new(path: PathBuf) -> $sink {
                $sink { file: SharedFile::new(path) }
            }

            /// Gives it a name other than the stem of its file.
            pub fn named(mut self, name: impl Into<String>) -> $sink {
                self.file.name = name.into();
                self
            }
        }
    )*};
}
made_of_a_path!(JsonLinesSink, JsonLinesChangelog, JsonLinesUpsert);

impl<T: Data> Sink<T> for JsonLinesSink {
    type Takes = TakesAppend;

    fn endpoint(&self) -> Endpoint {
        self.file.endpoint("json lines")
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(JsonWriter { file: self.file.open()?, encode: rows, lines: Lines::default() }))
    }
}

impl<T: Data> Sink<T> for JsonLinesChangelog {
    type Takes = TakesChanges;

    fn endpoint(&self) -> Endpoint {
        self.file.endpoint("json lines changelog")
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(JsonWriter { file: self.file.open()?, encode: changes, lines: Lines::default() }))
    }
}

impl<T: Keyed> Sink<T> for JsonLinesUpsert {
    type Takes = TakesChanges;

    fn endpoint(&self) -> Endpoint {
        self.file.endpoint("json lines upsert")
    }

    fn by_key(&self) -> Option<ByKey<T>> {
        Some(ByKey::of())
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(JsonWriter { file: self.file.open()?, encode: latest, lines: Lines::default() }))
    }
}

struct JsonWriter<T> {
    file: SharedWriter,
    encode: fn(&Batch<T>, &mut Lines) -> Result<(), IoError>,
    lines: Lines,
}

#[async_trait]
impl<T: Data> Writer<T> for JsonWriter<T> {
    async fn write(&mut self, batch: Batch<T>) -> Result<(), IoError> {
        self.lines.text.clear();
        (self.encode)(&batch, &mut self.lines)?;
        self.file.write(&[], &self.lines.text)
    }

    async fn flush(&mut self) -> Result<(), IoError> {
        self.file.flush()
    }

    async fn close(&mut self) -> Result<(), IoError> {
        self.file.close()
    }
}

fn rows<T: Data>(batch: &Batch<T>, lines: &mut Lines) -> Result<(), IoError> {
    only_inserts(batch)?;
    batch.rows().iter().try_for_each(|row| lines.push_row(row))
}

fn changes<T: Data>(batch: &Batch<T>, lines: &mut Lines) -> Result<(), IoError> {
    batch.iter().try_for_each(|(kind, row, _)| lines.push_change(kind, row))
}

fn latest<T: Keyed>(batch: &Batch<T>, lines: &mut Lines) -> Result<(), IoError> {
    let mut last: HashMap<T::Key, usize> = HashMap::with_capacity(batch.len());
    let mut newest = vec![true; batch.len()];
    for (index, row) in batch.rows().iter().enumerate() {
        match last.entry(row.key()) {
            Entry::Occupied(mut before) => newest[before.insert(index)] = false,
            Entry::Vacant(first) => {
                first.insert(index);
            }
        }
    }
    for ((kind, row, _), newest) in batch.iter().zip(newest) {
        match (newest, kind.adds()) {
            (false, _) => {}
            (true, true) => lines.push_change(RowKind::UpdateAfter, row)?,
            (true, false) => lines.push_change(RowKind::Delete, row)?,
        }
    }
    Ok(())
}

/// The lines of one batch.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    row: Vec<u8>,
}

impl Lines {
    fn push_row<T: Serialize>(&mut self, row: &T) -> Result<(), IoError> {
        serde_json::to_writer(&mut self.text, row).map_err(unwritable)?;
        self.text.push(b'\n');
        Ok(())
    }

    fn push_change<T: Serialize>(&mut self, kind: RowKind, row: &T) -> Result<(), IoError> {
        self.row.clear();
        serde_json::to_writer(&mut self.row, row).map_err(unwritable)?;
        self.text.extend_from_slice(b"{\"op\":\"");
        self.text.extend_from_slice(kind.symbol().as_bytes());
        match self.row.strip_prefix(b"{") {
            Some(b"}") => self.text.extend_from_slice(b"\"}"),
            Some(fields) if !has_op(&self.row) => {
                self.text.extend_from_slice(b"\",");
                self.text.extend_from_slice(fields);
            }
            _ => {
                self.text.extend_from_slice(b"\",\"row\":");
                self.text.extend_from_slice(&self.row);
                self.text.push(b'}');
            }
        }
        self.text.push(b'\n');
        Ok(())
    }
}

/// Whether an object has a field `op`. The look at the text spares almost all rows the second.
fn has_op(object: &[u8]) -> bool {
    std::str::from_utf8(object).is_ok_and(|text| text.contains(OP))
        && serde_json::from_slice::<HashMap<String, IgnoredAny>>(object).is_ok_and(|fields| fields.contains_key("op"))
}

fn unwritable(cause: serde_json::Error) -> IoError {
    IoError::caused("a row cannot be written as JSON", cause)
}

const OP: &str = "\"op\":";

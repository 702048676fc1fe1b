//! JSON Lines as a source.

use std::marker::PhantomData;
use std::path::PathBuf;

use flowjoin_core::io::{BadRecords, Endpoint, Reader, StreamSource};
use flowjoin_core::{Data, IoError};

use super::json_place;
use super::json_sink::{JsonLinesChangelog, JsonLinesSink, JsonLinesUpsert};
use super::json_table::JsonTable;
use super::lines::{Line, Lines, SHOWN_BYTES};
use super::reader::{Decode, Decoded, Failure, FileReader, Outcome};
use super::{FileSet, OnBad};
use crate::json::{Object, RowFields};

/// Files with one JSON value a line, as a source; and the door to tables and sinks of JSON Lines.
///
/// Each file is a partition, read from its beginning to its end; a name that ends in `.gz` means gzip, of one member
/// or several. The name of the source is the stem of its first file, `orders` for `data/orders.jsonl.gz`.
///
/// Empty lines are passed over; `\r\n`, a byte-order mark and a last line without an end are fine. Fields that the
/// row does not have are ignored. A line is a *bad record* (see [`OnBad`]) if it is not UTF-8, not JSON, not a row, or
/// longer than 64 MiB; integers of 64 bits are exact, and one that does not fit its field is bad, never rounded. A file
/// that is missing stops the flow. A line whose `op` says `-U`, `+U` or `-D`, of a row without such a field, is bad too: it is
/// a change, of the kind that [`JsonLines::changelog`] writes, and no fact. Of gzip that is damaged, ends in the middle or has something behind its end, the rows
/// before that are read, and the rest is one bad record.
///
/// ```
/// use flowjoin_connectors::JsonLines;
/// use flowjoin_core::io::{Page, StreamSource};
///
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Order { order_id: u64, amount: i64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("flowjoin-doc-json-{}.jsonl", std::process::id()));
/// std::fs::write(&path, "{\"order_id\": 1, \"amount\": 250}\n")?;
/// let orders = JsonLines::file(&path).named("orders");
/// let mut reader = StreamSource::<Order>::open(&orders, 0)?;
/// let mut page = Page::default();
/// reader.read(&mut page, 1024).await?;
/// assert_eq!(page.rows, [Order { order_id: 1, amount: 250 }]);
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JsonLines {
    files: FileSet,
}

impl JsonLines {
    /// One file.
    pub fn file(path: impl Into<PathBuf>) -> JsonLines {
        JsonLines::files([path])
    }

    /// Several files, each a partition.
    pub fn files(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> JsonLines {
        JsonLines { files: FileSet::new(paths.into_iter().map(Into::into).collect()) }
    }

    /// One file of changes, as a table.
    pub fn table(path: impl Into<PathBuf>) -> JsonTable {
        JsonLines::tables([path])
    }

    /// Several files of changes, each a partition of one table: all changes of a key are in one file.
    pub fn tables(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> JsonTable {
        JsonTable::new(paths.into_iter().map(Into::into).collect())
    }

    /// A sink of rows: each row a line. Takes inserts only.
    pub fn sink(path: impl Into<PathBuf>) -> JsonLinesSink {
        JsonLinesSink::new(path.into())
    }

    /// A sink of changes: each a line that says what it does.
    pub fn changelog(path: impl Into<PathBuf>) -> JsonLinesChangelog {
        JsonLinesChangelog::new(path.into())
    }

    /// A sink of the latest row of each key.
    pub fn upsert(path: impl Into<PathBuf>) -> JsonLinesUpsert {
        JsonLinesUpsert::new(path.into())
    }

    /// Gives it a name other than the stem of its first file.
    pub fn named(mut self, name: impl Into<String>) -> JsonLines {
        self.files.name = name.into();
        self
    }

    /// What to do with a record that cannot become a row; without this, the flow stops.
    pub fn on_bad(mut self, policy: OnBad) -> JsonLines {
        self.files.on_bad = policy;
        self
    }

    /// The longest line that is read, in bytes, after decompression; without this, 64 MiB. A longer one is a bad
    /// record, of which the first 1024 bytes are kept.
    pub fn record_bytes_max(mut self, bytes: usize) -> JsonLines {
        self.files.record_bytes_max = bytes;
        self
    }
}

impl<T: Data> StreamSource<T> for JsonLines {
    fn endpoint(&self) -> Endpoint {
        self.files.endpoint("json lines")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        self.files.partitions()
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<T>>, IoError> {
        let path = self.files.path(partition)?;
        let bytes_max = self.files.record_bytes_max;
        let decode =
            JsonDecode { lines: Lines::open(path, bytes_max)?, bytes_max, rows: Rows::of::<T>(), row: PhantomData };
        Ok(Box::new(FileReader::new(decode, path, &self.files.on_bad)?))
    }

    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.files.bad_records()
    }
}

struct JsonDecode<T> {
    lines: Lines,
    bytes_max: usize,
    rows: Rows,
    row: PhantomData<fn() -> T>,
}

/// What lines are read as.
#[derive(Clone, Copy)]
struct Rows {
    fields: RowFields,
    /// Whether an `op` that a line has is certainly none of the row.
    has_no_op: bool,
}

impl Rows {
    fn of<T: Data>() -> Rows {
        let fields = RowFields::of::<T>();
        Rows { fields, has_no_op: fields.lacks("op") }
    }

    fn read<T: Data>(self, text: &str) -> Result<T, String> {
        let row = self.fields.read_row(text)?;
        // Most lines of most files are told to be facts by this look at the text.
        match self.has_no_op && may_have(text, "\"op\"") {
            true => no_change(text).map(|()| row),
            false => Ok(row),
        }
    }
}

/// Whether a line may have this name, in quotes; where it escapes some letter, that is not seen by a look at the text.
pub(super) fn may_have(line: &str, name: &str) -> bool {
    line.contains(name) || line.contains("\\u")
}

/// A change that can be read as a row would count as one more fact, be it that the row is gone.
fn no_change(text: &str) -> Result<(), String> {
    let object: Object<'_> = json_place::read(text)?;
    let op = object.get("op").and_then(|op| serde_json::from_str::<String>(op).ok());
    match op.as_deref() {
        Some(op @ ("-U" | "+U" | "-D")) => Err(format!(
            "`op` is \"{op}\", so the line says that a row changes or is gone, and no fact does; if `op` is a column like any \
             other, give the row a field of that name"
        )),
        Some(_) | None => Ok(()),
    }
}

impl<T: Data> Decode<T> for JsonDecode<T> {
    fn next(&mut self) -> Result<Option<Decoded<T>>, Failure> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        let (outcome, bytes) = match line {
            Line::Whole(line) => (decode(line, self.rows), line.len() + 1),
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

fn decode<T: Data>(line: &[u8], rows: Rows) -> Outcome<T> {
    if line.trim_ascii().is_empty() {
        return Outcome::Blank;
    }
    match utf8(line).and_then(|text| rows.read(text)) {
        Ok(row) => Outcome::Row(row),
        Err(reason) => Outcome::Bad { reason: reason + of_another_kind(line), raw: line.to_vec() },
    }
}

/// A remedy, if a line that is no row looks like a change of a table, or like CSV.
pub(super) fn of_another_kind(line: &[u8]) -> &'static str {
    if looks_like_csv(line) {
        return "; this looks like CSV: open the file with `Csv::file(path)`";
    }
    let Ok(object) = serde_json::from_slice::<Object<'_>>(line) else { return "" };
    let event = |object: &Object<'_>| object.has("op") && (object.has("before") || object.has("after"));
    let payload = object.get("payload").or_else(|| object.get("value"));
    let inner = payload.and_then(|text| serde_json::from_str::<Object<'_>>(text).ok());
    if event(&object) || inner.is_some_and(|inner| event(&inner) || inner.has("payload")) {
        "; this looks like a change event of Debezium: open it as a table, `flow.table(Debezium::json(path))`"
    } else if object.has("key") && object.has("value") || object.has("op") {
        "; this looks like a change of a table: open it as one, `flow.table(JsonLines::table(path))`"
    } else {
        ""
    }
}

/// Whether a line is not JSON but several texts with something between them.
fn looks_like_csv(line: &[u8]) -> bool {
    let first = line.trim_ascii_start().first();
    first.is_some_and(|first| !matches!(first, b'{' | b'['))
        && [b',', b';', b'\t'].iter().any(|delimiter| line.contains(delimiter))
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
}

/// Checks the whole line: serde_json would not look into the strings of fields that it ignores.
pub(super) fn utf8(line: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(line).map_err(|error| format!("not UTF-8 at byte {} of the line", error.valid_up_to() + 1))
}

pub(super) fn too_long<T>(start: &[u8], bytes_max: usize) -> Outcome<T> {
    let reason = format!(
        "the line is longer than {bytes_max} bytes; raise `record_bytes_max`, or mend the file (only the first \
         {SHOWN_BYTES} bytes are kept here)"
    );
    Outcome::Bad { reason, raw: start.to_vec() }
}

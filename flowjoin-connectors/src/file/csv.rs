//! CSV as a source.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use flowjoin_core::io::{BadRecords, Endpoint, Reader, StreamSource};
use flowjoin_core::names::field_names;
use flowjoin_core::{Data, IoError};

use super::csv_records::{Record, Records};
use super::csv_row::Row;
use super::csv_sink::CsvSink;
use super::lines::BYTE_ORDER_MARK;
use super::reader::{Decode, Decoded, Failure, FileReader, Outcome};
use super::{FileSet, OnBad};

/// Files of comma-separated values, as a source; and the door to the CSV sink.
///
/// Each file is a partition, read from its beginning to its end; a name that ends in `.gz` means gzip. The first record
/// of each file is its header, unless [`Csv::headers`] says otherwise; a field of the row is found by its header, and
/// columns that the row does not have are ignored. The name of the source is the stem of its first file.
///
/// Quoted fields may hold delimiters, doubled quotes and ends of lines. An empty field is `None` for an `Option` and
/// else what it says: an empty string, or no number; see [`Csv::nulls`]. Times are ISO 8601 text or milliseconds.
///
/// A record is *bad* (see [`OnBad`]) if a field that is asked for is missing, is not UTF-8 or does not fit its type, if
/// it has more or fewer fields than the header, or if the file ends within a quoted field. A record longer than
/// 64 MiB stops the flow, as nobody knows where it should have ended. An empty file has no rows.
///
/// ```
/// use flowjoin_connectors::Csv;
/// use flowjoin_core::io::{Page, StreamSource};
///
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Payment { order_id: u64, method: Option<String> }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("flowjoin-doc-csv-{}.csv", std::process::id()));
/// std::fs::write(&path, "order_id;method\n1;card\n2;NA\n")?;
/// let payments = Csv::file(&path).delimiter(b';').nulls(["NA"]);
/// let mut reader = StreamSource::<Payment>::open(&payments, 0)?;
/// let mut page = Page::default();
/// reader.read(&mut page, 1024).await?;
/// assert_eq!(page.rows[0].method.as_deref(), Some("card"));
/// assert_eq!(page.rows[1].method, None);
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    files: FileSet,
    delimiter: u8,
    headers: Option<Vec<String>>,
    nulls: Vec<String>,
}

impl Csv {
    /// One file.
    pub fn file(path: impl Into<PathBuf>) -> Csv {
        Csv::files([path])
    }

    /// Several files, each a partition with a header of its own.
    pub fn files(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Csv {
        let files = FileSet::new(paths.into_iter().map(Into::into).collect());
        Csv { files, delimiter: b',', headers: None, nulls: vec![String::new()] }
    }

    /// A sink of rows: a header and a record a row. Takes inserts only.
    pub fn sink(path: impl Into<PathBuf>) -> CsvSink {
        CsvSink::new(path.into())
    }

    /// Gives it a name other than the stem of its first file.
    pub fn named(mut self, name: impl Into<String>) -> Csv {
        self.files.name = name.into();
        self
    }

    /// What to do with a record that cannot become a row; without this, the flow stops.
    pub fn on_bad(mut self, policy: OnBad) -> Csv {
        self.files.on_bad = policy;
        self
    }

    /// The longest record that is read, in bytes, after decompression; without this, 64 MiB. A longer one stops the
    /// flow.
    pub fn record_bytes_max(mut self, bytes: usize) -> Csv {
        self.files.record_bytes_max = bytes;
        self
    }

    /// What stands between two fields; without this, a comma.
    pub fn delimiter(mut self, delimiter: u8) -> Csv {
        self.delimiter = delimiter;
        self
    }

    /// The names of the columns of files that have no header: their first record is a row.
    pub fn headers(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Csv {
        self.headers = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The texts that mean null, in place of the empty text alone.
    ///
    /// They count for fields that are an `Option`; in any other field a text is what it says, so a `String` may well
    /// be `NA`.
    pub fn nulls(mut self, texts: impl IntoIterator<Item = impl Into<String>>) -> Csv {
        self.nulls = texts.into_iter().map(Into::into).collect();
        self
    }

    fn decoder<T: Data>(&self, path: &Path) -> Result<CsvDecode<T>, IoError> {
        let mut records = Records::open(path, self.delimiter, self.files.record_bytes_max)?;
        let mut damaged = None;
        let headers = match &self.headers {
            Some(headers) => headers.clone(),
            None => match records.next() {
                Ok(Some(record)) => {
                    let names = header_names(path, &record)?;
                    expect_columns::<T>(path, &names, self.delimiter)?;
                    names
                }
                Ok(None) => Vec::new(),
                Err(Failure::Io(error)) => return Err(error),
                Err(failure @ Failure::Damaged { .. }) => {
                    damaged = Some(failure);
                    Vec::new()
                }
            },
        };
        Ok(CsvDecode { records, damaged, headers, nulls: self.nulls.clone(), row: PhantomData })
    }
}

impl<T: Data> StreamSource<T> for Csv {
    fn endpoint(&self) -> Endpoint {
        self.files.endpoint("csv")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        self.files.partitions()
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<T>>, IoError> {
        let path = self.files.path(partition)?;
        Ok(Box::new(FileReader::new(self.decoder::<T>(path)?, path, &self.files.on_bad)?))
    }

    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.files.bad_records()
    }
}

fn header_names(path: &Path, record: &Record<'_>) -> Result<Vec<String>, IoError> {
    let unreadable = |what: &str| IoError::new(format!("the header of `{}` {what}", path.display()));
    if record.left_open {
        return Err(unreadable("has a quote that is left open"));
    }
    let names = record.fields.iter().map(|name| std::str::from_utf8(name).map(|name| name.trim().to_string()));
    names.collect::<Result<_, _>>().map_err(|_| unreadable("is not UTF-8; write the file anew as UTF-8"))
}

// A header without any column of the row is the header of something else, or none: all that follows would be bad, or where
// nothing follows be missed in silence.
fn expect_columns<T: Data>(path: &Path, header: &[String], delimiter: u8) -> Result<(), IoError> {
    let Some(columns) = field_names::<T>().filter(|columns| !columns.is_empty()) else { return Ok(()) };
    if header.iter().any(|name| columns.contains(&name.as_str())) {
        return Ok(());
    }
    let between = char::from(delimiter).to_string();
    Err(IoError::new(format!(
        "the first line of `{}` is `{}`, and none of these is a column of the row ({}); if the file has no header, give \
         its names with `.headers([..])`, and if something else than `{}` stands between its fields, say so with \
         `.delimiter(..)`",
        path.display(),
        header.join(&between),
        columns.join(", "),
        between.escape_default()
    )))
}

struct CsvDecode<T> {
    records: Records,
    /// Why there is no header, which is a bad record like any other.
    damaged: Option<Failure>,
    headers: Vec<String>,
    nulls: Vec<String>,
    row: PhantomData<fn() -> T>,
}

impl<T: Data> Decode<T> for CsvDecode<T> {
    fn next(&mut self) -> Result<Option<Decoded<T>>, Failure> {
        if let Some(damaged) = self.damaged.take() {
            return Err(damaged);
        }
        let Some(record) = self.records.next()? else { return Ok(None) };
        let outcome = match decode(&record, &self.headers, &self.nulls) {
            Ok(row) => Outcome::Row(row),
            Err(reason) => Outcome::Bad { reason, raw: record.raw.to_vec() },
        };
        Ok(Some(Decoded { outcome, line: record.line, bytes: record.raw.len() + 1 }))
    }

    fn raw(&self) -> &[u8] {
        self.records.raw()
    }

    fn done(&self) -> (u64, u64) {
        self.records.meter().done()
    }
}

fn decode<T: Data>(record: &Record<'_>, headers: &[String], nulls: &[String]) -> Result<T, String> {
    if record.left_open {
        return Err("the file ends within a quoted field; a quote is left open".to_string());
    }
    if let Some(reason) = ragged(record.fields, headers) {
        return Err(reason);
    }
    T::deserialize(Row { headers, fields: record.fields, nulls }).map_err(|error| {
        let reason = error.to_string();
        match record.fields.get(0) {
            _ if reason.starts_with("missing field") => format!("{reason}; the header has `{}`", headers.join("`, `")),
            Some(first) if first.starts_with(BYTE_ORDER_MARK) => format!("{reason}{MARK_HINT}"),
            Some(_) | None => reason,
        }
    })
}

const MARK_HINT: &str = "; the record begins with a byte-order mark, as if files had been put together: read them one by \
                         one, with `Csv::files`, and each has its header";

/// Why the number of fields cannot be right, if it cannot: a lost or a stray delimiter shifts the columns behind it.
fn ragged(fields: &ByteRecord, headers: &[String]) -> Option<String> {
    let (found, named) = (fields.len(), headers.len());
    match headers.get(found) {
        Some(missing) => Some(format!("missing field `{missing}`: {found} fields under a header of {named}")),
        None if found > named => {
            Some(format!("{found} fields under a header of {named}; quote a field that holds the delimiter"))
        }
        None => None,
    }
}

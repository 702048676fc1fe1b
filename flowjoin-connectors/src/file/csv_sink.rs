//! CSV as a sink.

use std::path::PathBuf;

use async_trait::async_trait;
use flowjoin_core::io::{Endpoint, Sink, TakesAppend, Writer};
use flowjoin_core::{Batch, Data, IoError};
use serde_json::Value;

use super::shared::{SharedFile, SharedWriter, only_inserts};

/// Writes each row as a record of CSV; made by [`Csv::sink`](crate::Csv::sink). Takes inserts only.
///
/// The names of the row's fields are the header, written once, with the first row: a run without rows leaves an
/// empty file. Rows are flat: structs of numbers, strings, times, unit variants and `Option`s of these; anything
/// nested is an error. `None` is the empty field, so an empty string reads back as `None`.
///
/// The file is emptied when a run begins and directories above it are created; a name that ends in `.gz` means gzip.
/// All tasks write to the one file, whole records, in no order between tasks.
///
/// ```
/// use flowjoin_connectors::Csv;
/// use flowjoin_core::io::Sink;
/// use flowjoin_core::{Batch, EventTime};
///
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// struct Paid { order_id: u64, method: Option<String> }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("flowjoin-doc-sink-{}.csv", std::process::id()));
/// let sink = Csv::sink(&path).delimiter(b';');
/// let mut writer = Sink::<Paid>::open(&sink, 0, 1)?;
/// writer.write(Batch::from_rows(vec![Paid { order_id: 1, method: None }], vec![EventTime::MIN])).await?;
/// writer.close().await?;
/// assert_eq!(std::fs::read_to_string(&path)?, "order_id;method\n1;\n");
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CsvSink {
    file: SharedFile,
    delimiter: u8,
}

impl CsvSink {
    pub(super) fn new(path: PathBuf) -> CsvSink {
        CsvSink { file: SharedFile::new(path), delimiter: b',' }
    }

    /// Gives it a name other than the stem of its file.
    pub fn named(mut self, name: impl Into<String>) -> CsvSink {
        self.file.name = name.into();
        self
    }

    /// What stands between two fields; without this, a comma.
    pub fn delimiter(mut self, delimiter: u8) -> CsvSink {
        self.delimiter = delimiter;
        self
    }
}

impl<T: Data> Sink<T> for CsvSink {
    type Takes = TakesAppend;

    fn endpoint(&self) -> Endpoint {
        self.file.endpoint("csv")
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(CsvWriter { file: self.file.open()?, delimiter: self.delimiter, header: None }))
    }
}

struct CsvWriter {
    file: SharedWriter,
    delimiter: u8,
    /// Known once there is a row: serde tells the names of fields only of a value.
    header: Option<Vec<u8>>,
}

impl CsvWriter {
    fn records<T: Data>(&self, rows: &[T], headers: Headers) -> Result<Vec<u8>, IoError> {
        let mut writer = self.writer(headers);
        for row in rows {
            if let Err(cause) = writer.serialize(row) {
                // A row that is made of another one and a field beside it is a map, which the csv crate does not take.
                let by_fields = self.records_by_field(rows, headers);
                return by_fields.ok_or_else(|| match nested(row) {
                    Some(field) => IoError::new(format!(
                        "a row cannot be written as CSV: its field `{field}` is a list or an object, and CSV has no form \
                         for these; make a text of it with `.map(..)`, or write to `JsonLines::sink(path)`"
                    )),
                    None => IoError::caused("a row cannot be written as CSV", cause),
                });
            }
        }
        writer.into_inner().map_err(|error| IoError::new(format!("a row cannot be written as CSV: {error}")))
    }

    fn records_by_field<T: Data>(&self, rows: &[T], headers: Headers) -> Option<Vec<u8>> {
        let mut writer = self.writer(Headers::Without);
        for row in rows {
            let Ok(Value::Object(fields)) = serde_json::to_value(row) else { return None };
            if headers == Headers::With {
                writer.write_record(fields.keys()).ok()?;
            }
            let cells: Option<Vec<String>> = fields.values().map(cell).collect();
            writer.write_record(cells?).ok()?;
        }
        writer.into_inner().ok()
    }

    fn writer(&self, headers: Headers) -> csv::Writer<Vec<u8>> {
        let with_headers = headers == Headers::With;
        csv::WriterBuilder::new().has_headers(with_headers).delimiter(self.delimiter).from_writer(Vec::new())
    }

    /// What the header adds to a row that is written with it.
    fn header<T: Data>(&self, row: &T) -> Result<Vec<u8>, IoError> {
        let row = std::slice::from_ref(row);
        let mut with = self.records(row, Headers::With)?;
        let without = self.records(row, Headers::Without)?;
        with.truncate(with.len() - without.len());
        if with.is_empty() { self.numbered(&without) } else { Ok(with) }
    }

    /// The header of rows whose fields have no names, such as tuples: without one, whoever reads the file takes its first
    /// row for it.
    fn numbered(&self, record: &[u8]) -> Result<Vec<u8>, IoError> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).delimiter(self.delimiter).from_reader(record);
        let fields = reader.records().next().and_then(Result::ok).map_or(0, |record| record.len());
        let mut writer = self.writer(Headers::Without);
        let written = writer.write_record((1..=fields).map(|number| format!("column_{number}")));
        written.map_err(|cause| IoError::caused("the header cannot be written as CSV", cause))?;
        writer.into_inner().map_err(|error| IoError::new(format!("the header cannot be written as CSV: {error}")))
    }
}

// The first field of a row that is a list or a map.
fn nested<T: Data>(row: &T) -> Option<String> {
    match serde_json::to_value(row).ok()? {
        Value::Object(fields) => fields.into_iter().find(|(_, value)| cell(value).is_none()).map(|(name, _)| name),
        _ => None,
    }
}

// A field that is a list or a map has no form in CSV.
fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Headers {
    With,
    Without,
}

#[async_trait]
impl<T: Data> Writer<T> for CsvWriter {
    async fn write(&mut self, batch: Batch<T>) -> Result<(), IoError> {
        only_inserts(&batch)?;
        let Some(first) = batch.rows().first() else { return Ok(()) };
        let header = match self.header.take() {
            Some(header) => header,
            None => self.header(first)?,
        };
        let records = self.records(batch.rows(), Headers::Without)?;
        self.file.write(&header, &records)?;
        self.header = Some(header);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), IoError> {
        self.file.flush()
    }

    async fn close(&mut self) -> Result<(), IoError> {
        self.file.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowjoin_core::{Reason, Unmatched};

    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    struct Order {
        id: u64,
        note: Option<String>,
    }

    #[tokio::test]
    async fn an_unmatched_row_has_its_own_fields_and_a_reason() {
        let path = std::env::temp_dir().join(format!("flowjoin-unmatched-{}.csv", std::process::id()));
        let sink = crate::Csv::sink(&path);
        let mut writer: Box<dyn Writer<Unmatched<Order>>> = Sink::open(&sink, 0, 1).unwrap();
        let mut batch = Batch::default();
        for (id, note) in [(u64::MAX, None), (2, Some("a, b".to_string()))] {
            let row = Unmatched { row: Order { id, note }, reason: Reason::Expired };
            batch.push(row, flowjoin_core::EventTime::MIN, flowjoin_core::RowKind::Insert);
        }
        writer.write(batch).await.unwrap();
        writer.close().await.unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, "id,note,reason\n18446744073709551615,,expired\n2,\"a, b\",expired\n");
        std::fs::remove_file(path).unwrap();
    }
}

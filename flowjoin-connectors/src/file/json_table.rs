//! JSON Lines as a source of a table.

use std::path::PathBuf;

use flowjoin_core::io::{BadRecords, Endpoint, Reader, TableChange, TableSource};
use flowjoin_core::{IoError, Keyed};
use serde::de::DeserializeOwned;

use super::changes::only_change;
use super::json_change::{Form, JsonChange};
use super::{FileSet, OnBad};
use crate::json::KeyFields;

/// Files of JSON Lines as a table: of each key the row that came last. Made by
/// [`JsonLines::table`](crate::JsonLines::table) and [`JsonLines::tables`](crate::JsonLines::tables).
///
/// A line has one of three forms:
///
/// ```text
/// {"id":1,"name":"pen"}                                 plain: the row of its key is this one now
/// {"op":"+U","id":1,"name":"pen"}                       a change, as `JsonLines::upsert` and `::changelog` write it
/// {"op":"-D","row":{"id":1,"op":"x"}}                   the same, of a row that has a field `op` itself
/// {"key":{"id":1},"value":{"id":1,"name":"pen"}}        key and value, as in a compacted topic
/// {"key":1,"value":null}                                the row of this key is gone
/// ```
///
/// `+I` and `+U` put a row, whether there was one before or not. `-D` and `-U` delete the one of the key, and need no
/// more of the row than its key; one that tells the row has its version, where rows have versions (`ordered_by`). So what one flow wrote, another can read as a table.
///
/// **Which form a line has** is told by the names of its fields together with those of the row type, never by its
/// values alone. If the row has no field `op`, a line with `op` is a change. If it has one, then `op` is the row's, but
/// for a line of just `op` and `row`. A line of just `key` and `value` is a message if the row has neither of these
/// fields. All other lines are plain. Where this leaves two readings (a row with fields `key` and `value`, or of a type
/// that does not tell its fields, such as one with `#[serde(flatten)]`) the line is a bad record, and
/// [`plain`](JsonTable::plain), [`changes`](JsonTable::changes) or [`key_value`](JsonTable::key_value) settles it.
///
/// **The key** of a message is an object with the fields of the key, an array of them in the order in which the row
/// declares them, or for a key of one field its bare value. If the fields have other names in JSON than in the struct,
/// [`key_fields`](JsonTable::key_fields) says which. A message whose key is not that of its row is a bad record.
///
/// Several files are partitions: all changes of a key have to be in one. Names, gzip, empty lines, bad records and
/// integers are as for [`JsonLines`](crate::JsonLines).
///
/// ```
/// use flowjoin_connectors::JsonLines;
/// use flowjoin_core::Keyed;
/// use flowjoin_core::io::{Page, TableChange, TableSource};
///
/// #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
/// struct Product { id: u64, name: String }
///
/// impl Keyed for Product {   // or `#[derive(Keyed)]`, with `#[key]` on the field
///     type Key = u64;
///     fn key(&self) -> u64 { self.id }
///     fn key_name() -> &'static str { "id" }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("flowjoin-doc-table-{}.jsonl", std::process::id()));
/// std::fs::write(&path, "{\"id\":1,\"name\":\"pen\"}\n{\"key\":{\"id\":1},\"value\":null}\n")?;
/// let products = JsonLines::table(&path).named("products");
/// let mut page = Page::default();
/// TableSource::<Product>::open(&products, 0)?.read(&mut page, 1024).await?;
/// assert!(matches!(&page.rows[0], TableChange::Put(product) if product.name == "pen"));
/// assert!(matches!(page.rows[1], TableChange::Delete { key: 1, .. }));
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JsonTable {
    files: FileSet,
    form: Form,
    key_fields: Option<Vec<String>>,
}

impl JsonTable {
    pub(super) fn new(paths: Vec<PathBuf>) -> JsonTable {
        JsonTable { files: FileSet::new(paths), form: Form::default(), key_fields: None }
    }

    /// Every line is a plain row; fields `op`, `key` and `value` are columns like any other.
    ///
    /// ```
    /// # use flowjoin_connectors::JsonLines;
    /// let settings = JsonLines::table("in/settings.jsonl").plain(); // {"key":"colour","value":"red"}
    /// ```
    pub fn plain(mut self) -> JsonTable {
        self.form = Form::Plain;
        self
    }

    /// Every line is a change: one without `op` is bad.
    ///
    /// ```
    /// # use flowjoin_connectors::JsonLines;
    /// let totals = JsonLines::table("out/totals.jsonl").changes(); // {"op":"+U","customer":7,"total":12}
    /// ```
    pub fn changes(mut self) -> JsonTable {
        self.form = Form::Changes;
        self
    }

    /// Every line is a message with `key` and `value`; further fields, such as its offset, are ignored.
    ///
    /// ```
    /// # use flowjoin_connectors::JsonLines;
    /// let products = JsonLines::table("in/products.jsonl").key_value(); // {"offset":5,"key":1,"value":null}
    /// ```
    pub fn key_value(mut self) -> JsonTable {
        self.form = Form::KeyValue;
        self
    }

    /// The names in JSON of the fields of the key, in the order in which the row declares them; without this, their
    /// names in the struct.
    ///
    /// ```
    /// # use flowjoin_connectors::JsonLines;
    /// let stock = JsonLines::table("in/stock.jsonl").key_fields(["storeId", "productId"]);
    /// ```
    pub fn key_fields(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> JsonTable {
        self.key_fields = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Gives it a name other than the stem of its first file.
    pub fn named(mut self, name: impl Into<String>) -> JsonTable {
        self.files.name = name.into();
        self
    }

    /// What to do with a record that cannot become a change; without this, the flow stops.
    pub fn on_bad(mut self, policy: OnBad) -> JsonTable {
        self.files.on_bad = policy;
        self
    }

    /// The longest line that is read, in bytes, after decompression; without this, 64 MiB. A longer one is a bad
    /// record, of which the first 1024 bytes are kept.
    pub fn record_bytes_max(mut self, bytes: usize) -> JsonTable {
        self.files.record_bytes_max = bytes;
        self
    }

    fn format<T: Keyed>(&self) -> Result<JsonChange<T>, IoError>
    where
        T::Key: DeserializeOwned,
    {
        Ok(JsonChange::new(self.form, KeyFields::of::<T>(self.key_fields.as_deref())?))
    }
}

impl<T: Keyed> TableSource<T> for JsonTable
where
    T::Key: DeserializeOwned,
{
    fn endpoint(&self) -> Endpoint {
        self.files.endpoint("json lines table")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        self.files.partitions()
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
        self.files.open_changes(partition, self.format::<T>()?)
    }

    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.files.bad_records()
    }

    fn change_of(&self, value: serde_json::Value) -> Result<TableChange<T>, serde_json::Error> {
        let mut format = self.format().map_err(serde::de::Error::custom)?;
        only_change(&mut format, &value)
    }
}

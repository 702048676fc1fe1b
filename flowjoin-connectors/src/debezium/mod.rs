//! Change events of a database as a table: what Debezium has written, one event a line.
//!
//! From the outside in: a line is a message with an event in it (`envelope`); an event has images of a row, whose
//! columns are read by the schema or by settings (`schema`, `columns`, with `decimal` and `time`); out of them come
//! changes of the table (`event`), with patches where columns were not sent (`toast`).

mod columns;
mod decimal;
mod envelope;
mod event;
mod schema;
mod time;
mod toast;

use std::path::PathBuf;

use flowjoin_core::io::{BadRecords, Endpoint, Reader, TableChange, TableSource};
use flowjoin_core::names::{field_names, nearest};
use flowjoin_core::{IoError, Keyed, TimeUnit};
use serde::de::DeserializeOwned;

use self::columns::Settings;
use self::event::EventChange;
use self::schema::Meaning;
pub use self::time::TimeForm;
use self::toast::Placeholder;
use crate::file::{FileSet, Form, JsonChange, OnBad, only_change};
use crate::json::{KeyFields, RowFields};

/// Change events of Debezium in files of JSON Lines, as a table.
///
/// A line is an event, or the message of a topic with its key. Both can have their schema with them:
///
/// ```text
/// {"before":null,"after":{"id":1,"name":"pen"},"source":{..},"op":"c","ts_ms":5}
/// {"schema":{..},"payload":{"before":{"id":1},"after":null,"source":{..},"op":"d","ts_ms":6}}
/// {"key":{"id":1},"value":{"before":null,"after":{..},"source":{..},"op":"u","ts_ms":7}}
/// {"key":{"schema":{..},"payload":{"id":1}},"value":null}
/// ```
///
/// | event | change |
/// |---|---|
/// | `c`, `r` (snapshot), `u` | the row of its key is `after` now |
/// | `u` whose `before` has another key | the row goes from that key to the new one; from one that is null only if `before` is known to be [whole](Debezium::replica_identity_full) |
/// | `d`, and a value of null | the row of the key is gone |
/// | `t` (truncate) | all rows are gone |
/// | `m`, heartbeats, changes of the schema, ends of transactions | passed over |
///
/// Deletes, patches and truncates happen at the `ts_ms` of `source`; a row has its own time. Columns that the row has no
/// field for are ignored. Integers of 64 bits stay exact. The key is read from the image of the row, by the names that
/// the row's key has, and else from the message.
///
/// **Columns that mean more than they say** are told by the schema of the event, or, where it has none, by settings:
///
/// | column | handed over as | without schema |
/// |---|---|---|
/// | timestamp or date as an integer | milliseconds, or as [`times`](Debezium::times) says | [`timestamp_unit`](Debezium::timestamp_unit), [`date`](Debezium::date) |
/// | timestamp with zone | the ISO 8601 text that it is | |
/// | decimal, as bytes | its digits, as text: `"12.50"` | [`decimal_scale`](Debezium::decimal_scale) |
/// | decimal of no fixed scale | the same | known by its form |
/// | what looks like a decimal as bytes, and nothing says that it is one | refused | [`text`](Debezium::text) |
/// | decimal by `decimal.handling.mode` string or double | the text or number that it is | |
///
/// **Columns that were not sent.** PostgreSQL leaves out large values that have not changed (TOAST), and Debezium puts a
/// placeholder there. If the row has a field for it, the value is taken from `before` if that has it, and else from the
/// row before, through the row's own `Serialize` and `Deserialize`, which have to agree on names; of a row that gets
/// another key, the one under its old key. If there is no row before, the event is a bad record that names the column, and
/// changes nothing: set `REPLICA IDENTITY FULL`, or begin with a snapshot. For this the rows are held where they are read;
/// [`replica_identity_full`](Debezium::replica_identity_full) says that there is no need to.
///
/// Several files are partitions: all events of a key have to be in one. Names, gzip, empty lines and bad records are as
/// for [`JsonLines`](crate::JsonLines); the reason of a bad record names the table and the column.
///
/// ```
/// use flowjoin_connectors::Debezium;
/// use flowjoin_core::Keyed;
/// use flowjoin_core::io::{Page, TableChange, TableSource};
///
/// #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
/// struct Product { id: u64, price: String }
///
/// impl Keyed for Product {   // or `#[derive(Keyed)]`, with `#[key]` on the field
///     type Key = u64;
///     fn key(&self) -> u64 { self.id }
///     fn key_name() -> &'static str { "id" }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("flowjoin-doc-debezium-{}.jsonl", std::process::id()));
/// std::fs::write(&path, r#"{"before":null,"after":{"id":1,"price":"BOI="},"source":{"ts_ms":5},"op":"c"}"#)?;
/// let products = Debezium::json(&path).named("products").decimal_scale("price", 2);
/// let mut page = Page::default();
/// TableSource::<Product>::open(&products, 0)?.read(&mut page, 1024).await?;
/// assert!(matches!(&page.rows[0], TableChange::Put(product) if product.price == "12.50"));
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Debezium {
    files: FileSet,
    table: Option<String>,
    settings: Settings,
    key_fields: Option<Vec<String>>,
}

impl Debezium {
    /// One file.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let orders = Debezium::json("in/orders.jsonl.gz"); // is named `orders`
    /// ```
    pub fn json(path: impl Into<PathBuf>) -> Debezium {
        Debezium::json_files([path])
    }

    /// Several files, each a partition of one table: all events of a key are in one file.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let orders = Debezium::json_files(["in/orders-0.jsonl", "in/orders-1.jsonl"]).named("orders");
    /// ```
    pub fn json_files(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Debezium {
        let files = FileSet::new(paths.into_iter().map(Into::into).collect());
        Debezium { files, table: None, settings: Settings::default(), key_fields: None }
    }

    /// Takes only the events of one table, of a file that has several: `orders`, `public.orders` or
    /// `shop.public.orders`, with as many of its names as tell it from the others. Those of others are counted as passed
    /// over.
    ///
    /// A message that has a null value does not say its table, and is then passed over: the event of the delete is
    /// before it.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let orders = Debezium::json("in/shop.jsonl").named("orders").table("public.orders");
    /// ```
    pub fn table(mut self, name: impl Into<String>) -> Debezium {
        self.table = Some(name.into());
        self
    }

    /// Says in what form timestamps and dates are handed over; without this, in milliseconds.
    ///
    /// ```
    /// # use flowjoin_connectors::{Debezium, TimeForm};
    /// let orders = Debezium::json("in/orders.jsonl").times(TimeForm::Text);
    /// ```
    pub fn times(mut self, form: TimeForm) -> Debezium {
        self.settings.times = form;
        self
    }

    /// Says that a column is a timestamp, as an integer of this unit, where the events have no schema that does.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// # use flowjoin_core::TimeUnit;
    /// let orders = Debezium::json("in/orders.jsonl").timestamp_unit("placed_at", TimeUnit::Micros);
    /// ```
    pub fn timestamp_unit(self, column: impl Into<String>, unit: TimeUnit) -> Debezium {
        self.meaning(column, Meaning::Timestamp(unit))
    }

    /// Says that a column is a date, as an integer of days since 1970, where the events have no schema that does.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let people = Debezium::json("in/people.jsonl").date("born_on");
    /// ```
    pub fn date(self, column: impl Into<String>) -> Debezium {
        self.meaning(column, Meaning::Date)
    }

    /// Says that a column is a decimal as bytes, with so many digits behind the point, where the events have no schema
    /// that does. With `decimal.handling.mode` string or double there is nothing to say.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let orders = Debezium::json("in/orders.jsonl").decimal_scale("amount", 2); // NUMERIC(10, 2)
    /// ```
    pub fn decimal_scale(self, column: impl Into<String>, digits: i32) -> Debezium {
        self.meaning(column, Meaning::Decimal { scale: i64::from(digits) })
    }

    /// Says that a column is text, or bytes as base64, where it looks like a decimal and the events have no schema: a short
    /// text of base64 that ends with `=` is else refused.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let files = Debezium::json("in/files.jsonl").text("digest"); // BYTEA
    /// ```
    pub fn text(self, column: impl Into<String>) -> Debezium {
        self.meaning(column, Meaning::Text)
    }

    fn meaning(mut self, column: impl Into<String>, meaning: Meaning) -> Debezium {
        self.settings.columns.insert(column.into(), meaning);
        self
    }

    /// The word in the place of a column that was not sent, if `unavailable.value.placeholder` of the connector is not
    /// `__debezium_unavailable_value`.
    ///
    /// It is known as text, as the base64 of it, in arrays of text, bytes and integers, and in maps of text; the one
    /// in an array of UUIDs only if it is the usual word.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let orders = Debezium::json("in/orders.jsonl").unavailable_value("<not sent>");
    /// ```
    pub fn unavailable_value(mut self, word: &str) -> Debezium {
        self.settings.placeholder = Placeholder::new(word);
        self
    }

    /// Says that the table has `REPLICA IDENTITY FULL`, or is of another database than PostgreSQL: `before` has every column
    /// of the row. What is null or zero in it then is so, and was not left out. It counts where rows have versions
    /// (`ordered_by`): a delete has the version of `before`, if that is whole. Without this, `before` is taken for whole if
    /// `source` names another connector, or none of the columns is null or zero but those of the key. No column is left out
    /// then, so that the rows need not be held where they are read.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let orders = Debezium::json("in/orders.jsonl").replica_identity_full();
    /// ```
    pub fn replica_identity_full(mut self) -> Debezium {
        self.settings.whole_images = true;
        self
    }

    /// The names of the columns of the key, in the order in which the row declares them; without this, their names in
    /// the struct.
    ///
    /// ```
    /// # use flowjoin_connectors::Debezium;
    /// let stock = Debezium::json("in/stock.jsonl").key_fields(["storeId", "productId"]);
    /// ```
    pub fn key_fields(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Debezium {
        self.key_fields = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Gives it a name other than the stem of its first file.
    pub fn named(mut self, name: impl Into<String>) -> Debezium {
        self.files.name = name.into();
        self
    }

    /// What to do with a record that cannot become a change; without this, the flow stops.
    pub fn on_bad(mut self, policy: OnBad) -> Debezium {
        self.files.on_bad = policy;
        self
    }

    /// The longest line that is read, in bytes, after decompression; without this, 64 MiB. A longer one is a bad
    /// record, of which the first 1024 bytes are kept.
    pub fn record_bytes_max(mut self, bytes: usize) -> Debezium {
        self.files.record_bytes_max = bytes;
        self
    }

    // What is said of a column that the row does not have would change nothing.
    fn expect_columns<T: Keyed>(&self) -> Result<(), IoError> {
        let Some(fields) = field_names::<T>().filter(|fields| !fields.is_empty()) else { return Ok(()) };
        let own = self.key_fields.iter().flatten().map(String::as_str);
        let known: Vec<&str> = fields.iter().copied().chain(own).collect();
        let Some(unknown) = self.settings.columns.keys().find(|column| !known.contains(&column.as_str())) else {
            return Ok(());
        };
        let meant = match nearest(unknown, known.iter().copied()) {
            Some(meant) => format!("is `{meant}` meant?"),
            None => format!("it has {}", known.join(", ")),
        };
        Err(IoError::new(format!("a setting names the column `{unknown}`, which the row does not have; {meant}")))
    }

    fn key<T: Keyed>(&self) -> Result<KeyFields, IoError> {
        KeyFields::of::<T>(self.key_fields.as_deref())
    }
}

impl<T: Keyed> TableSource<T> for Debezium
where
    T::Key: DeserializeOwned,
{
    fn endpoint(&self) -> Endpoint {
        self.files.endpoint("debezium")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        self.files.partitions()
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
        self.expect_columns::<T>()?;
        let format = EventChange::<T>::new(self.table.clone(), self.settings.clone(), self.key::<T>()?);
        self.files.open_changes(partition, format)
    }

    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.files.bad_records()
    }

    /// Unless every image is known to be whole: only then is no column ever left out.
    fn tells_patches(&self) -> bool {
        !self.settings.whole_images
    }

    /// An event, or what [`JsonTable`](crate::JsonTable) takes: a row, or `{"op": "-D", ..row}`.
    fn change_of(&self, value: serde_json::Value) -> Result<TableChange<T>, serde_json::Error> {
        let key = self.key::<T>().map_err(serde::de::Error::custom)?;
        let fields = RowFields::of::<T>();
        let is_message = ["key", "value"].iter().all(|name| value.get(name).is_some() && fields.lacks(name));
        if is_message || is_event(&value) || value.get("payload").is_some_and(is_event) {
            return only_change(&mut EventChange::new(self.table.clone(), self.settings.clone(), key), &value);
        }
        only_change(&mut JsonChange::new(Form::Told, key), &value)
    }
}

fn is_event(value: &serde_json::Value) -> bool {
    let op = value.get("op").and_then(serde_json::Value::as_str);
    op.is_some_and(|op| ["c", "r", "u", "d", "t"].contains(&op))
        && ["before", "after", "source"].iter().any(|name| value.get(name).is_some())
}

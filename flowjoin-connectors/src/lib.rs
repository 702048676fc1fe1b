//! The ends of a flow that need no service: files, memory, channels and generated rows.
//!
//! | source | reads | sink | writes |
//! |---|---|---|---|
//! | [`JsonLines`] | one JSON value a line, `.gz` too | [`JsonLines::sink`], [`JsonLines::changelog`], [`JsonLines::upsert`] | rows, changes, latest rows |
//! | [`JsonLines::table`] | rows by key: plain, as changes, or with key and value | | |
//! | [`Debezium`] | change events of a database, one a line | | |
//! | [`Csv`] | delimited text with a header, `.gz` too | [`Csv::sink`] | rows |
//! | [`Memory`] | rows that are there already | [`MemorySink`] | changes, to be looked at |
//! | [`FromStream`] | any `futures::Stream` | [`ToChannel`] | a `tokio` channel |
//! | [`Generate`] | rows computed from a counter | | |
//! | [`Generate::table`] | changes of rows by key, likewise | | |
//!
//! Nothing is lost in silence: a record that cannot become a row stops the flow, or is counted and, by choice, kept
//! in a dead-letter file (see [`OnBad`]); a file that ends in the middle is an error.
//!
//! This crate knows nothing of the runtime: it implements the traits of [`flowjoin_core::io`]. Files are read and
//! written by plain blocking calls, a page at a time; what is no regular file, as a pipe, is read on a thread of its own.

mod debezium;
mod file;
mod generate;
mod json;
mod memory;
mod stream;

pub use debezium::{Debezium, TimeForm};
pub use file::{Csv, CsvSink, JsonLines, JsonLinesChangelog, JsonLinesSink, JsonLinesUpsert, JsonTable, OnBad};
pub use generate::Generate;
pub use memory::{Memory, MemorySink};
pub use stream::{FromStream, RowsToChannel, ToChannel};

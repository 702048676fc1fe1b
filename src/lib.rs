//! Typed joins over event streams: N-way and interval joins, unmatched rows, every row accounted for.

/// Lets sources and sinks of one's own be written: their readers and writers are async traits.
pub use async_trait::async_trait;
pub use flowjoin_connectors as connectors;
pub use flowjoin_core::api::{self, MultiJoin, multi_join};
pub use flowjoin_core::*;
pub use flowjoin_macros::{Event, Keyed};
pub use flowjoin_runtime::{Config, Error, Report, Result, RunFlow, Running};

pub mod prelude;

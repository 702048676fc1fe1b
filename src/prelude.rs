//! What most programs need: `use flowjoin::prelude::*`.

pub use flowjoin_connectors::{Csv, Debezium, JsonLines, OnBad, TimeForm};
pub use flowjoin_core::{
    Changelog, Clock, Event, EventTime, Flow, Key, Keyed, KeyedStream, Late, Reason, Span, Stream, Table, Unmatched,
    days, hours, millis, minutes, multi_join, secs,
};
pub use flowjoin_macros::{Event, Keyed};
pub use flowjoin_runtime::{Config, RunFlow};
pub use serde::{Deserialize, Serialize};

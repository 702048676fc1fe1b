//! The core of flowjoin: what joins answer, and how, without any waiting.
//!
//! Nothing here does I/O, reads a clock, spawns or awaits. Decisions are plain calls on plain data, so that a
//! runtime, the test driver and a simulator can be thin shells around the same values. Users depend on the
//! `flowjoin` crate, which re-exports what they need.
#![deny(unsafe_code)]

pub mod account;
pub mod api;
pub mod batch;
pub mod change;
pub mod delays;
pub mod error;
pub mod io;
pub mod key;
pub mod names;
pub mod op;
pub mod plan;
pub mod record;
pub mod state;
pub mod task;
pub mod time;
pub mod watermark;

pub use account::{Account, OpFigures, Reason};
pub use api::{
    Append, Changelog, Eager, EagerAfter, Final, Flow, JoinInput, JoinsOn, KeyedStream, Late, MaybeOptional, Mode,
    Optional, Retract, Silent, Stream, Table, Unmatch, Unmatched, Window,
};
pub use batch::{AnyBatch, Batch, KeyedBatch, KeyedRow};
pub use change::{Change, RowKind};
pub use delays::{MatchDelays, PairDelays};
pub use error::{IoError, OpError, PlanError, PlanErrors, RecordError, TimeError};
pub use key::{FloatKey, Key, KeyGroup, NullSafe};
pub use op::normalize::Conflict;
pub use op::snapshot_join::Loaded;
pub use record::{Data, Event, Keyed, TimeField, TimeUnit};
pub use state::{Clock, TimeToLive, Ttl};
pub use time::{EventTime, ProcTime, Span, ToSpan, Watermark, days, hours, millis, minutes, secs};
pub use watermark::{Generator, InputState, InputTime, Merge, Progress, TimeFigures, Watermarks};

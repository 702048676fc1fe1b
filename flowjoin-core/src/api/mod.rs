//! What users touch: handles and builders. They build a plan and run nothing.

mod align;
mod arity;
mod claim;
mod exists;
mod flow;
mod input;
mod interval;
mod keyed;
mod mode;
mod multi;
mod owed;
mod policy;
mod sides;
mod snapshot;
mod stream;
mod table;
mod temporal;
mod unmatched;
mod window;
mod window_arity;

pub use crate::op::window_join::Window;
pub use exists::{Exists, NotExists};
pub use flow::Flow;
pub use input::{Input, JoinInput, JoinsOn, MaybeOptional, Optional};
pub use interval::{ClosingInput, IntervalJoin};
pub use keyed::KeyedStream;
pub use mode::{Accepts, Append, AppendOnly, Changelog, MergeMode, Mode};
pub use multi::{MultiJoin, multi_join};
pub use owed::{
    BoundsGiven, ConditionInPlace, KeyGiven, NeedsBounds, NeedsTtl, NeedsWindow, ResultGiven, TtlGiven, WindowGiven,
};
pub use policy::{
    Eager, EagerAfter, ExpiryPolicy, Final, GapPolicy, GapsClose, Retract, Silent, Truth, Unmatch, Usual,
};
pub use snapshot::SnapshotJoin;
pub use stream::Stream;
pub use table::Table;
pub use temporal::{OptionalVersions, TemporalJoin, Versioned, Versions};
pub use unmatched::{Late, Unmatched};
pub use window::{AndLate, AppendInputs, Lateness, OnTime, WindowJoin};

//! What users touch: handles and builders. They build a plan and run nothing.

mod align;
mod arity;
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
mod stream;
mod table;
mod unmatched;

pub use exists::{Exists, NotExists};
pub use flow::Flow;
pub use input::{Input, JoinInput, JoinsOn, MaybeOptional, Optional};
pub use interval::{ClosingInput, IntervalJoin};
pub use keyed::KeyedStream;
pub use mode::{Accepts, Append, AppendOnly, Changelog, MergeMode, Mode};
pub use multi::{MultiJoin, multi_join};
pub use owed::{BoundsGiven, NeedsBounds, NeedsTtl, TtlGiven};
pub use policy::{
    Eager, EagerAfter, ExpiryPolicy, Final, GapPolicy, GapsClose, Retract, Silent, Truth, Unmatch, Usual,
};
pub use stream::Stream;
pub use table::Table;
pub use unmatched::{Late, Unmatched};

//! Tables: one row a key, out of changes that need not be well-formed.
//!
//! Three operators, one idea: hold what stands, take in all changes of a batch, and send for each key touched only what
//! differs between the row that was visible before and the one that is now: nothing, `+I`, `-U +U`, or `-D`.
//!
//! - [`Replace`]: changes as a table's source tells them; a put replaces, a delete deletes, whatever was there.
//! - [`History`]: a changelog keyed anew, whose changes of one key may come from several upstream keys in any order. The
//!   rows that stand under a key are kept in the order in which they came; the newest is visible, and when it is taken
//!   back the one before is visible again. So a late retraction of an old owner never wipes the new one.
//! - [`Settled`]: the same, as of the watermark.

mod history;
mod keep;
mod net;
mod replace;
mod settled;
mod stack;

pub use history::History;
pub use replace::{Replace, Told, VERSIONS, Versions};
pub use settled::{Conflict, Settled};

//! Tools to test flows with, for users and for flowjoin itself.
//!
//! [`TestFlow`] runs a flow synchronously with both clocks in the hand of the test. [`oracle`] answers each join from
//! complete inputs, as naively as it can be written, so that operators can be compared with it. [`ChangelogChecker`]
//! says whether a changelog is legal and what it leaves standing. [`conformance`] plays engine-neutral case files on an
//! engine. Nothing here runs in production.

pub mod changelog;
pub mod conformance;
mod driver;
mod ends;
pub mod oracle;

pub use changelog::{ChangelogChecker, IllegalChange, NotStanding, NotUnique};
pub use driver::{Output, ScriptError, TestFlow, crashing};
pub use ends::{TestSink, TestSource};

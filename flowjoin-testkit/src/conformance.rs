//! The runner of engine-neutral conformance cases: input sequences, and the output that each step must give.
//!
//! A case file is read by [`CaseFile::read`]; each [`Case`] is played by [`run`] on an [`Engine`] that
//! [`engine_for`] builds for its operator. A step is compared by [`judge`](Judge) after the [`Rules`] of the operator
//! have had their say: there the differences that are by design are written down, each with its reason. A case that
//! this crate cannot play is not applicable, with the reason; it is never passed over in silence. A case that is not of
//! the format is an error, with its file and id.

mod cell;
mod engine;
pub mod engines;
mod expect;
mod interval_rules;
mod join_rules;
mod judge;
mod materializer_rules;
mod model;
mod rules;
mod run;
pub mod spec;

pub use cell::{Cell, CellRow, cells};
pub use engine::{AlignmentView, Engine, EngineError, Observed, OutRow, Record, SideRow, Status, Unbuilt};
pub use engines::engine_for;
pub use expect::{Expected, ExpectedRow};
pub use interval_rules::IntervalRules;
pub use join_rules::JoinRules;
pub use judge::Judge;
pub use materializer_rules::MaterializerRules;
pub use model::{
    Action, Case, CaseError, CaseFile, ExpectError, Order, Phase, ReadError, Sorted, Step, Strict, Verdict,
};
pub use rules::{Mismatch, NoRules, Rules};
pub use run::{Outcome, play, run};

#[cfg(test)]
mod tests;

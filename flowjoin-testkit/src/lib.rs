//! What tests of flowjoin are made of: the joins by their definition, a check of changelogs, and conformance cases.
//!
//! [`oracle`] answers each join from complete inputs, as naively as it can be written, so that operators can be
//! compared with it. [`ChangelogChecker`] says whether a changelog is legal and what it leaves standing.
//! [`conformance`] plays engine-neutral case files on an engine. Nothing here runs in production.

pub mod changelog;
pub mod conformance;
pub mod oracle;

pub use changelog::{ChangelogChecker, NotStanding};

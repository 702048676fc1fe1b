//! What tests of flowjoin are made of: the joins by their definition, and a check of changelogs.
//!
//! [`oracle`] answers each join from complete inputs, as naively as it can be written, so that operators can be
//! compared with it. [`ChangelogChecker`] says whether a changelog is legal and what it leaves standing.

pub mod changelog;
pub mod oracle;

pub use changelog::{ChangelogChecker, NotStanding};

//! Where an operator differs from the letter of a case on purpose.

use std::fmt;

use super::engine::Observed;
use super::expect::Expected;
use super::model::Action;

/// The design differences of one family of operators, applied to one case.
///
/// Before a step is compared, the rules may accept what is different by design, by making the expectation say what
/// the operator says; what they do not accept they leave alone, or refuse. Each difference is written down, with its
/// reason, where it is applied.
pub trait Rules {
    /// Sees a step after it was played, and before it is compared.
    ///
    /// # Errors
    /// If the step breaks a promise that only these rules know of.
    fn adapt(&mut self, action: &Action, expected: &mut Expected, got: &mut Observed) -> Result<(), Mismatch>;

    /// Sees the end of the case.
    ///
    /// # Errors
    /// If something that was accepted on trust has not come true.
    fn finish(&mut self) -> Result<(), Mismatch> {
        Ok(())
    }
}

/// No differences: a case is held to its letter.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRules;

impl Rules for NoRules {
    fn adapt(&mut self, _: &Action, _: &mut Expected, _: &mut Observed) -> Result<(), Mismatch> {
        Ok(())
    }
}

/// What a case asks for, and what came instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which part of the step: `out`, `late left`, `watermark`, …
    pub what: &'static str,
    /// What the case asks for.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl Mismatch {
    /// A mismatch of two things that can be printed.
    pub fn new(what: &'static str, expected: impl fmt::Display, got: impl fmt::Display) -> Mismatch {
        Mismatch { what, expected: expected.to_string(), got: got.to_string() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.what, self.expected, self.got)
    }
}

//! What a join says early, late or never: gaps of optional inputs, and the expiry of rows. All of it is in the type of
//! the result, so that what follows knows whether corrections can come.

use super::mode::{Append, Changelog, Mode};
use crate::op::multi_join::{Emit, OnExpiry};
use crate::time::Span;

mod sealed {
    pub trait Sealed {}
}

/// When the gap of an optional input is told: [`Eager`], [`EagerAfter`] or [`Final`]; [`Usual`] where nothing is said.
pub trait GapPolicy: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What that makes of the result of a regular join: append-only if a gap that was told is never filled.
    type Padding: Mode;

    /// What it makes of the result of a join that is bounded in time, where a gap closes by itself.
    type Closing: Mode;

    /// The same as a value; none where nothing is said.
    fn emit(self) -> Option<Emit>;
}

/// The promise that rows of an input are never taken back, so that a gap that was filled does not open again.
#[diagnostic::on_unimplemented(
    message = "when a gap is told can be said of facts only, but this input is a `{Self}`",
    label = "a gap that was filled can open again here",
    note = "leave out `.emit(..)`: gaps of a changelog or table are told at once, and taken back when they are filled",
    note = "if updates may be ignored, say so with `.only_inserts()` before the stream is keyed"
)]
pub trait GapsClose: Mode {}

impl GapsClose for Append {}

/// The gap is told as the join usually does: at once in a regular join, and when it can no longer be filled in an interval
/// join. What an optional input does without saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usual;

/// The gap is told at once, and taken back when it is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eager;

/// The gap is told after so long on the processing clock, unless it was filled before, and taken back when it is filled
/// later: at most one correction for each result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EagerAfter(pub Span);

/// The gap is told when it can no longer be filled: when a row beside it leaves by its time-to-live, or its interval has
/// closed, or the input has ended. Nothing is ever taken back for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Final;

impl sealed::Sealed for Usual {}
impl sealed::Sealed for Eager {}
impl sealed::Sealed for EagerAfter {}
impl sealed::Sealed for Final {}

impl GapPolicy for Usual {
    type Padding = Changelog;
    type Closing = Append;

    fn emit(self) -> Option<Emit> {
        None
    }
}

impl GapPolicy for Eager {
    type Padding = Changelog;
    type Closing = Changelog;

    fn emit(self) -> Option<Emit> {
        Some(Emit::Eager)
    }
}

impl GapPolicy for EagerAfter {
    type Padding = Changelog;
    type Closing = Changelog;

    fn emit(self) -> Option<Emit> {
        Some(Emit::EagerAfter(self.0))
    }
}

impl GapPolicy for Final {
    type Padding = Append;
    type Closing = Append;

    fn emit(self) -> Option<Emit> {
        Some(Emit::Final)
    }
}

/// What the expiry of a row does to what it gave: [`Silent`], [`Unmatch`] or [`Retract`].
pub trait ExpiryPolicy: sealed::Sealed + 'static {
    /// What that makes of the result.
    type Mode: Mode;

    /// The same as a value.
    const ON_EXPIRY: OnExpiry;
}

/// A row leaves in silence: what it gave stands. What a join does without saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent;

/// The partners of a row that has left come out without it, where it was optional or only had to exist (or not): as if
/// it had been deleted. What required it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmatch;

/// What a row gave is taken back, as if it had been deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retract;

impl sealed::Sealed for Silent {}
impl sealed::Sealed for Unmatch {}
impl sealed::Sealed for Retract {}

impl ExpiryPolicy for Silent {
    type Mode = Append;
    const ON_EXPIRY: OnExpiry = OnExpiry::Silent;
}

impl ExpiryPolicy for Unmatch {
    type Mode = Changelog;
    const ON_EXPIRY: OnExpiry = OnExpiry::Unmatch;
}

impl ExpiryPolicy for Retract {
    type Mode = Changelog;
    const ON_EXPIRY: OnExpiry = OnExpiry::Retract;
}

/// What a condition answers: `true`, `false`, or `None` for unknown, which is no match, as in SQL.
#[diagnostic::on_unimplemented(
    message = "a condition of a join cannot answer with `{Self}`",
    label = "this condition does not say whether it holds",
    note = "it answers with a `bool`, or with an `Option<bool>` where `None` is unknown and no match"
)]
pub trait Truth {
    /// Whether it is a match.
    #[allow(clippy::wrong_self_convention)]
    fn is_true(self) -> bool;
}

impl Truth for bool {
    fn is_true(self) -> bool {
        self
    }
}

impl Truth for Option<bool> {
    fn is_true(self) -> bool {
        self == Some(true)
    }
}

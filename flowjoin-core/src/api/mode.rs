//! Whether a stream only adds rows, as a type.

use crate::io::{TakesAppend, TakesChanges};
use crate::plan::ChangeMode;

/// Facts: rows are only ever added.
#[derive(Clone, Copy, Debug)]
pub enum Append {}

/// Rows are added, updated and taken back.
#[derive(Clone, Copy, Debug)]
pub enum Changelog {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Append {}
    impl Sealed for super::Changelog {}
}

/// [`Append`] or [`Changelog`].
pub trait Mode: sealed::Sealed + Send + Sync + 'static {
    /// The same as a value.
    const MODE: ChangeMode;
}

impl Mode for Append {
    const MODE: ChangeMode = ChangeMode::Append;
}

impl Mode for Changelog {
    const MODE: ChangeMode = ChangeMode::Changelog;
}

/// The promise that rows are only ever added.
#[diagnostic::on_unimplemented(
    message = "this join needs append-only input, but the stream is `{Self}`",
    label = "updates and deletes arrive here",
    note = "rows already joined could not be taken back; use `.join(..)` or `multi_join!`, whose results can change",
    note = "if updates may be ignored, say so with `.only_inserts()` before the stream is keyed"
)]
pub trait AppendOnly: Mode {}

impl AppendOnly for Append {}

/// The mode of what two streams become together: append-only if both are.
pub trait MergeMode<Rhs: Mode>: Mode {
    /// That mode.
    type Out: Mode;
}

impl<M: Mode> MergeMode<M> for Append {
    type Out = M;
}

impl<M: Mode> MergeMode<M> for Changelog {
    type Out = Changelog;
}

/// What a sink takes.
#[diagnostic::on_unimplemented(
    message = "this sink only takes append-only rows, but the stream also updates and deletes",
    label = "this stream is a `{M}`",
    note = "use an upsert or changelog sink, or `.only_inserts()` if updates may be lost"
)]
pub trait Accepts<M: Mode> {}

impl Accepts<Append> for TakesAppend {}
impl<M: Mode> Accepts<M> for TakesChanges {}

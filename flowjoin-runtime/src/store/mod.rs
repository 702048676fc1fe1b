//! Stores of state in files: [`LogStore`].
//!
//! A store is a folder of *segments*, files that never change, each the net changes of some epochs in a row, in the order
//! of their keys. The *manifest* names those that count, oldest first; it is replaced as a whole, and an epoch is there
//! once a manifest that names its segment is. Any other file is what a crash has left behind, and goes at opening.
//!
//! ```text
//! lock                    held by whoever has the store open; it vanishes with the process
//! manifest                which segments there are, with their lengths and checksums
//! 000000000007.segment    the oldest one: nothing is below it, so it has no deletes
//! 000000000012.segment    what came after it; a key here hides the same key further up
//! *.tmp                   under way: it gets its name when it is whole and has reached the disk
//! ```

mod bytes;
mod cursor;
mod disk;
mod log;
mod manifest;
mod merging;
mod segment;
#[cfg(test)]
mod tests;

pub use log::LogStore;

//! Tools to test flows with.

mod driver;
mod ends;

pub use driver::{Output, TestFlow};
pub use ends::{TestSink, TestSource};

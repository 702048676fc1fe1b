//! Typed joins over event streams.

pub use flowjoin_core::*;
pub use flowjoin_macros::*;

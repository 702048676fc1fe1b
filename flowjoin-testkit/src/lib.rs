//! Part of flowjoin.

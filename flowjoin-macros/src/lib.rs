//! The derives of flowjoin.

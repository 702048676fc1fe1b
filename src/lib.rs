//! flowjoin

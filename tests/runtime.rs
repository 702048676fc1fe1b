//! Whole flows on the tokio host: the same answer on any number of tasks, backpressure, linger, clean ends, and errors
//! and panics that say where they came from.

#[path = "runtime/alignment.rs"]
mod alignment;
#[path = "runtime/bad_times.rs"]
mod bad_times;
#[path = "runtime/circles.rs"]
mod circles;
#[path = "runtime/cli.rs"]
mod cli;
#[path = "runtime/ends.rs"]
mod ends;
#[path = "runtime/failures.rs"]
mod failures;
#[path = "runtime/flow.rs"]
mod flow;
#[path = "runtime/moved.rs"]
mod moved;
#[path = "runtime/process.rs"]
mod process;
#[path = "runtime/traffic.rs"]
mod traffic;
#[path = "runtime/unmet.rs"]
mod unmet;

//! Random histories through the joins as they run, as one task a stage and as four, against the joins by their
//! definition.
//!
//! `FLOWJOIN_CASES=20000 cargo test --release --test oracle` tries that many histories a property. The seeds of
//! histories that failed are kept in `tests/seeds`, and are tried first.

mod batches;
mod chain;
mod changelog;
mod changes;
mod history;
mod interval;
mod keyed;
mod labels;
mod met;
mod newest;
mod policies;
mod snapshot;
mod tables;
mod temporal;
mod window;

use proptest::test_runner::{Config, FileFailurePersistence};

/// So many histories, unless the environment asks for more.
fn config(cases: u32) -> Config {
    let asked = std::env::var("FLOWJOIN_CASES").ok().and_then(|text| text.parse().ok());
    let seeds = FileFailurePersistence::Direct("tests/seeds/oracle.txt");
    Config {
        cases: asked.unwrap_or(cases),
        failure_persistence: Some(Box::new(seeds)),
        max_shrink_iters: 2_000,
        ..Config::default()
    }
}

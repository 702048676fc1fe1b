//! What each join answers, as scripts: rows, watermarks and clock ticks with what comes out under each.
//!
//! The expectations are worked out by hand from the definitions of the joins.

#[path = "joins/alignment.rs"]
mod alignment;
#[path = "joins/chains.rs"]
mod chains;
#[path = "joins/debezium.rs"]
mod debezium;
#[path = "joins/delays.rs"]
mod delays;
#[path = "joins/expiry.rs"]
mod expiry;
#[path = "joins/fanout.rs"]
mod fanout;
#[path = "joins/held_tables.rs"]
mod held_tables;
#[path = "joins/hot_keys.rs"]
mod hot_keys;
#[path = "joins/interval.rs"]
mod interval;
#[path = "joins/interval_kinds.rs"]
mod interval_kinds;
#[path = "joins/kept.rs"]
mod kept;
#[path = "joins/kept_store.rs"]
mod kept_store;
#[path = "joins/late.rs"]
mod late;
#[path = "joins/newest.rs"]
mod newest;
#[path = "joins/regular.rs"]
mod regular;
#[path = "joins/rows.rs"]
mod rows;
#[path = "joins/script.rs"]
mod script;
#[path = "joins/snapshot.rs"]
mod snapshot;
#[path = "joins/tables.rs"]
mod tables;
#[path = "joins/temporal.rs"]
mod temporal;
#[path = "joins/time.rs"]
mod time;
#[path = "joins/timed_kept.rs"]
mod timed_kept;
#[path = "joins/versions.rs"]
mod versions;
#[path = "joins/window.rs"]
mod window;
#[path = "joins/window_kept.rs"]
mod window_kept;

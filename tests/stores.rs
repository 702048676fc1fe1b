//! Every store of state keeps the same promises: one suite, played on each.
//!
//! `FLOWJOIN_CASES=20000 cargo test --release --test stores` tries that many histories; seeds of those that
//! failed are kept in `tests/seeds`, and are tried first.
#![allow(clippy::unwrap_used)]

#[path = "stores/suite.rs"]
mod suite;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use flowjoin::state::MemStore;
use flowjoin_runtime::store::LogStore;
use suite::{Place, conforms};

/// A store in memory outlives nothing: it stays as it is where others are opened anew.
#[derive(Default)]
struct Memory;

impl Place for Memory {
    type Store = MemStore;

    fn open(&self) -> MemStore {
        MemStore::default()
    }

    fn reopen(&self, store: MemStore) -> MemStore {
        store
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Default for Folder {
    fn default() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("flowjoin-stores-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Place for Folder {
    type Store = LogStore;

    fn open(&self) -> LogStore {
        LogStore::open(&self.0).expect("the folder is ours")
    }

    fn reopen(&self, store: LogStore) -> LogStore {
        drop(store);
        self.open()
    }
}

mod mem_store {
    super::conforms!(super::Memory);
}

mod log_store {
    super::conforms!(super::Folder);
}

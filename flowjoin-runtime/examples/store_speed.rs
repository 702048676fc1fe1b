//! How fast the store in files is: a large epoch, small ones after it, and what it takes to read all back.
//!
//! `cargo run --release -p flowjoin-runtime --example store_speed -- FOLDER`; the folder must be new, and on the disk that
//! is to be measured.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use flowjoin_core::state::{Changes, Epoch, StateStore, StoreError};
use flowjoin_runtime::store::LogStore;

fn main() -> Result<(), StoreError> {
    let folder = std::env::args().nth(1).map(PathBuf::from).ok_or_else(|| StoreError::new("which folder?"))?;
    let mut store = LogStore::open(&folder)?;
    if store.epoch().is_some() {
        return Err(StoreError::new("the folder is not new"));
    }
    let large = changes(0, KEYS);
    let (_, took) = timed(|| store.commit(Epoch(1), &large, b"record"))?;
    say(&format!("commit of {KEYS} keys"), took);

    let (_, took) = timed(|| scanned(&store))?;
    say("scan of all", took);

    let mut slowest = Duration::ZERO;
    let begin = Instant::now();
    for epoch in 2..2 + COMMITS {
        let (_, took) = timed(|| store.commit(Epoch(epoch), &changes(epoch * 7_919, SMALL), b"record"))?;
        slowest = slowest.max(took);
    }
    say(&format!("commit of {SMALL} keys, on average of {COMMITS}"), begin.elapsed() / COMMITS as u32);
    say("the slowest of them", slowest);

    drop(store);
    let (store, took) = timed(|| LogStore::open(&folder))?;
    say("opening it", took);
    let (bytes, took) = timed(|| scanned(&store))?;
    say("scan of all", took);
    let (_, took) = timed(|| (0..GETS).try_for_each(|at| store.get(&key(at * 7_777_777)).map(drop)))?;
    say("get of a key", took / GETS as u32);
    println!("{} bytes on the disk for {bytes} of keys and values", store.stats().bytes);
    Ok(())
}

fn timed<V>(what: impl FnOnce() -> Result<V, StoreError>) -> Result<(V, Duration), StoreError> {
    let begin = Instant::now();
    let value = what()?;
    Ok((value, begin.elapsed()))
}

fn say(what: &str, took: Duration) {
    println!("{what:<45} {took:>12.3?}");
}

fn scanned(store: &LogStore) -> Result<usize, StoreError> {
    let mut bytes = 0;
    store.scan(b"", &mut |key, value| bytes += key.len() + value.len())?;
    Ok(bytes)
}

fn key(number: u64) -> [u8; 16] {
    let number = number % KEYS;
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn changes(from: u64, count: u64) -> Changes {
    let mut changes = Changes::default();
    for number in from..from + count {
        changes.put(&key(number), &[number as u8; 40]);
    }
    changes.sort();
    changes
}

const KEYS: u64 = 1_000_000;
const SMALL: u64 = 1_000;
const COMMITS: u64 = 200;
const GETS: u64 = 10_000;

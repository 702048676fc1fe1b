//! Tests of the store on its files: crashes, damage, and what a folder is refused for.

mod crash;
mod damage;
mod life;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use flowjoin_core::state::{Changes, Epoch, StateStore, StoreError};

use super::LogStore;
use super::disk::Disk;
use super::merging::Limits;

/// Something that was done to a folder or to a file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Create(String),
    Write(String, Vec<u8>),
    Sync(String),
    Rename(String, String),
    Remove(String),
    SyncFolder,
    Begun(Epoch),
    Returned(Epoch),
}

/// All that was done, in order. Merges stand still while it is told to hold them.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<(Mutex<Notes>, Condvar)>);

#[derive(Debug, Default)]
struct Notes {
    steps: Vec<Step>,
    holding: Holding,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Holding {
    #[default]
    None,
    // All but the one that writes the file of this name.
    AllBut(String),
}

impl Journal {
    pub fn note(&self, step: Step) {
        let (notes, released) = &*self.0;
        let is_merge = std::thread::current().name() == Some("flowjoin-merge");
        let is_held = |notes: &mut Notes| match (&notes.holding, &step) {
            (Holding::AllBut(free), Step::Create(name)) => is_merge && name != free,
            _ => false,
        };
        let mut notes = released.wait_while(notes.lock().unwrap(), is_held).unwrap();
        notes.steps.push(step);
    }

    fn steps(&self) -> Vec<Step> {
        self.0.0.lock().unwrap().steps.clone()
    }

    fn hold(&self, holding: Holding) {
        self.0.0.lock().unwrap().holding = holding;
        self.0.1.notify_all();
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("flowjoin-log-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
        entries.map(|it| (it.file_name().into_string().unwrap(), std::fs::read(it.path()).unwrap())).collect()
    }

    fn names(&self) -> Vec<String> {
        self.files().into_keys().collect()
    }

    fn put(&self, files: &BTreeMap<String, Vec<u8>>) {
        let _ = std::fs::remove_dir_all(&self.0);
        std::fs::create_dir_all(&self.0).unwrap();
        files.iter().for_each(|(name, bytes)| std::fs::write(self.0.join(name), bytes).unwrap());
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All that a store says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    epoch: Option<Epoch>,
    record: Vec<u8>,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Told {
    fn by(store: &LogStore) -> Result<Told, StoreError> {
        let mut values = BTreeMap::new();
        store.scan(b"", &mut |key, value| assert_eq!(values.insert(key.to_vec(), value.to_vec()), None))?;
        Ok(Told { epoch: store.epoch(), record: store.record().to_vec(), values })
    }

    fn commit(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) {
        for (key, value) in changes.iter() {
            match value {
                Some(value) => self.values.insert(key.to_vec(), value.to_vec()),
                None => self.values.remove(key),
            };
        }
        (self.epoch, self.record) = (Some(epoch), record.to_vec());
    }
}

// Small enough that a few commits make several blocks and merges.
const SMALL: Limits = Limits { block_bytes: 60, run: 3, segment_bytes: 1, base_bytes: 900 };

fn open(folder: &Path) -> LogStore {
    LogStore::of(Disk::open(folder).unwrap(), SMALL).unwrap()
}

// What happens in an epoch, without chance: keys come, are written again and go; some epochs are empty.
fn changes(epoch: u64) -> Changes {
    let mut changes = Changes::default();
    let mut number = epoch;
    for _ in 0..[9, 4, 0, 2, 14][epoch as usize % 5] {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = format!("{}", (number >> 33) % 40);
        match (number >> 50) % 4 {
            0 => changes.delete(key.as_bytes()),
            _ => changes.put(key.as_bytes(), format!("{epoch} of {key}").as_bytes()),
        }
    }
    changes.sort();
    changes
}

fn record(epoch: u64) -> Vec<u8> {
    format!("record {epoch}").into_bytes()
}

// Commits epochs one after the other and gives what the store must say after each, the new store first. Merges are waited
// for before each epoch that the number divides, and are taken over as they come otherwise.
fn play(store: &mut LogStore, journal: &Journal, epochs: u64, wait_every: u64) -> Vec<Told> {
    let mut told = vec![Told::default()];
    for epoch in 1..=epochs {
        if epoch.is_multiple_of(wait_every) {
            store.wait();
        }
        let mut next = told[told.len() - 1].clone();
        next.commit(Epoch(epoch), &changes(epoch), &record(epoch));
        journal.note(Step::Begun(Epoch(epoch)));
        store.commit(Epoch(epoch), &changes(epoch), &record(epoch)).unwrap();
        journal.note(Step::Returned(Epoch(epoch)));
        assert_eq!(Told::by(store).unwrap(), next);
        told.push(next);
    }
    told
}

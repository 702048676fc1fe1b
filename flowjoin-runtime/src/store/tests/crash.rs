//! A crash at every step of commits and merges, on a disk that keeps only what it was asked to keep.
//!
//! All that the store does to its folder is written down. Then, for each beginning of that, the folders are made that a
//! crash there may leave: names that were not brought to the disk have changed or have not, each by itself; bytes that
//! were not are there, in part, not at all, or as zeros. Each such folder must open as the last epoch whose commit had
//! returned, or as the one that was under way.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::store::manifest::Named;

#[derive(Clone, Default)]
struct Model {
    files: Vec<Bytes>,
    // As programs see it, and as it is on the disk for sure; by number of the file.
    seen: BTreeMap<String, usize>,
    sure: BTreeMap<String, usize>,
    // What was done to names since the folder was brought to the disk.
    unsure: Vec<Renaming>,
    returned: usize,
    begun: usize,
}

#[derive(Clone, Default)]
struct Bytes {
    bytes: Vec<u8>,
    sure: usize,
}

#[derive(Clone)]
enum Renaming {
    Link(String, usize),
    Move(String, String, usize),
    Unlink(String),
}

type Files = BTreeMap<String, Vec<u8>>;

impl Model {
    fn play(&mut self, step: &Step) {
        match step {
            Step::Create(name) => {
                self.files.push(Bytes::default());
                self.rename(Renaming::Link(name.clone(), self.files.len() - 1));
            }
            Step::Write(name, bytes) => self.files[self.seen[name]].bytes.extend(bytes),
            Step::Sync(name) => {
                let file = &mut self.files[self.seen[name]];
                file.sure = file.bytes.len();
            }
            Step::Rename(from, to) => self.rename(Renaming::Move(from.clone(), to.clone(), self.seen[from])),
            Step::Remove(name) => self.rename(Renaming::Unlink(name.clone())),
            Step::SyncFolder => {
                self.sure = self.seen.clone();
                self.unsure.clear();
            }
            Step::Begun(epoch) => self.begun = epoch.0 as usize,
            Step::Returned(epoch) => self.returned = epoch.0 as usize,
        }
    }

    fn rename(&mut self, renaming: Renaming) {
        apply(&mut self.seen, &renaming);
        self.unsure.push(renaming);
    }

    // Folders that a crash may leave now.
    fn left(&self) -> BTreeSet<Files> {
        let count = self.unsure.len();
        let mut chosen: BTreeSet<Vec<usize>> = (0..=count).map(|end| (0..end).collect()).collect();
        for one in 0..count {
            chosen.insert(vec![one]);
            chosen.insert((0..count).filter(|other| *other != one).collect());
        }
        let mut left = BTreeSet::new();
        for chosen in chosen {
            let mut names = self.sure.clone();
            chosen.iter().for_each(|&at| apply(&mut names, &self.unsure[at]));
            for content in [Bytes::none, Bytes::half, Bytes::zeros, Bytes::all] {
                left.insert(names.iter().map(|(name, &at)| (name.clone(), content(&self.files[at]))).collect());
            }
        }
        left
    }
}

fn apply(names: &mut BTreeMap<String, usize>, renaming: &Renaming) {
    match renaming {
        Renaming::Link(name, file) => drop(names.insert(name.clone(), *file)),
        Renaming::Move(from, to, file) => {
            names.remove(from);
            names.insert(to.clone(), *file);
        }
        Renaming::Unlink(name) => drop(names.remove(name)),
    }
}

impl Bytes {
    fn none(&self) -> Vec<u8> {
        self.bytes[..self.sure].to_vec()
    }

    fn half(&self) -> Vec<u8> {
        self.bytes[..(self.sure + self.bytes.len()).div_ceil(2)].to_vec()
    }

    fn zeros(&self) -> Vec<u8> {
        let mut bytes = self.half();
        bytes.resize(self.bytes.len(), 0);
        bytes
    }

    fn all(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

// Plays epochs, crashes everywhere, and gives how many folders were tried.
fn crash_everywhere(epochs: u64, wait_every: u64) -> usize {
    let (folder, crashed) = (Folder::new(), Folder::new());
    let disk = Disk::open(&folder.0).unwrap();
    let journal = disk.journal.clone();
    let mut store = LogStore::of(disk, SMALL).unwrap();
    let told = play(&mut store, &journal, epochs, wait_every);
    drop(store);
    let (mut model, mut tried) = (Model::default(), BTreeSet::new());
    let steps = journal.steps();
    for (at, step) in steps.iter().enumerate() {
        model.play(step);
        for files in model.left() {
            if !tried.insert((model.returned, model.begun, files.clone())) {
                continue;
            }
            crashed.put(&files);
            let store = LogStore::of(Disk::open(&crashed.0).unwrap(), SMALL);
            let found = store.and_then(|store| Told::by(&store));
            let found = found.unwrap_or_else(|error| panic!("after {at} steps, {step:?}: {error}"));
            let epoch = found.epoch.map_or(0, |epoch| epoch.0 as usize);
            assert!(epoch == model.returned || epoch == model.begun, "epoch {epoch} after {at} steps, {step:?}");
            assert!(found == told[epoch], "other data in epoch {epoch} after {at} steps, {step:?}");
            let names: BTreeSet<String> = crashed.names().into_iter().collect();
            assert!(!names.iter().any(|name| name.ends_with(".tmp")), "leftovers stay: {names:?}");
        }
    }
    assert!(steps.iter().filter(|step| matches!(step, Step::Remove(_))).count() > 10, "segments were merged");
    tried.len()
}

#[test]
fn a_crash_at_any_step_leaves_the_last_epoch_or_the_one_under_way() {
    let tried = crash_everywhere(24, 1);
    assert!(tried > 1000, "{tried} folders");
}

#[test]
fn a_crash_at_any_step_while_merges_run_beside_commits_leaves_an_epoch_too() {
    crash_everywhere(24, 3);
}

#[test]
fn a_file_of_the_commit_under_way_may_be_cut_off_anywhere() {
    let (folder, crashed) = (Folder::new(), Folder::new());
    let mut store = open(&folder.0);
    let told = play(&mut store, &Journal::default(), 3, 1);
    // What a merge is writing, or has written, belongs to no commit yet.
    store.wait();
    let mut before = folder.files();
    let mut counts: BTreeSet<String> = store.named().iter().map(Named::file).collect();
    counts.extend(["lock", "manifest"].map(str::to_string));
    before.retain(|name, _| counts.contains(name));
    let epoch = Epoch(4);
    store.commit(epoch, &changes(4), &record(4)).unwrap();
    let named = store.named();
    let segment = named[named.len() - 1].file();
    let after = folder.files();
    for (whole, leftover, full) in [
        ("", format!("{segment}.tmp"), &after[&segment]),
        ("", segment.clone(), &after[&segment]),
        (&segment, "manifest.tmp".to_string(), &after["manifest"]),
    ] {
        for len in 0..=full.len() {
            let mut files = before.clone();
            files.extend(after.get(whole).map(|bytes| (whole.to_string(), bytes.clone())));
            files.insert(leftover.clone(), full[..len].to_vec());
            crashed.put(&files);
            let store = open(&crashed.0);
            assert_eq!(Told::by(&store).unwrap(), told[3]);
            assert_eq!(crashed.names(), before.keys().cloned().collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_store_goes_on_after_a_crash_in_the_middle_of_a_commit() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let mut told = play(&mut store, &Journal::default(), 7, 1).pop().unwrap();
    let next = store.named().iter().map(|named| named.number).max().unwrap() + 1;
    drop(store);
    for name in [format!("{next:012}.segment"), format!("{next:012}.segment.tmp"), "manifest.tmp".to_string()] {
        std::fs::write(folder.0.join(name), b"torn").unwrap();
    }
    for epoch in 8..20 {
        let mut store = open(&folder.0);
        told.commit(Epoch(epoch), &changes(epoch), &record(epoch));
        store.commit(Epoch(epoch), &changes(epoch), &record(epoch)).unwrap();
        store.wait();
        drop(store);
        assert_eq!(Told::by(&open(&folder.0)).unwrap(), told);
    }
}

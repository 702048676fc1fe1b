//! A store from its first opening on: the lock, what it takes up, and how merges keep it small.

use super::*;

#[test]
fn a_store_is_open_once_at_a_time() {
    let folder = Folder::new();
    let store = LogStore::open(&folder.0).unwrap();
    let error = LogStore::open(&folder.0).unwrap_err().to_string();
    assert!(error.contains("is already open, here or in another process; end that one, or give this one"), "{error}");
    drop(store);
    LogStore::open(&folder.0).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_told_by_its_name() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    std::fs::write(&file, b"").unwrap();
    let error = LogStore::open(file.join("store")).unwrap_err().to_string();
    assert!(error.contains("file/store` cannot be made: ") && error.ends_with("then start again"), "{error}");
}

#[test]
fn files_of_others_stay() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let names = ["notes.tmp", "my.segment", "12.segment", "0000000000x1.segment"];
    names.iter().for_each(|name| std::fs::write(folder.0.join(name), b"").unwrap());
    drop(open(&folder.0));
    let expected = ["0000000000x1.segment", "12.segment", "lock", "manifest", "my.segment", "notes.tmp"];
    assert_eq!(folder.names(), expected);
}

#[test]
fn what_is_written_again_and_again_takes_up_little_more_than_once() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    for epoch in 1..=80_u64 {
        let mut changes = Changes::default();
        for key in 0..50_u64 {
            changes.put(&key.to_be_bytes(), &epoch.to_be_bytes());
        }
        store.commit(Epoch(epoch), &changes, b"").unwrap();
        store.wait();
        assert!(store.named().len() <= 6, "{:?}", store.named());
    }
    let once = store.named()[0].bytes;
    assert!(store.stats().bytes <= 4 * once, "{:?} for {once}", store.stats());
    // The files that count, those that were merged last, the result of that, the lock and the manifest.
    assert!(folder.names().len() <= 12, "{:?}", folder.names());
}

#[test]
fn deletes_go_once_nothing_is_below_them() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let (mut puts, mut deletes) = (Changes::default(), Changes::default());
    for key in 0..100_u64 {
        puts.put(&key.to_be_bytes(), b"value");
        deletes.delete(&key.to_be_bytes());
    }
    store.commit(Epoch(1), &puts, b"").unwrap();
    assert_eq!(store.stats().keys, 100);
    store.commit(Epoch(2), &deletes, b"").unwrap();
    for epoch in 3..20 {
        assert_eq!(Told::by(&store).unwrap().values, BTreeMap::new());
        store.commit(Epoch(epoch), &deletes, b"").unwrap();
        store.wait();
    }
    store.commit(Epoch(20), &Changes::default(), b"last").unwrap();
    let Told { epoch, record, values } = Told::by(&store).unwrap();
    assert_eq!((epoch, record, values.len()), (Some(Epoch(20)), b"last".to_vec(), 0));
    let base = store.named()[0];
    assert!(base.last > Epoch(2) && base.bytes < 200, "{base:?}");
}

#[test]
fn what_is_deleted_leaves_the_disk() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let (mut puts, mut deletes) = (Changes::default(), Changes::default());
    for key in 0..100_u64 {
        puts.put(&key.to_be_bytes(), &[7; 1000]);
        deletes.delete(&key.to_be_bytes());
    }
    store.commit(Epoch(1), &puts, b"").unwrap();
    store.commit(Epoch(2), &deletes, b"").unwrap();
    store.wait();
    store.commit(Epoch(3), &Changes::default(), b"").unwrap();
    assert!(store.stats().bytes < 1000, "{:?}", store.stats());
}

#[test]
fn deletes_stay_while_something_is_below_them() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let mut puts = Changes::default();
    for key in 0..100_u64 {
        puts.put(&key.to_be_bytes(), &[7; 100]);
    }
    store.commit(Epoch(1), &puts, b"").unwrap();
    let base = store.named()[0];
    for epoch in 2..20_u64 {
        let mut delete = Changes::default();
        delete.delete(&epoch.to_be_bytes());
        store.commit(Epoch(epoch), &delete, b"").unwrap();
        store.wait();
    }
    let named = store.named();
    assert!(named[0] == base && named.len() < 10, "the deletes were merged, and not with the base: {named:?}");
    assert_eq!(Told::by(&store).unwrap().values.len(), 100 - 18);
    assert_eq!(store.get(&5_u64.to_be_bytes()), Ok(None));
    assert_eq!(store.stats().keys, 100 - 18);
}

// Lets merges go on, also where a test fails: a store waits for them as it is closed.
struct Release(Journal);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.hold(Holding::None);
    }
}

// Commits epochs while merges are held, until two of them wait; gives what the store must say.
fn two_merges(store: &mut LogStore, journal: &Journal) -> Told {
    journal.hold(Holding::AllBut(String::new()));
    let mut told = Told::default();
    for epoch in 1..40 {
        let next = &changes(epoch);
        told.commit(Epoch(epoch), next, &record(epoch));
        store.commit(Epoch(epoch), next, &record(epoch)).unwrap();
        assert_eq!(Told::by(store).unwrap(), told);
    }
    assert_eq!(store.merges().len(), 2);
    told
}

fn empty_commit(store: &mut LogStore, told: &mut Told) {
    let epoch = store.epoch().unwrap().next();
    told.commit(epoch, &Changes::default(), b"");
    store.commit(epoch, &Changes::default(), b"").unwrap();
    assert_eq!(Told::by(store).unwrap(), *told);
}

#[test]
fn merges_are_taken_over_in_the_order_in_which_they_end() {
    for later_first in [true, false] {
        let folder = Folder::new();
        let disk = Disk::open(&folder.0).unwrap();
        let journal = disk.journal.clone();
        let mut store = LogStore::of(disk, SMALL).unwrap();
        let _release = Release(journal.clone());
        let mut told = two_merges(&mut store, &journal);
        let before = store.named().len();
        let at = usize::from(later_first);
        let file = store.merges()[at].file();
        journal.hold(Holding::AllBut(format!("{file}.tmp")));
        let merging = &mut store.merges()[at];
        merging.wait().unwrap();
        let (first, last) = (merging.inputs()[0].named().first, merging.inputs().last().unwrap().named().last);
        let result = merging.result().unwrap();
        assert_eq!((result.named().first, result.named().last, result.record()), (first, last, &record(last.0)[..]));
        empty_commit(&mut store, &mut told);
        let then = store.named().len();
        assert!(then < before && store.named().iter().any(|named| named.file() == file), "{before}, then {then}");
        journal.hold(Holding::None);
        store.wait();
        empty_commit(&mut store, &mut told);
        assert!(store.named().len() < then);
        store.wait();
        drop(store);
        assert_eq!(Told::by(&open(&folder.0)).unwrap(), told);
    }
}

#[test]
fn a_store_that_is_closed_while_it_merges_is_closed_when_no_thread_is_left() {
    let folder = Folder::new();
    let disk = Disk::open(&folder.0).unwrap();
    let journal = disk.journal.clone();
    let mut store = LogStore::of(disk, SMALL).unwrap();
    let release = Release(journal.clone());
    let told = two_merges(&mut store, &journal);
    let inputs: Vec<_> = store.merges().iter().map(|merging| Arc::downgrade(&merging.inputs()[0])).collect();
    let releasing = std::thread::spawn(move || drop(release));
    drop(store);
    // Whoever writes still has what it merges.
    assert!(inputs.iter().all(|input| input.upgrade().is_none()), "a thread writes where another may open the store");
    releasing.join().unwrap();
    assert_eq!(Told::by(&open(&folder.0)).unwrap(), told);
}

#[test]
fn unsorted_changes_are_refused_and_leave_nothing() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let mut changes = Changes::default();
    changes.put(b"b", b"");
    changes.put(b"a", b"");
    let names = folder.names();
    let error = store.commit(Epoch(1), &changes, b"").unwrap_err().to_string();
    assert_eq!(error, "the changes of epoch 1 are not in the order of their keys, each once; please report this");
    assert_eq!((store.epoch(), folder.names()), (None, names));
    changes.sort();
    store.commit(Epoch(1), &changes, b"").unwrap();
}

#[test]
fn a_commit_that_cannot_be_written_leaves_the_store_as_it_was() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let told = play(&mut store, &Journal::default(), 4, 1).pop().unwrap();
    store.wait();
    let next = store.named().iter().map(|named| named.number).max().unwrap() + 1;
    // Folders stand where the files of the next commits would be written.
    for number in next..next + 3 {
        std::fs::create_dir(folder.0.join(format!("{number:012}.segment.tmp"))).unwrap();
    }
    let failures = (0..4).filter(|_| store.commit(Epoch(5), &changes(5), b"").is_err()).count();
    assert!((1..=3).contains(&failures), "{failures}");
    drop(store);
    let mut after = told;
    after.commit(Epoch(5), &changes(5), b"");
    assert_eq!(Told::by(&open(&folder.0)).unwrap(), after);
}

//! Files that are not what was written: refused with the name of the file, or of no consequence, and never read wrongly.

use super::*;

// A store of several segments, one of them merged; its files, and what it says.
fn stored(folder: &Folder) -> (BTreeMap<String, Vec<u8>>, Told) {
    let mut store = open(&folder.0);
    let told = play(&mut store, &Journal::default(), 11, 1).pop().unwrap();
    assert!(store.named().len() > 1);
    store.wait();
    drop(store);
    // Opening takes away what was merged and is not taken over.
    drop(open(&folder.0));
    (folder.files(), told)
}

// What the store says if a file holds these bytes instead, or what it is refused with.
fn with(folder: &Folder, name: &str, bytes: &[u8]) -> Result<Told, StoreError> {
    std::fs::write(folder.0.join(name), bytes).unwrap();
    let store = LogStore::of(Disk::open(&folder.0).unwrap(), SMALL)?;
    let told = Told::by(&store)?;
    for (key, value) in &told.values {
        assert_eq!(store.get(key)?.as_ref(), Some(value));
    }
    Ok(told)
}

#[track_caller]
fn is_refused(result: Result<Told, StoreError>, name: &str) {
    let error = result.expect_err("the store is damaged").to_string();
    assert!(error.contains(&format!("{name}` is damaged: ")), "{error}");
    assert!(error.ends_with("put the whole folder back from a copy, or remove it to begin without its state"));
}

#[test]
fn a_byte_that_is_other_anywhere_is_refused() {
    let folder = Folder::new();
    let (files, told) = stored(&folder);
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "lock") {
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            is_refused(with(&folder, name, &other), name);
        }
        assert_eq!(with(&folder, name, bytes).unwrap(), told);
    }
    assert_eq!(with(&folder, "lock", b"whatever").unwrap(), told);
}

#[test]
fn a_file_that_is_too_short_too_long_or_gone_is_refused() {
    let folder = Folder::new();
    let (files, told) = stored(&folder);
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "lock") {
        for len in 0..bytes.len() {
            is_refused(with(&folder, name, &bytes[..len]), name);
        }
        is_refused(with(&folder, name, &[&bytes[..], b"x"].concat()), name);
        std::fs::remove_file(folder.0.join(name)).unwrap();
        is_refused(LogStore::open(&folder.0).map(|_| Told::default()), name);
        assert_eq!(with(&folder, name, bytes).unwrap(), told);
    }
}

#[test]
fn a_segment_is_not_taken_for_another() {
    let folder = Folder::new();
    let (files, _) = stored(&folder);
    let segments: Vec<&String> = files.keys().filter(|name| name.ends_with(".segment")).collect();
    for (one, other) in segments.iter().zip(segments.iter().cycle().skip(1)) {
        is_refused(with(&folder, one, &files[*other]), one);
        folder.put(&files);
    }
}

#[test]
fn a_refused_store_is_left_as_it_is() {
    let folder = Folder::new();
    let (mut files, _) = stored(&folder);
    files.insert("000000000999.segment".to_string(), b"left behind".to_vec());
    files.remove("manifest");
    folder.put(&files);
    let error = LogStore::open(&folder.0).unwrap_err().to_string();
    assert!(error.contains("manifest` is damaged: it is not there, and there are segments that it named"), "{error}");
    assert_eq!(folder.names(), files.into_keys().collect::<Vec<_>>());
}

#[test]
fn damage_that_a_merge_meets_is_told_by_the_next_commit() {
    let folder = Folder::new();
    let mut store = open(&folder.0);
    let mut changes = Changes::default();
    changes.put(b"key", b"value");
    store.commit(Epoch(1), &changes, b"").unwrap();
    let name = store.named()[0].file();
    let mut bytes = std::fs::read(folder.0.join(&name)).unwrap();
    bytes[45] ^= 1;
    std::fs::write(folder.0.join(&name), bytes).unwrap();
    let error = (2..1000).find_map(|epoch| store.commit(Epoch(epoch), &changes, b"").err());
    let error = error.expect("a merge runs after a few commits").to_string();
    assert!(error.starts_with("segments could not be merged into `") && error.contains(&name), "{error}");
    let epoch = store.epoch().unwrap();
    store.commit(epoch.next(), &changes, b"more").unwrap();
    assert_eq!(store.record(), b"more");
}

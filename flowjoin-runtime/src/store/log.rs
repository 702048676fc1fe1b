//! The store that is used where nothing else was asked for: a folder of segments.
//!
//! A commit writes its changes as one segment, brings it to the disk, and then replaces the manifest by one that names it
//! too. That instant is the commit: a crash before leaves a file that nobody names, a crash behind it leaves the epoch.
//! Merges run beside it, and the next commit puts what has come out of them in the place of what went in.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use flowjoin_core::state::{Changes, Epoch, StateStore, StoreError, StoreStats};

use super::cursor::Merged;
use super::disk::{Disk, TEMPORARY};
use super::manifest::{self, MANIFEST, Named, SEGMENT};
use super::merging::{Below, Limits, Merging};
use super::segment::{BLOCK_BYTES, Draft, Segment, Word};

/// A store of state in a folder of its own.
///
/// It belongs to one handle of one process at a time, which it finds out by a lock that vanishes with the process. In
/// memory it holds a few dozen bytes for each 64 KiB that are stored, and no values; scans read the files in order, while
/// each [`get`](StateStore::get) opens files and reads a block from some of them.
///
/// Beside the commits segments are merged: all of them once those that came later outweigh the oldest, and otherwise as
/// many of the newest as are about of one size. So on the disk it takes up about twice what its keys and values need, and
/// as much again while a large merge runs; below 4 MiB it may be more. A delete counts as if it were what it takes away.
///
/// Every byte is covered by a checksum. What is not as it was written is refused, when the store is opened or when it is
/// read first, and never given out.
///
/// ```
/// use flowjoin_core::state::{Changes, Epoch, StateStore};
/// use flowjoin_runtime::store::LogStore;
///
/// # let folder = std::env::temp_dir().join(format!("flowjoin-doc-{}", std::process::id()));
/// let mut changes = Changes::default();
/// changes.put(b"key", b"value");
/// changes.sort();
/// LogStore::open(&folder)?.commit(Epoch(1), &changes, b"offset 7")?;
///
/// let store = LogStore::open(&folder)?;
/// assert_eq!((store.epoch(), store.record()), (Some(Epoch(1)), &b"offset 7"[..]));
/// assert_eq!(store.get(b"key")?.as_deref(), Some(&b"value"[..]));
/// # drop(store);
/// # std::fs::remove_dir_all(folder).ok();
/// # Ok::<(), flowjoin_core::state::StoreError>(())
/// ```
#[derive(Debug)]
pub struct LogStore {
    disk: Disk,
    // Those that the manifest names, oldest first.
    segments: Vec<Arc<Segment>>,
    // Oldest inputs first; none has inputs of another. They end before the lock goes.
    merges: Vec<Merging>,
    next_number: u64,
    limits: Limits,
    health: Health,
    _lock: File,
}

#[derive(Debug)]
enum Health {
    Good,
    // It is not known what would be found after a crash.
    Unsure,
}

impl LogStore {
    /// Opens the store in this folder, or makes a new one if there is none. What a crash has left behind goes.
    ///
    /// # Errors
    /// If it is open already, if a file of it is damaged or missing or of a later format, or if the folder cannot be read
    /// and written.
    pub fn open(folder: impl AsRef<Path>) -> Result<LogStore, StoreError> {
        LogStore::of(Disk::open(folder.as_ref())?, LIMITS)
    }

    pub(super) fn of(disk: Disk, limits: Limits) -> Result<LogStore, StoreError> {
        let lock = disk.lock()?;
        let named = match manifest::read(&disk)? {
            Some(named) => named,
            None => begun(&disk)?,
        };
        let segments: Vec<Arc<Segment>> =
            named.iter().map(|named| Segment::open(&disk, *named).map(Arc::new)).collect::<Result<_, _>>()?;
        remove_leftovers(&disk, &named)?;
        let next_number = named.iter().map(|named| named.number + 1).max().unwrap_or(1);
        Ok(LogStore { disk, segments, merges: Vec::new(), next_number, limits, health: Health::Good, _lock: lock })
    }

    fn admit(&self, epoch: Epoch, changes: &Changes) -> Result<(), StoreError> {
        if let Health::Unsure = self.health {
            return Err(StoreError::new(format!(
                "the store in `{}` could not end its last commit, and what the disk has of it is not known; open it anew",
                self.disk.path("").display()
            )));
        }
        if let Some(last) = self.epoch().filter(|&last| epoch <= last) {
            return Err(StoreError::not_after(last, epoch));
        }
        if !changes.iter().is_sorted_by(|(one, _), (other, _)| one < other) {
            return Err(StoreError::new(format!(
                "the changes of epoch {epoch} are not in the order of their keys, each once; please report this"
            )));
        }
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn write(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) -> Result<Segment, StoreError> {
        let number = self.number();
        let mut draft = Draft::begin(&self.disk, number, epoch, epoch, self.limits.block_bytes)?;
        changes.iter().try_for_each(|(key, value)| draft.add(key, value))?;
        draft.finish(record)
    }

    // A merge that failed is told once; the segments that it was about stay as they are.
    fn look_at_merges(&mut self) -> Result<(), StoreError> {
        for at in 0..self.merges.len() {
            if let Err(error) = self.merges[at].look() {
                let file = self.merges.remove(at).file();
                return Err(StoreError::new(format!("segments could not be merged into `{file}`: {error}")));
            }
        }
        Ok(())
    }

    // The segments with what has come out of merges in the place of what went in.
    fn with_merges(&self) -> Vec<Arc<Segment>> {
        let mut segments = self.segments.clone();
        for merging in &self.merges {
            let Some(result) = merging.result() else { continue };
            let inputs = merging.inputs();
            let begin = segments.iter().position(|segment| Arc::ptr_eq(segment, &inputs[0]));
            let begin = begin.expect("what is merged stays until the merge is over");
            segments.splice(begin..begin + inputs.len(), [Arc::clone(result)]);
        }
        segments
    }

    // Makes these the segments of the store. When this returns they outlive a crash.
    fn replace(&mut self, segments: Vec<Arc<Segment>>) -> Result<(), StoreError> {
        let manifest = manifest::prepare(&self.disk, segments.iter().map(|segment| segment.named()))?;
        self.health = Health::Unsure;
        manifest.finish()?;
        self.disk.sync()?;
        self.health = Health::Good;
        self.segments = segments;
        let (over, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.merges).into_iter().partition(|merging| merging.result().is_some());
        self.merges = running;
        for segment in over.iter().flat_map(Merging::inputs) {
            self.disk.remove(&segment.named().file());
        }
        Ok(())
    }

    fn begin_merge(&mut self) {
        if self.merges.len() >= MERGES_MAX {
            return;
        }
        let newest = self.merges.last().and_then(|merging| merging.inputs().last());
        let is_newest = |segment: &Arc<Segment>| newest.is_some_and(|newest| Arc::ptr_eq(segment, newest));
        let free = self.segments.iter().rposition(is_newest).map_or(0, |at| at + 1);
        let below = |begin: usize| if begin == 0 { Below::Nothing } else { Below::Segments };
        // A delete is small and takes away as much as a put of the base has on average: so much it weighs.
        let put_bytes = self.segments.first().map_or(0, |base| base.named().bytes / base.puts().max(1));
        let weight = |segment: &Arc<Segment>| segment.named().bytes + segment.deletes() * put_bytes;
        let weights: Vec<u64> = self.segments[free..].iter().map(weight).collect();
        let Some(begin) = self.limits.run(&weights, below(free)).map(|begin| free + begin) else { return };
        let number = self.number();
        let inputs = &self.segments[begin..];
        self.merges.extend(Merging::begin(&self.disk, inputs, number, below(begin), self.limits));
    }

    /// Waits for the merges that are under way; the next commit takes them over.
    #[cfg(test)]
    pub(super) fn wait(&mut self) {
        self.merges.iter_mut().for_each(|merging| merging.wait().unwrap());
    }

    #[cfg(test)]
    pub(super) fn merges(&mut self) -> &mut Vec<Merging> {
        &mut self.merges
    }

    #[cfg(test)]
    pub(super) fn named(&self) -> Vec<Named> {
        self.segments.iter().map(|segment| segment.named()).collect()
    }
}

impl StateStore for LogStore {
    fn epoch(&self) -> Option<Epoch> {
        self.segments.last().map(|segment| segment.named().last)
    }

    fn record(&self) -> &[u8] {
        self.segments.last().map_or(&[], |segment| segment.record())
    }

    fn commit(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) -> Result<(), StoreError> {
        self.admit(epoch, changes)?;
        self.look_at_merges()?;
        let segment = self.write(epoch, changes, record)?;
        // The names of segments are on the disk before the manifest that says them.
        self.health = Health::Unsure;
        self.disk.sync()?;
        self.health = Health::Good;
        let mut segments = self.with_merges();
        segments.push(Arc::new(segment));
        self.replace(segments)?;
        self.begin_merge();
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        for segment in self.segments.iter().rev() {
            match segment.word(key)? {
                Word::Put(value) => return Ok(Some(value)),
                Word::Deleted => return Ok(None),
                Word::Nothing => {}
            }
        }
        Ok(None)
    }

    fn scan(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let mut entries = Merged::begin(&self.segments, prefix)?;
        while let Some((key, value)) = entries.next()?.filter(|(key, _)| key.starts_with(prefix)) {
            if let Some(value) = value {
                each(key, value);
            }
        }
        Ok(())
    }

    /// Of keys it gives the puts less the deletes of all segments: too many where a key was written again since segments
    /// were merged last, too few where one was deleted twice or without having been there. Of bytes it gives the lengths
    /// of the segments that count.
    fn stats(&self) -> StoreStats {
        let sum = |what: fn(&Segment) -> u64| self.segments.iter().map(|segment| what(segment)).sum::<u64>();
        StoreStats { keys: sum(Segment::puts).saturating_sub(sum(Segment::deletes)), bytes: sum(|it| it.named().bytes) }
    }
}

// A new store, unless there are segments that had a manifest once.
fn begun(disk: &Disk) -> Result<Vec<Named>, StoreError> {
    if disk.names()?.iter().any(|name| is_segment(name)) {
        return Err(disk.damaged(MANIFEST, "it is not there, and there are segments that it named"));
    }
    manifest::prepare(disk, std::iter::empty())?.finish()?;
    disk.sync()?;
    Ok(Vec::new())
}

fn remove_leftovers(disk: &Disk, named: &[Named]) -> Result<(), StoreError> {
    let counts = |name: &str| named.iter().any(|named| named.file() == name);
    let of_ours = |name: &str| name == MANIFEST || is_segment(name);
    for name in disk.names()? {
        let is_unfinished = name.strip_suffix(TEMPORARY).is_some_and(of_ours);
        if is_unfinished || is_segment(&name) && !counts(&name) {
            disk.remove(&name);
        }
    }
    Ok(())
}

fn is_segment(name: &str) -> bool {
    name.strip_suffix(SEGMENT).is_some_and(|number| number.len() >= 12 && number.bytes().all(|it| it.is_ascii_digit()))
}

const LIMITS: Limits = Limits { block_bytes: BLOCK_BYTES, run: 8, segment_bytes: 64 << 10, base_bytes: 4 << 20 };
/// Merges at a time: a long one, and short ones of what is committed meanwhile.
const MERGES_MAX: usize = 2;

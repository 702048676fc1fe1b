//! The keyed table: one entry a key, sharded by key group and within one by hash.
//!
//! A shard is an index of eight bytes a place (a tag of the hash and the number of the entry), so that it is dense, quick to
//! double and cheap to miss in. Entries stand in places
//! that never move, in the order in which their keys came, and the places of those that left are used again; the number
//! of an entry can name what stands elsewhere for its key. A look-up touches a line of each, and both can be prefetched:
//! first the index, then the entry that it names.
//!
//! Shards grow one at a time and at different fills: a doubling takes a millisecond or two where that of one table would
//! stop the operator for seconds. Each group also has a `spill`, where entries put what does not fit in place.

use super::journal::Journal;
use super::marks::{Marks, NO_ENTRY, tag_of};
use super::{Chunks, Sealing};
use crate::error::OpError;
use crate::key::{KEY_GROUPS, Key, KeyGroup};

/// Entries by key.
#[derive(Debug)]
pub struct Table<K, E, S> {
    // By shard. What each look-up reads is dense, so that it stays near.
    indexes: Box<[Marks; SHARDS]>,
    fills: Box<[Fill; SHARDS]>,
    // By group.
    spills: Box<[S; GROUPS]>,
    entries: Entries<K, E>,
    // Where state is kept: what has changed.
    journal: Option<Box<Journal<K>>>,
}

// How full an index is.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    len: u32,
    grow_at: u32,
}

#[derive(Debug)]
struct Entries<K, E> {
    all: Chunks<Option<Entry<K, E>>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<K, E> {
    key: K,
    value: E,
}

/// Where an entry stands, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    shard: u32,
    entry: u32,
    tag: u32,
}

/// Which entry is probably that of a hash, if there is one. The entry may have been removed since.
#[derive(Clone, Copy, Debug)]
pub struct Guess(u32);

impl Default for Guess {
    /// No entry.
    fn default() -> Self {
        Guess(NO_ENTRY)
    }
}

impl Place {
    /// The number of the entry; no other entry of the table has it.
    #[inline]
    pub fn number(self) -> u32 {
        self.entry
    }
}

impl<K: Key, E: Default, S: Default> Default for Table<K, E, S> {
    fn default() -> Self {
        Table {
            indexes: Box::new(std::array::from_fn(|_| Marks::default())),
            fills: Box::new([Fill::default(); SHARDS]),
            spills: Box::new(std::array::from_fn(|_| S::default())),
            entries: Entries { all: Chunks::default(), free: Vec::new() },
            journal: None,
        }
    }
}

impl<K: Key, E: Default, S: Default> Table<K, E, S> {
    /// Asks the processor for the place of this hash in the index, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.indexes[shard_of(hash)].prefetch(tag_of(hash));
    }

    /// Asks the processor for the entry of this hash, once its place in the index is near. Returns which one it is, if its
    /// key proves to be the one that is looked for.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) -> Guess {
        let entry = self.indexes[shard_of(hash)].guess(tag_of(hash));
        // Without a branch: where there is none, the first of all does no harm.
        self.entries.prefetch(if entry == NO_ENTRY { 0 } else { entry });
        Guess(entry)
    }

    /// Looks at the first entry with the tag of this hash, which probably is the one; for prefetching what it names.
    #[inline]
    pub fn peek(&self, hash: u64, look: impl FnOnce(&E, &S)) {
        let shard = shard_of(hash);
        if let Some(entry) = self.entries.get(self.indexes[shard].guess(tag_of(hash))) {
            look(&entry.value, &self.spills[group_of(shard)]);
        }
    }

    /// As [`upsert`](Self::upsert), with a guess made before, which is right nearly always and saves the look-up.
    #[inline]
    pub fn upsert_guessed(&mut self, hash: u64, key: K, guess: Guess) -> Place {
        let guessed = self.verify(hash, &key, guess).map(|(place, ..)| place);
        guessed.unwrap_or_else(|| self.upsert(hash, key))
    }

    /// As [`find_by`](Self::find_by), with a guess made before, and a test that holds for no other entry of the table.
    #[inline]
    pub fn find_by_guessed(&self, hash: u64, guess: Guess, test: impl Fn(&E, &S) -> bool) -> Option<Place> {
        let shard = shard_of(hash);
        match self.entries.get(guess.0).filter(|entry| test(&entry.value, &self.spills[group_of(shard)])) {
            Some(_) => Some(Place { shard: shard as u32, entry: guess.0, tag: tag_of(hash) }),
            None => self.find_by(hash, test),
        }
    }

    /// The place of a key with what stands there, if a guess made before was right, as it nearly always is.
    #[inline]
    pub fn verify(&self, hash: u64, key: &K, guess: Guess) -> Option<(Place, &E, &S)> {
        let entry = self.entries.get(guess.0).filter(|entry| entry.key == *key)?;
        let shard = shard_of(hash);
        let place = Place { shard: shard as u32, entry: guess.0, tag: tag_of(hash) };
        Some((place, &entry.value, &self.spills[group_of(shard)]))
    }

    /// The place of a key, which gets an empty entry if it has none.
    #[inline]
    pub fn upsert(&mut self, hash: u64, key: K) -> Place {
        let (shard, tag) = (shard_of(hash), tag_of(hash));
        let fill = &mut self.fills[shard];
        if fill.len >= fill.grow_at {
            self.indexes[shard].grow();
            // Between a half and three quarters, by shard, so that shards of equal fill do not all double at once.
            fill.grow_at = (self.indexes[shard].places() * (64 + shard * 37 % 32) / 128) as u32;
        }
        let found =
            self.indexes[shard].find(tag, |entry| self.entries.get(entry).is_some_and(|other| other.key == key));
        let entry = found.unwrap_or_else(|| {
            let entry = self.entries.add(key);
            self.indexes[shard].insert(tag, entry);
            fill.len += 1;
            if let Some(journal) = &mut self.journal {
                journal.on_change(Place { shard: shard as u32, entry, tag });
            }
            entry
        });
        Place { shard: shard as u32, entry, tag }
    }

    /// The place of a key, if it has an entry.
    #[inline]
    pub fn find(&self, hash: u64, key: &K) -> Option<Place> {
        self.probe(hash, |other, _, _| other == key)
    }

    /// The place of the only entry that can have this hash; none if there is none, or more than one.
    pub fn find_lone(&self, hash: u64) -> Option<Place> {
        let (shard, tag) = (shard_of(hash), tag_of(hash));
        let mut lone = None;
        let second = self.indexes[shard].find(tag, |entry| lone.replace(entry).is_some());
        let entry = lone.filter(|_| second.is_none())?;
        Some(Place { shard: shard as u32, entry, tag })
    }

    /// The place of the entry, among those of this hash, that the test holds for.
    #[inline]
    pub fn find_by(&self, hash: u64, test: impl Fn(&E, &S) -> bool) -> Option<Place> {
        self.probe(hash, |_, entry, spill| test(entry, spill))
    }

    #[inline]
    fn probe(&self, hash: u64, test: impl Fn(&K, &E, &S) -> bool) -> Option<Place> {
        let (shard, tag) = (shard_of(hash), tag_of(hash));
        let is_it = |entry: u32| {
            let entry = self.entries.get(entry);
            entry.is_some_and(|entry| test(&entry.key, &entry.value, &self.spills[group_of(shard)]))
        };
        let entry = self.indexes[shard].find(tag, is_it)?;
        Some(Place { shard: shard as u32, entry, tag })
    }

    /// The entry at a place, and the spill of its shard.
    #[inline]
    pub fn at(&mut self, place: Place) -> (&mut E, &mut S) {
        if let Some(journal) = &mut self.journal {
            journal.on_change(place);
        }
        let entry = self.entries.all[place.entry as usize].as_mut().expect("a place is that of an entry");
        (&mut entry.value, &mut self.spills[group_of(place.shard as usize)])
    }

    /// The entry at a place, to look at.
    #[inline]
    pub fn get(&self, place: Place) -> &E {
        &self.entries.get(place.entry).expect("a place is that of an entry").value
    }

    /// The entry at a place and the spill of its shard, to look at.
    #[inline]
    pub fn view(&self, place: Place) -> (&E, &S) {
        (self.get(place), &self.spills[group_of(place.shard as usize)])
    }

    /// The places of all entries, by shard and, within one, by number.
    pub fn places(&self) -> Vec<Place> {
        let of = |(shard, marks): (usize, &Marks)| {
            let mut places: Vec<Place> =
                marks.iter().map(|(tag, entry)| Place { shard: shard as u32, entry, tag }).collect();
            places.sort_unstable_by_key(|place| place.entry);
            places
        };
        self.indexes.iter().enumerate().flat_map(of).collect()
    }

    /// The key at a place.
    #[inline]
    pub fn key_at(&self, place: Place) -> &K {
        &self.entries.get(place.entry).expect("a place is that of an entry").key
    }

    /// Takes the entry at a place out; the places of others stay.
    pub fn remove(&mut self, place: Place) -> (K, E) {
        let shard = place.shard as usize;
        self.indexes[shard].remove(place.tag, place.entry);
        self.fills[shard].len -= 1;
        let entry = self.entries.take(place.entry).expect("a place is that of an entry");
        if let Some(journal) = &mut self.journal {
            journal.on_gone(place, KeyGroup::numbered(group_of(shard)), || entry.key.clone());
        }
        (entry.key, entry.value)
    }

    /// Notes from now on which entries change, so that they can be sealed. Those that are there count as sealed.
    pub fn keep(&mut self) {
        self.journal = Some(Box::new(Journal::of(&self.places())));
    }

    /// Whether changes are noted.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// What is known elsewhere of an entry has changed, where changes are noted.
    pub fn note(&mut self, hash: u64, key: &K) {
        let place = if self.is_kept() { self.find(hash, key) } else { None };
        if let (Some(journal), Some(place)) = (&mut self.journal, place) {
            journal.on_change(place);
        }
    }

    /// Tells, of a part of a state, which keys have gone since the last time, and the bytes of each entry that has changed,
    /// as the function writes them.
    ///
    /// # Errors
    /// If the function cannot.
    pub fn seal(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        write: impl FnMut(&Self, Place, &mut Vec<u8>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.tell_changes(write, |group, key, value| match value {
            Some(value) => into.put(group, part, key, value),
            None => into.delete(group, part, key),
        })
    }

    /// The same of a table whose keys belong to the task, whatever their hashes are.
    ///
    /// # Errors
    /// If the function cannot.
    pub fn seal_own(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        write: impl FnMut(&Self, Place, &mut Vec<u8>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.tell_changes(write, |_, key, value| match value {
            Some(value) => into.put_own(part, key, value),
            None => into.delete_own(part, key),
        })
    }

    fn tell_changes(
        &mut self,
        mut write: impl FnMut(&Self, Place, &mut Vec<u8>) -> Result<(), OpError>,
        mut tell: impl FnMut(KeyGroup, &[u8], Option<&[u8]>),
    ) -> Result<(), OpError> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let (gone, changed) = journal.take();
        self.journal = Some(journal);
        let (mut bytes, mut value) = (Vec::new(), Vec::new());
        for (group, key) in gone {
            bytes.clear();
            key.encode(&mut bytes);
            tell(group, &bytes, None);
        }
        for place in changed {
            bytes.clear();
            value.clear();
            self.key_at(place).encode(&mut bytes);
            write(self, place, &mut value)?;
            tell(KeyGroup::numbered(group_of(place.shard as usize)), &bytes, Some(&value));
        }
        Ok(())
    }

    /// How many keys have an entry.
    pub fn len(&self) -> usize {
        self.fills.iter().map(|fill| fill.len as usize).sum()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes taken by index and entries, without what keys own elsewhere; `spilled` tells those of a spill.
    pub fn bytes(&self, spilled: impl Fn(&S) -> u64) -> u64 {
        let indexes: u64 = self.indexes.iter().map(Marks::bytes).sum();
        let journal = self.journal.as_ref().map_or(0, |journal| journal.bytes());
        self.entries.bytes() + indexes + self.spills.iter().map(spilled).sum::<u64>() + journal
    }
}

impl<K: Key, E: Default> Entries<K, E> {
    #[inline]
    fn get(&self, entry: u32) -> Option<&Entry<K, E>> {
        self.all.get(entry as usize)?.as_ref()
    }

    // Asks for the lines that an entry begins and ends in.
    #[inline]
    fn prefetch(&self, entry: u32) {
        if let Some(entry) = self.all.get(entry as usize) {
            prefetch_ends(entry);
        }
    }

    #[inline]
    fn add(&mut self, key: K) -> u32 {
        let new = Some(Entry { key, value: E::default() });
        if let Some(entry) = self.free.pop() {
            if let Some(&next) = self.free.len().checked_sub(AHEAD).and_then(|at| self.free.get(at)) {
                self.prefetch(next);
            }
            self.all[entry as usize] = new;
            return entry;
        }
        let entry = self.all.len() as u32;
        self.all.push(new);
        entry
    }

    fn take(&mut self, entry: u32) -> Option<Entry<K, E>> {
        self.free.push(entry);
        self.all[entry as usize].take()
    }

    fn bytes(&self) -> u64 {
        self.all.bytes() + (self.free.capacity() * size_of::<u32>()) as u64
    }
}

/// Asks the processor to bring the beginning of a value near, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_line(std::ptr::from_ref(value).cast());
}

/// Asks the processor to bring the beginning and the end of a value near, without waiting for them.
#[inline(always)]
fn prefetch_ends<T>(value: &T) {
    let first: *const u8 = std::ptr::from_ref(value).cast();
    prefetch_line(first);
    if size_of::<T>() > 16 {
        prefetch_line(first.wrapping_add(size_of::<T>() - 1));
    }
}

/// Asks the processor to bring all of a value near, without waiting for it.
#[inline(always)]
pub fn prefetch_all<T>(value: &T) {
    let first: *const u8 = std::ptr::from_ref(value).cast();
    for offset in (0..size_of::<T>()).step_by(64) {
        prefetch_line(first.wrapping_add(offset));
    }
    prefetch_line(first.wrapping_add(size_of::<T>().saturating_sub(1)));
}

#[inline(always)]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch is a hint; it reads nothing, and the address is within a live value.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

const GROUPS: usize = KEY_GROUPS as usize;

/// Shards of a group.
const SHARDS_EACH: usize = 8;

const SHARDS: usize = GROUPS * SHARDS_EACH;

// The group of a hash is in its top bits: a shard is of one group.
#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARDS.ilog2())) as usize
}

#[inline]
fn group_of(shard: usize) -> usize {
    shard / SHARDS_EACH
}

/// Free places asked for ahead of use.
const AHEAD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Changes, Sealed};
    use crate::time::ProcTime;
    use std::collections::{BTreeMap, HashMap};

    #[test]
    fn it_answers_as_a_map_does_through_inserts_and_removals() {
        let mut table: Table<u64, u64, ()> = Table::default();
        let mut model: HashMap<u64, u64> = HashMap::new();
        let mut scratch = Vec::new();
        let mut seed = 1u64;
        for step in 0..60_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (seed >> 33) % 3_000;
            let hash = key.stable_hash(&mut scratch);
            if (seed >> 20).is_multiple_of(3) {
                let found = table.find(hash, &key).map(|place| table.remove(place).1);
                assert_eq!(found, model.remove(&key));
            } else {
                let place = table.upsert(hash, key);
                *table.at(place).0 = step;
                model.insert(key, step);
            }
        }
        assert_eq!(table.len(), model.len());
        for (key, value) in model {
            let place = table.find(key.stable_hash(&mut scratch), &key).unwrap();
            assert_eq!(*table.at(place).0, value);
            assert_eq!(table.key_at(place), &key);
        }
    }

    // What is sealed, put into a map, is what the table holds; and of what came and went in between nothing is told.
    #[test]
    fn what_is_sealed_is_the_net_change() {
        let mut table: Table<u16, u64, ()> = Table::default();
        let (mut kept, mut scratch, mut seed) = (BTreeMap::new(), Vec::new(), 1u64);
        for step in 0..40_000u64 {
            if step == 100 {
                kept = model(&table);
                table.keep();
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (seed >> 33) as u16 % 500;
            let hash = key.stable_hash(&mut scratch);
            match (table.find(hash, &key), (seed >> 20) % 3) {
                (Some(place), 0) => drop(table.remove(place)),
                (_, 0) => {}
                _ => {
                    let place = table.upsert(hash, key);
                    *table.at(place).0 = step;
                }
            }
            if step >= 100 && step % 250 == 7 {
                let changes = sealed(&mut table);
                assert!(changes.len() <= 250);
                for (key, value) in changes.iter() {
                    let key = Sealed::of(key, b"").unwrap().key.to_vec();
                    match value {
                        Some(value) => kept.insert(key, value.to_vec()),
                        None => kept.remove(&key),
                    };
                }
                assert!(kept == model(&table), "after {step} steps");
                assert!(sealed(&mut table).is_empty());
            }
        }
        let (key, hash) = (1_000u16, 1_000u16.stable_hash(&mut scratch));
        let place = table.upsert(hash, key);
        table.remove(place);
        sealed(&mut table);
        let place = table.upsert(hash, key);
        table.remove(place);
        assert!(sealed(&mut table).is_empty());
    }

    fn model(table: &Table<u16, u64, ()>) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let of = |place| (table.key_at(place).to_be_bytes().to_vec(), table.get(place).to_be_bytes().to_vec());
        table.places().into_iter().map(of).collect()
    }

    fn sealed(table: &mut Table<u16, u64, ()>) -> Changes {
        let mut changes = Changes::default();
        let write = |table: &Table<u16, u64, ()>, place, value: &mut Vec<u8>| {
            value.extend(table.get(place).to_be_bytes());
            Ok(())
        };
        table.seal(1, &mut Sealing::new(&mut changes, 0, 0, ProcTime::default()), write).unwrap();
        changes.sort();
        changes
    }

    #[test]
    fn a_shard_is_of_the_key_group_of_its_hashes() {
        for group in 0..u64::from(KEY_GROUPS) {
            for rest in [0, 1, u64::MAX >> 8, u64::MAX >> 7] {
                let hash = group << 57 | rest;
                assert_eq!(group_of(shard_of(hash)), KeyGroup::of(hash).index());
            }
        }
    }

    #[test]
    fn keys_of_one_hash_are_told_apart() {
        let mut table: Table<String, u8, ()> = Table::default();
        for (n, key) in ["a", "b", "c"].iter().enumerate() {
            let place = table.upsert(7, key.to_string());
            *table.at(place).0 = n as u8;
        }
        assert_eq!((table.find_lone(7), table.find_lone(8)), (None, None));
        let place = table.find(7, &"b".to_string()).unwrap();
        assert_eq!(table.remove(place), ("b".to_string(), 1));
        let place = table.find_by(7, |&entry, ()| entry == 2).unwrap();
        assert_eq!(table.key_at(place), "c");
        // The first of the hash is another one.
        let guess = table.prefetch_entry(7);
        let keys = ["a", "c", "d"].map(|key| table.verify(7, &key.to_string(), guess).map(|(_, entry, ())| *entry));
        assert_eq!(keys, [Some(0), None, None]);
        let place = table.find(7, &"a".to_string()).unwrap();
        table.remove(place);
        assert!(table.verify(7, &"a".to_string(), guess).is_none());
        let place = table.upsert_guessed(7, "d".to_string(), guess);
        assert_eq!((table.key_at(place).as_str(), table.len()), ("d", 2));
        assert!(table.find(7, &"b".to_string()).is_none());
        table.remove(place);
        assert_eq!(table.find_lone(7), table.find(7, &"c".to_string()));
    }
}

//! The keyed table: one entry a key, sharded by key group.
//!
//! A shard is an index, open-addressed with linear probing and backward-shift deletion, eight bytes a place (a tag of the
//! hash and the number of the entry), so that it is dense, quick to double and cheap to miss in. Entries stand in chunks
//! that never move, in the order in which their keys came, and the places of those that left are used again; the number
//! of an entry can name what stands elsewhere for its key. A look-up touches a line of each, and both can be prefetched:
//! first the index, then the entry that it names.
//!
//! Shards grow one at a time and at different fills: a doubling takes a millisecond where that of one table would stop
//! the operator for a tenth of a second. Each shard also has a `spill`, where entries put what does not fit in place.

use crate::key::{KEY_GROUPS, Key, KeyGroup};

/// Entries by key.
#[derive(Debug)]
pub struct Table<K, E, S> {
    shards: Vec<Shard<S>>,
    entries: Entries<K, E>,
}

#[derive(Debug)]
struct Shard<S> {
    index: Vec<Mark>,
    len: usize,
    grow_at: usize,
    spill: S,
}

#[derive(Debug)]
struct Entries<K, E> {
    chunks: Vec<Vec<Option<Entry<K, E>>>>,
    used: usize,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<K, E> {
    key: K,
    value: E,
}

// A place of the index: free, or the tag of a hash and the number of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    tag: u32,
    entry: u32,
}

impl Mark {
    const FREE: Mark = Mark { tag: 0, entry: u32::MAX };

    fn is_free(self) -> bool {
        self.entry == u32::MAX
    }
}

/// Where an entry stands, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    shard: u32,
    entry: u32,
    tag: u32,
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
        let shard = || Shard { index: Vec::new(), len: 0, grow_at: 0, spill: S::default() };
        let entries = Entries { chunks: Vec::new(), used: 0, free: Vec::new() };
        Table { shards: (0..KEY_GROUPS).map(|_| shard()).collect(), entries }
    }
}

impl<K: Key, E: Default, S: Default> Table<K, E, S> {
    /// Asks the processor for the place of this hash in the index, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let shard = &self.shards[KeyGroup::of(hash).index()];
        if let Some(mark) = shard.index.get(home(hash as u32, shard.index.len())) {
            prefetch(mark);
        }
    }

    /// Asks the processor for the entry of this hash, once its place in the index is near.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        if let Some(entry) = self.first_of(hash) {
            let (chunk, at) = Entries::<K, E>::split(entry);
            // An entry may reach into the next cache line, where the next one begins.
            let lines = if size_of::<Option<Entry<K, E>>>() > 32 { 2 } else { 1 };
            self.entries.chunks[chunk].iter().skip(at).take(lines).for_each(prefetch);
        }
    }

    /// Looks at the first entry with the tag of this hash, which probably is the one; for prefetching what it names.
    #[inline]
    pub fn peek(&self, hash: u64, look: impl FnOnce(&E, &S)) {
        if let Some(entry) = self.first_of(hash).and_then(|entry| self.entries.get(entry)) {
            look(&entry.value, &self.shards[KeyGroup::of(hash).index()].spill);
        }
    }

    // The entry of the first mark with the tag of this hash.
    #[inline]
    fn first_of(&self, hash: u64) -> Option<u32> {
        let index = &self.shards[KeyGroup::of(hash).index()].index;
        let tag = hash as u32;
        let mut slot = home(tag, index.len());
        loop {
            let mark = *index.get(slot)?;
            if mark.is_free() {
                return None;
            }
            if mark.tag == tag {
                return Some(mark.entry);
            }
            slot = (slot + 1) & (index.len() - 1);
        }
    }

    /// The place of a key, which gets an empty entry if it has none.
    #[inline]
    pub fn upsert(&mut self, hash: u64, key: K) -> Place {
        let group = KeyGroup::of(hash).index();
        let shard = &mut self.shards[group];
        if shard.len >= shard.grow_at {
            shard.grow(group);
        }
        let tag = hash as u32;
        let mask = shard.index.len() - 1;
        let mut slot = home(tag, shard.index.len());
        loop {
            let mark = shard.index[slot];
            if mark.is_free() {
                break;
            }
            if mark.tag == tag && self.entries.get(mark.entry).is_some_and(|other| other.key == key) {
                return Place { shard: group as u32, entry: mark.entry, tag };
            }
            slot = (slot + 1) & mask;
        }
        let entry = self.entries.add(key);
        shard.index[slot] = Mark { tag, entry };
        shard.len += 1;
        Place { shard: group as u32, entry, tag }
    }

    /// The place of a key, if it has an entry.
    #[inline]
    pub fn find(&self, hash: u64, key: &K) -> Option<Place> {
        self.probe(hash, |other, _, _| other == key)
    }

    /// The place of the entry, among those of this hash, that the test holds for.
    #[inline]
    pub fn find_by(&self, hash: u64, test: impl Fn(&E, &S) -> bool) -> Option<Place> {
        self.probe(hash, |_, entry, spill| test(entry, spill))
    }

    #[inline]
    fn probe(&self, hash: u64, test: impl Fn(&K, &E, &S) -> bool) -> Option<Place> {
        let group = KeyGroup::of(hash).index();
        let shard = &self.shards[group];
        let tag = hash as u32;
        let mut slot = home(tag, shard.index.len());
        loop {
            let mark = *shard.index.get(slot)?;
            if mark.is_free() {
                return None;
            }
            if mark.tag == tag
                && let Some(entry) = self.entries.get(mark.entry)
                && test(&entry.key, &entry.value, &shard.spill)
            {
                return Some(Place { shard: group as u32, entry: mark.entry, tag });
            }
            slot = (slot + 1) & (shard.index.len() - 1);
        }
    }

    /// The entry at a place, and the spill of its shard.
    #[inline]
    pub fn at(&mut self, place: Place) -> (&mut E, &mut S) {
        let (chunk, at) = Entries::<K, E>::split(place.entry);
        let entry = self.entries.chunks[chunk][at].as_mut().expect("a place is that of an entry");
        (&mut entry.value, &mut self.shards[place.shard as usize].spill)
    }

    /// The entry at a place, to look at.
    #[inline]
    pub fn get(&self, place: Place) -> &E {
        &self.entries.get(place.entry).expect("a place is that of an entry").value
    }

    /// The entry at a place and the spill of its shard, to look at.
    #[inline]
    pub fn view(&self, place: Place) -> (&E, &S) {
        (self.get(place), &self.shards[place.shard as usize].spill)
    }

    /// The places of all entries, by shard and, within one, by number.
    pub fn places(&self) -> Vec<Place> {
        let of = |(shard, marks): (usize, &Shard<S>)| {
            let marks = marks.index.iter().filter(|mark| !mark.is_free());
            let mut places: Vec<Place> =
                marks.map(|mark| Place { shard: shard as u32, entry: mark.entry, tag: mark.tag }).collect();
            places.sort_unstable_by_key(|place| place.entry);
            places
        };
        self.shards.iter().enumerate().flat_map(of).collect()
    }

    /// The key at a place.
    #[inline]
    pub fn key_at(&self, place: Place) -> &K {
        &self.entries.get(place.entry).expect("a place is that of an entry").key
    }

    /// Takes the entry at a place out; the places of others stay.
    pub fn remove(&mut self, place: Place) -> (K, E) {
        let shard = &mut self.shards[place.shard as usize];
        shard.unmark(place);
        shard.len -= 1;
        let entry = self.entries.take(place.entry).expect("a place is that of an entry");
        (entry.key, entry.value)
    }

    /// How many keys have an entry.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len).sum()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes taken by index and entries, without what keys own elsewhere; `spilled` tells those of a spill.
    pub fn bytes(&self, spilled: impl Fn(&S) -> u64) -> u64 {
        let of = |shard: &Shard<S>| (shard.index.capacity() * size_of::<Mark>()) as u64 + spilled(&shard.spill);
        self.entries.bytes() + self.shards.iter().map(of).sum::<u64>()
    }
}

impl<K: Key, E: Default> Entries<K, E> {
    #[inline]
    fn split(entry: u32) -> (usize, usize) {
        (entry as usize / CHUNK, entry as usize % CHUNK)
    }

    #[inline]
    fn get(&self, entry: u32) -> Option<&Entry<K, E>> {
        let (chunk, at) = Self::split(entry);
        self.chunks.get(chunk)?.get(at)?.as_ref()
    }

    #[inline]
    fn add(&mut self, key: K) -> u32 {
        let new = Some(Entry { key, value: E::default() });
        if let Some(entry) = self.free.pop() {
            let (chunk, at) = Self::split(entry);
            self.chunks[chunk][at] = new;
            return entry;
        }
        let entry = self.used as u32;
        let (chunk, at) = Self::split(entry);
        if at == 0 {
            // The first chunk starts small: most tables of small flows never fill one.
            self.chunks.push(Vec::with_capacity(if chunk == 0 { SMALLEST } else { CHUNK }));
        }
        self.chunks[chunk].push(new);
        self.used += 1;
        entry
    }

    fn take(&mut self, entry: u32) -> Option<Entry<K, E>> {
        let (chunk, at) = Self::split(entry);
        self.free.push(entry);
        self.chunks[chunk][at].take()
    }

    fn bytes(&self) -> u64 {
        let entries: usize = self.chunks.iter().map(Vec::capacity).sum();
        (entries * size_of::<Option<Entry<K, E>>>() + self.free.capacity() * size_of::<u32>()) as u64
    }
}

impl<S> Shard<S> {
    fn unmark(&mut self, place: Place) {
        let mask = self.index.len() - 1;
        let mut hole = home(place.tag, self.index.len());
        while self.index[hole].entry != place.entry {
            hole = (hole + 1) & mask;
        }
        // Moves up those that were pushed down by the one that left, so that no probe meets a gap.
        let mut next = (hole + 1) & mask;
        while !self.index[next].is_free() {
            let wants = home(self.index[next].tag, mask + 1);
            if (next.wrapping_sub(wants) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.index[hole] = Mark::FREE;
    }

    #[cold]
    fn grow(&mut self, group: usize) {
        let size = (self.index.len() * 2).max(SMALLEST);
        let mut index = vec![Mark::FREE; size];
        for &mark in self.index.iter().filter(|mark| !mark.is_free()) {
            let mut at = home(mark.tag, size);
            while !index[at].is_free() {
                at = (at + 1) & (size - 1);
            }
            index[at] = mark;
        }
        self.index = index;
        // Between a half and three quarters, by group, so that shards of equal fill do not all double at once.
        self.grow_at = size * (64 + group * 37 % 32) / 128;
    }
}

// The top bits of a hash choose the shard, the low ones the place in its index.
#[inline]
fn home(tag: u32, places: usize) -> usize {
    tag as usize & places.wrapping_sub(1)
}

/// Asks the processor to bring a value near, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch is a hint; it reads nothing, and the address is that of a live reference.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

const SMALLEST: usize = 16;

/// Entries side by side.
const CHUNK: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

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

    #[test]
    fn keys_of_one_hash_are_told_apart() {
        let mut table: Table<String, u8, ()> = Table::default();
        for (n, key) in ["a", "b", "c"].iter().enumerate() {
            let place = table.upsert(7, key.to_string());
            *table.at(place).0 = n as u8;
        }
        let place = table.find(7, &"b".to_string()).unwrap();
        assert_eq!(table.remove(place), ("b".to_string(), 1));
        let place = table.find_by(7, |&entry, ()| entry == 2).unwrap();
        assert_eq!(table.key_at(place), "c");
        assert!(table.find(7, &"b".to_string()).is_none());
    }
}

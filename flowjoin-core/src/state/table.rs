//! The keyed table: one entry a key, sharded by key group.
//!
//! Open addressing with linear probing and backward-shift deletion; a slot holds a 31-bit tag of the hash, the key and
//! the entry in place, so that one look-up touches one or two cache lines, which can be prefetched. Shards grow one at
//! a time and at different fills: a doubling takes milliseconds where that of one table would stop the operator for a
//! tenth of a second.
//!
//! Each shard also has a `spill`, where entries put what does not fit in place.

use std::num::NonZeroU32;

use crate::key::{KEY_GROUPS, Key, KeyGroup};

/// Entries by key.
#[derive(Debug)]
pub struct Table<K, E, S> {
    shards: Vec<Shard<K, E, S>>,
}

#[derive(Debug)]
struct Shard<K, E, S> {
    slots: Vec<Option<Slot<K, E>>>,
    len: usize,
    grow_at: usize,
    spill: S,
}

#[derive(Debug)]
struct Slot<K, E> {
    tag: NonZeroU32,
    key: K,
    entry: E,
}

/// Where an entry stands, until the table next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    shard: u32,
    slot: u32,
}

impl<K: Key, E: Default, S: Default> Default for Table<K, E, S> {
    fn default() -> Self {
        let shard = || Shard { slots: Vec::new(), len: 0, grow_at: 0, spill: S::default() };
        Table { shards: (0..KEY_GROUPS).map(|_| shard()).collect() }
    }
}

impl<K: Key, E: Default, S: Default> Table<K, E, S> {
    /// Asks the processor for the slot of this hash, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let shard = &self.shards[KeyGroup::of(hash).index()];
        let home = home(tag_of(hash), shard.slots.len());
        if let Some(slot) = shard.slots.get(home) {
            prefetch(slot);
        }
        // A slot may reach into the next cache line.
        if size_of::<Option<Slot<K, E>>>() > 32
            && let Some(next) = shard.slots.get(home + 1)
        {
            prefetch(next);
        }
    }

    /// Looks at the entry that probably is that of this hash: the one in its first slot. For prefetching what it names.
    #[inline]
    pub fn peek(&self, hash: u64, look: impl FnOnce(&E, &S)) {
        let shard = &self.shards[KeyGroup::of(hash).index()];
        let tag = tag_of(hash);
        if let Some(Some(slot)) = shard.slots.get(home(tag, shard.slots.len()))
            && slot.tag == tag
        {
            look(&slot.entry, &shard.spill);
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
        let tag = tag_of(hash);
        let mask = shard.slots.len() - 1;
        let mut slot = home(tag, shard.slots.len());
        loop {
            match &shard.slots[slot] {
                Some(found) if found.tag == tag && found.key == key => break,
                Some(_) => slot = (slot + 1) & mask,
                None => {
                    shard.slots[slot] = Some(Slot { tag, key, entry: E::default() });
                    shard.len += 1;
                    break;
                }
            }
        }
        Place { shard: group as u32, slot: slot as u32 }
    }

    /// The place of a key, if it has an entry.
    pub fn find(&self, hash: u64, key: &K) -> Option<Place> {
        self.probe(hash, |slot, _| slot.key == *key)
    }

    /// The place of the entry, among those of this hash, that the test holds for.
    pub fn find_by(&self, hash: u64, test: impl Fn(&E, &S) -> bool) -> Option<Place> {
        self.probe(hash, |slot, spill| test(&slot.entry, spill))
    }

    fn probe(&self, hash: u64, test: impl Fn(&Slot<K, E>, &S) -> bool) -> Option<Place> {
        let group = KeyGroup::of(hash).index();
        let shard = &self.shards[group];
        let tag = tag_of(hash);
        let mut slot = home(tag, shard.slots.len());
        loop {
            let found = shard.slots.get(slot)?.as_ref()?;
            if found.tag == tag && test(found, &shard.spill) {
                return Some(Place { shard: group as u32, slot: slot as u32 });
            }
            slot = (slot + 1) & (shard.slots.len() - 1);
        }
    }

    /// The entry at a place, and the spill of its shard.
    #[inline]
    pub fn at(&mut self, place: Place) -> (&mut E, &mut S) {
        let shard = &mut self.shards[place.shard as usize];
        let slot = shard.slots[place.slot as usize].as_mut().expect("a place is that of an entry");
        (&mut slot.entry, &mut shard.spill)
    }

    /// The key at a place.
    pub fn key_at(&self, place: Place) -> &K {
        let slot = self.shards[place.shard as usize].slots[place.slot as usize].as_ref();
        &slot.expect("a place is that of an entry").key
    }

    /// Takes the entry at a place out; other places of the shard are no longer valid.
    pub fn remove(&mut self, place: Place) -> (K, E) {
        let shard = &mut self.shards[place.shard as usize];
        let mask = shard.slots.len() - 1;
        let mut hole = place.slot as usize;
        let removed = shard.slots[hole].take().expect("a place is that of an entry");
        shard.len -= 1;
        // Moves up those that were pushed down by the one that left, so that no probe meets a gap.
        let mut next = (hole + 1) & mask;
        while let Some(slot) = &shard.slots[next] {
            let wants = home(slot.tag, mask + 1);
            if (next.wrapping_sub(wants) & mask) >= (next.wrapping_sub(hole) & mask) {
                shard.slots[hole] = shard.slots[next].take();
                hole = next;
            }
            next = (next + 1) & mask;
        }
        (removed.key, removed.entry)
    }

    /// How many keys have an entry.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len).sum()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes taken by the slots, without what keys own elsewhere; `spilled` tells those of a spill.
    pub fn bytes(&self, spilled: impl Fn(&S) -> u64) -> u64 {
        let of = |shard: &Shard<K, E, S>| {
            (shard.slots.capacity() * size_of::<Option<Slot<K, E>>>()) as u64 + spilled(&shard.spill)
        };
        self.shards.iter().map(of).sum()
    }
}

impl<K: Key, E: Default, S: Default> Shard<K, E, S> {
    #[cold]
    fn grow(&mut self, group: usize) {
        let size = (self.slots.len() * 2).max(SMALLEST);
        let mut slots: Vec<Option<Slot<K, E>>> = Vec::with_capacity(size);
        slots.resize_with(size, || None);
        for slot in std::mem::take(&mut self.slots).into_iter().flatten() {
            let mut at = home(slot.tag, size);
            while slots[at].is_some() {
                at = (at + 1) & (size - 1);
            }
            slots[at] = Some(slot);
        }
        self.slots = slots;
        // Between a half and three quarters, by group, so that shards of equal fill do not all double at once.
        self.grow_at = size * (64 + group * 37 % 32) / 128;
    }
}

// The top bits of a hash choose the shard, the low ones the slot.
#[inline]
fn tag_of(hash: u64) -> NonZeroU32 {
    NonZeroU32::MIN | (hash as u32)
}

#[inline]
fn home(tag: NonZeroU32, slots: usize) -> usize {
    (tag.get() >> 1) as usize & slots.wrapping_sub(1)
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
            if (seed >> 20) % 3 == 0 {
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

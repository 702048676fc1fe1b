//! A hash table from a `u64` key to one slot, made for join state: it grows without long pauses and can be prefetched.
//!
//! The slots lie in chunks in the order in which their keys came and never move. What is hashed is an index of eight
//! bytes an entry: 32 bits of the hash and the slot's id, probed linearly. Growing therefore moves eight bytes a key,
//! reads no slot, and happens one shard of 64 at a time. Keys that came together lie together, so the partners of
//! recent rows are found in the cache. Ids of removed slots are used again, last one first.

use std::ops::{Index, IndexMut};

use crate::workload;

/// What a table keeps for a key.
pub trait Slot {
    /// The slot of a key of which no row has come yet.
    fn new(key: u64) -> Self;

    /// The key the slot was made for.
    fn key(&self) -> u64;
}

/// Slots by key.
pub struct Table<S> {
    shards: Vec<Shard>,
    slots: Slab<S>,
}

impl<S: Slot> Table<S> {
    /// A table without keys; it presumes nothing about how many will come.
    pub fn new() -> Self {
        Table { shards: (0..SHARDS).map(|_| Shard::new()).collect(), slots: Slab::new() }
    }

    /// The id of the key's slot, which is made if there is none. `hash` is [`hash`] of the key, `guess` what
    /// [`Table::guess`] said some rows ago; it may be wrong.
    #[inline]
    pub fn find_or_insert(&mut self, hash: u64, key: u64, guess: Option<u32>) -> u32 {
        if let Some(id) = guess.filter(|&id| self.slots[id].key() == key) {
            return id;
        }
        let shard = &mut self.shards[shard_of(hash)];
        let tag = hash as u32;
        let mut at = tag as usize & shard.mask;
        loop {
            let entry = shard.entries[at];
            if entry == VACANT {
                break;
            }
            if tag_of(entry) == tag && self.slots[id_of(entry)].key() == key {
                return id_of(entry);
            }
            at = (at + 1) & shard.mask;
        }
        let id = self.slots.insert(S::new(key));
        shard.fill(at, entry_of(tag, id));
        id
    }

    /// The id that the index names for a hash, without a look at the slot, whose memory starts to be loaded.
    #[inline]
    pub fn guess(&self, hash: u64) -> Option<u32> {
        let shard = &self.shards[shard_of(hash)];
        let tag = hash as u32;
        let mut at = tag as usize & shard.mask;
        loop {
            let entry = shard.entries[at];
            if entry == VACANT {
                return None;
            }
            if tag_of(entry) == tag {
                prefetch(&self.slots[id_of(entry)]);
                return Some(id_of(entry));
            }
            at = (at + 1) & shard.mask;
        }
    }

    /// The slot of an id that [`Table::find_or_insert`] returned and that has not been removed.
    #[inline]
    pub fn slot(&self, id: u32) -> &S {
        &self.slots[id]
    }

    /// The same, to be changed.
    #[inline]
    pub fn slot_mut(&mut self, id: u32) -> &mut S {
        &mut self.slots[id]
    }

    /// Forgets the slot's key. The id may be given to another key at once.
    #[inline]
    pub fn remove(&mut self, hash: u64, id: u32) {
        self.shards[shard_of(hash)].vacate(entry_of(hash as u32, id));
        self.slots.release(id);
    }

    /// Starts to load the index entry that a later look-up of this hash reads first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let shard = &self.shards[shard_of(hash)];
        prefetch(&shard.entries[hash as u32 as usize & shard.mask]);
    }
}

/// The hash of a key. All its bits are good: owner, shard and position each use their own.
#[inline]
pub fn hash(key: u64) -> u64 {
    workload::mix(key)
}

/// Which of `owners` threads keeps the keys of this hash. Uses bits that neither shards nor probing use.
#[inline]
pub fn owner(hash: u64, owners: usize) -> usize {
    ((hash >> 48) as usize * owners) >> 16
}

/// Starts to load a value that will be used soon: its first and its last cache line.
#[inline]
pub fn prefetch<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<i8>();
    prefetch_line(first);
    if size_of::<T>() > align_of::<T>() {
        prefetch_line(first.wrapping_add(size_of::<T>() - 1));
    }
}

#[inline]
fn prefetch_line(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing that the program sees and cannot fault, whatever the address is.
    // SSE, which the instruction needs, is part of every x86_64 target.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// What is done at the rows of a batch while their memory is on its way. Row `at` goes through the stages in order.
pub enum Stage {
    /// Start to load its index entry: [`Table::prefetch`].
    Index,
    /// Read the index and start to load the slot: [`Table::guess`].
    Slot,
    /// Read the slot and start to load what hangs on it.
    Chain,
    /// Join it.
    Join,
}

/// Walks the rows `0..rows` of a batch through their stages, each [`STEP`] rows after the one before.
#[inline]
pub fn pipeline(rows: usize, mut at_stage: impl FnMut(Stage, usize)) {
    for step in 0..rows + 3 * STEP {
        if step < rows {
            at_stage(Stage::Index, step);
        }
        if step >= STEP && step - STEP < rows {
            at_stage(Stage::Slot, step - STEP);
        }
        if step >= 2 * STEP && step - 2 * STEP < rows {
            at_stage(Stage::Chain, step - 2 * STEP);
        }
        if step >= 3 * STEP {
            at_stage(Stage::Join, step - 3 * STEP);
        }
    }
}

/// What [`Table::guess`] said of the rows that are under way in a [`pipeline`].
pub struct Guesses([Option<u32>; 4 * STEP]);

impl Guesses {
    /// No guesses.
    pub fn new() -> Self {
        Guesses([None; 4 * STEP])
    }

    /// Notes the guess for a row that is at [`Stage::Slot`].
    #[inline]
    pub fn set(&mut self, at: usize, guess: Option<u32>) {
        self.0[at % (4 * STEP)] = guess;
    }

    /// The guess for a row that is at a later stage.
    #[inline]
    pub fn at(&self, at: usize) -> Option<u32> {
        self.0[at % (4 * STEP)]
    }
}

/// Values by id, in chunks that never move.
pub struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// A slab without values.
    pub fn new() -> Self {
        Slab { chunks: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value and returns its id.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = value;
            return id;
        }
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(value),
            _ => self.start_chunk(value),
        }
        let last = self.chunks.len() - 1;
        (last * CHUNK + self.chunks[last].len() - 1) as u32
    }

    /// Starts to load the value of an id, or does nothing if there is no such id.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        if let Some(value) = self.chunks.get(id as usize / CHUNK).and_then(|chunk| chunk.get(id as usize % CHUNK)) {
            prefetch(value);
        }
    }

    /// Lets the id be used again.
    #[inline]
    pub fn release(&mut self, id: u32) {
        self.free.push(id);
    }

    #[cold]
    fn start_chunk(&mut self, value: T) {
        assert!(self.chunks.len() < MOST_CHUNKS, "a thread's state has more slots than an id can name");
        let mut chunk = Vec::with_capacity(CHUNK);
        chunk.push(value);
        self.chunks.push(chunk);
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }
}

/// A part of the index that grows by itself.
struct Shard {
    entries: Vec<u64>,
    mask: usize,
    used: usize,
}

impl Shard {
    fn new() -> Self {
        Shard { entries: vec![VACANT; SMALLEST], mask: SMALLEST - 1, used: 0 }
    }

    /// Fills the vacant entry that a probe has ended at.
    #[inline]
    fn fill(&mut self, at: usize, entry: u64) {
        self.entries[at] = entry;
        self.used += 1;
        if self.used * 8 > self.entries.len() * FULL_EIGHTHS {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![VACANT; self.entries.len() * 2];
        let old = std::mem::replace(&mut self.entries, doubled);
        self.mask = self.entries.len() - 1;
        for entry in old.into_iter().filter(|&entry| entry != VACANT) {
            let mut at = tag_of(entry) as usize & self.mask;
            while self.entries[at] != VACANT {
                at = (at + 1) & self.mask;
            }
            self.entries[at] = entry;
        }
    }

    /// Takes an entry out and moves later ones of its run back, so that no probe meets a gap.
    #[inline]
    fn vacate(&mut self, entry: u64) {
        let mut gap = tag_of(entry) as usize & self.mask;
        while self.entries[gap] != entry {
            assert!(self.entries[gap] != VACANT, "a slot that is removed is in the index");
            gap = (gap + 1) & self.mask;
        }
        let mut at = gap;
        loop {
            at = (at + 1) & self.mask;
            let moved = self.entries[at];
            if moved == VACANT {
                break;
            }
            let home = tag_of(moved) as usize & self.mask;
            if at.wrapping_sub(home) & self.mask >= at.wrapping_sub(gap) & self.mask {
                self.entries[gap] = moved;
                gap = at;
            }
        }
        self.entries[gap] = VACANT;
        self.used -= 1;
    }
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

#[inline]
fn entry_of(tag: u32, id: u32) -> u64 {
    u64::from(tag) << 32 | (u64::from(id) + 1)
}

#[inline]
fn tag_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[inline]
fn id_of(entry: u64) -> u32 {
    (entry as u32).wrapping_sub(1)
}

/// An index entry without a slot; ids are stored plus one so that no other entry is zero.
const VACANT: u64 = 0;
/// Enough that growing one is not noticed, few enough that their heads stay in the first-level cache.
const SHARDS: usize = 64;
/// How many entries a shard starts with.
const SMALLEST: usize = 16;
/// A shard doubles when more than this many eighths of it are used.
const FULL_EIGHTHS: usize = 6;
/// Rows between two stages of a pipeline: a load from memory should take no longer than joining as many.
const STEP: usize = 8;
/// Values a chunk of a slab holds.
const CHUNK: usize = 1024;
/// One less than what a `u32` could name, because an index entry stores the id plus one.
const MOST_CHUNKS: usize = (1 << 32) / CHUNK - 1;

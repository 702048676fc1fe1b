//! Rows by key: for each key one entry with N lists of row ids.
//!
//! The first row of each input stands in the entry itself, with a presence bit an input, so that one look-up answers
//! "is there a match" whatever N is. A list of more than one row is spilled to a block of ids beside the table.

use std::collections::BTreeMap;
use std::num::NonZero;

use super::RowId;
use super::queue::Queue;
use super::table::{Place, Table, prefetch};
use crate::key::Key;

/// A list of rows, as two runs.
pub type Runs<'a> = (&'a [RowId], &'a [RowId]);

/// The rows of N inputs by key.
pub type KeyedRows<K, const N: usize> = Table<K, Lists<N>, Spill>;

/// The lists of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists<const N: usize> {
    // A row, a spilled list (top bit set), or missing.
    first: [RowId; N],
    present: u16,
    many: u16,
    hushed: u16,
    met: u16,
    // One more than the number of the key among those touched. It has a value that is not one of its own, so that an
    // optional entry takes no more room.
    touched: NonZero<u16>,
}

/// The lists of a shard that hold more than one row: up to four in a block, more in a queue of their own.
#[derive(Debug, Default)]
pub struct Spill {
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
}

// Filled from the front; the rest is missing.
type Block = [RowId; 4];

// What a reference to a spilled list looks like: no row has a number with these bits.
const SPILLED: u32 = 1 << 31;
const QUEUE: u32 = 1 << 30;

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        const { assert!(N <= 16, "a presence bit an input") };
        Lists { first: [RowId::MISSING; N], present: 0, many: 0, hushed: 0, met: 0, touched: NonZero::<u16>::MIN }
    }
}

impl<const N: usize> Lists<N> {
    /// A bit for each input that has a row.
    #[inline]
    pub fn present(&self) -> u16 {
        self.present
    }

    /// A bit for each input that has more than one row.
    #[inline]
    pub fn many(&self) -> u16 {
        self.many
    }

    /// A bit for each input whose last row expired in silence, so that its gap was not announced.
    #[inline]
    pub fn hushed(&self) -> u16 {
        self.hushed
    }

    /// Notes that the gap of an input was, or was not, announced.
    pub fn set_hushed(&mut self, input: usize, hushed: bool) {
        self.hushed = if hushed { self.hushed | 1 << input } else { self.hushed & !(1 << input) };
    }

    /// A bit for each input whose rows are all known to have met a partner.
    #[inline]
    pub fn met(&self) -> u16 {
        self.met
    }

    /// Notes that all rows of an input have met a partner.
    #[inline]
    pub fn set_met_of(&mut self, input: usize) {
        self.met |= 1 << input;
    }

    /// Notes that all rows of all inputs have met a partner.
    #[inline]
    pub fn set_met(&mut self) {
        self.met = self.present;
    }

    /// The number of the key among those that a batch touches, from 1; 0 if it does not.
    pub fn touched(&self) -> u16 {
        self.touched.get() - 1
    }

    /// Gives the key that number, of which there are fewer than `u16::MAX`.
    pub fn touch(&mut self, number: u16) {
        self.touched = NonZero::<u16>::MIN.saturating_add(number);
    }

    /// The only row of each input, where no input has more than one.
    #[inline]
    pub fn singles(&self) -> &[RowId; N] {
        debug_assert_eq!(self.many, 0, "an input has a list");
        &self.first
    }

    /// For each input its only row; missing if it has none, and of no meaning if it has more.
    #[inline]
    pub fn firsts(&self) -> &[RowId; N] {
        &self.first
    }

    /// Asks the processor for the spilled lists, which will be walked soon.
    #[inline]
    pub fn prefetch(&self, spill: &Spill) {
        let mut many = self.many;
        while many != 0 {
            let input = many.trailing_zeros() as usize;
            spill.prefetch(self.first[input]);
            many &= many - 1;
        }
    }

    /// Appends a row to the list of an input; returns whether it is the first there.
    #[inline]
    pub fn push(&mut self, input: usize, id: RowId, spill: &mut Spill) -> bool {
        let bit = 1 << input;
        self.met &= !bit;
        if self.present & bit == 0 {
            self.first[input] = id;
            self.present |= bit;
            return true;
        }
        self.first[input] = if self.many & bit == 0 {
            self.many |= bit;
            spill.begin(self.first[input], id)
        } else {
            spill.append(self.first[input], id)
        };
        false
    }

    /// Takes a row out of the list of an input; returns whether it was there. The order of the others stays.
    pub fn remove(&mut self, input: usize, id: RowId, spill: &mut Spill) -> bool {
        let bit = 1 << input;
        if self.many & bit == 0 {
            let found = self.present & bit != 0 && self.first[input] == id;
            if found {
                self.first[input] = RowId::MISSING;
                self.present &= !bit;
            }
            return found;
        }
        match spill.remove(self.first[input], id) {
            Removed::NotThere => return false,
            Removed::Left => {}
            Removed::LeftOne(last) => {
                self.first[input] = last;
                self.many &= !bit;
            }
        }
        true
    }

    /// As [`contains`](Self::contains), and with little to look at however long the list is.
    fn has(&self, input: usize, id: RowId, spill: &mut Spill) -> bool {
        let reference = self.first[input];
        match self.many >> input & 1 == 1 && is_queue(reference) {
            true => spill.queues[number(reference)].position(id).is_some(),
            false => self.contains(input, id, spill),
        }
    }

    /// Whether the list of an input has this row.
    pub fn contains(&self, input: usize, id: RowId, spill: &Spill) -> bool {
        let (front, back) = self.list(input, spill);
        front.contains(&id) || back.contains(&id)
    }

    /// The newest row of an input, if it has any.
    pub fn newest(&self, input: usize, spill: &Spill) -> Option<RowId> {
        let (front, back) = self.list(input, spill);
        back.last().or(front.last()).copied()
    }

    /// The rows of an input in the order in which they came, as two runs.
    #[inline]
    pub fn list<'a>(&'a self, input: usize, spill: &'a Spill) -> Runs<'a> {
        let bit = 1 << input;
        if self.present & bit == 0 {
            (&[], &[])
        } else if self.many & bit == 0 {
            (std::slice::from_ref(&self.first[input]), &[])
        } else {
            spill.list(self.first[input])
        }
    }
}

// What is left of a list.
enum Removed {
    NotThere,
    Left,
    LeftOne(RowId),
}

fn number(reference: RowId) -> usize {
    reference.index() & !((SPILLED | QUEUE) as usize)
}

fn is_queue(reference: RowId) -> bool {
    reference.index() & QUEUE as usize != 0
}

impl Spill {
    fn begin(&mut self, first: RowId, second: RowId) -> RowId {
        let block = [first, second, RowId::MISSING, RowId::MISSING];
        let index = match self.free_blocks.pop() {
            Some(index) => {
                self.blocks[index as usize] = block;
                index
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as u32
            }
        };
        RowId::new(SPILLED | index)
    }

    // Returns the reference to the list, which moves when a block is full.
    fn append(&mut self, reference: RowId, id: RowId) -> RowId {
        if is_queue(reference) {
            self.queues[number(reference)].push(id);
            return reference;
        }
        let block = &mut self.blocks[number(reference)];
        if let Some(room) = block.iter_mut().find(|row| row.is_missing()) {
            *room = id;
            return reference;
        }
        let queue: Queue = block.iter().copied().chain([id]).collect();
        self.free_blocks.push(number(reference) as u32);
        let index = match self.free_queues.pop() {
            Some(index) => {
                self.queues[index as usize] = queue;
                index
            }
            None => {
                self.queues.push(queue);
                (self.queues.len() - 1) as u32
            }
        };
        RowId::new(SPILLED | QUEUE | index)
    }

    fn remove(&mut self, reference: RowId, id: RowId) -> Removed {
        let index = number(reference);
        if is_queue(reference) {
            let queue = &mut self.queues[index];
            let Some(position) = queue.position(id) else { return Removed::NotThere };
            queue.remove(position);
            let (front, back) = queue.rows();
            if front.len() + back.len() > 1 {
                return Removed::Left;
            }
            let last = front.first().or(back.first()).copied().unwrap_or(RowId::MISSING);
            *queue = Queue::default();
            self.free_queues.push(index as u32);
            return Removed::LeftOne(last);
        }
        let block = &mut self.blocks[index];
        let Some(position) = block.iter().position(|&other| other == id) else { return Removed::NotThere };
        block.copy_within(position + 1.., position);
        block[3] = RowId::MISSING;
        if !block[1].is_missing() {
            return Removed::Left;
        }
        let last = block[0];
        self.free_blocks.push(index as u32);
        Removed::LeftOne(last)
    }

    #[inline]
    fn list(&self, reference: RowId) -> Runs<'_> {
        if is_queue(reference) {
            return self.queues[number(reference)].rows();
        }
        let block = &self.blocks[number(reference)];
        let rows = block.iter().position(|row| row.is_missing()).unwrap_or(block.len());
        (&block[..rows], &[])
    }

    #[inline]
    fn prefetch(&self, reference: RowId) {
        match is_queue(reference) {
            true => self.queues.get(number(reference)).into_iter().for_each(prefetch),
            false => self.blocks.get(number(reference)).into_iter().for_each(prefetch),
        }
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let ids: usize = self.queues.iter().map(Queue::bytes).sum();
        let queues = self.queues.capacity() * size_of::<Queue>();
        let free = (self.free_blocks.capacity() + self.free_queues.capacity()) * size_of::<u32>();
        (ids + queues + self.blocks.capacity() * size_of::<Block>() + free) as u64
    }
}

impl<K: Key, const N: usize> KeyedRows<K, N> {
    /// Bytes taken by the table and its lists.
    pub fn total_bytes(&self) -> u64 {
        self.bytes(Spill::bytes)
    }

    /// The place of the key of a row, by its hash and id, if it is held.
    pub fn place_of(&mut self, hash: u64, input: usize, id: RowId) -> Option<Place> {
        // As a rule no other key has this hash: then there is one list to look into.
        let Some(place) = self.find_lone(hash) else {
            return self.find_by(hash, |lists, spill| lists.contains(input, id, spill));
        };
        let (lists, spill) = self.at(place);
        lists.has(input, id, spill).then_some(place)
    }

    /// Takes a row out of the list of an input, by its hash and id; the entry goes when all its lists are empty.
    /// Returns its place, or none when the entry has gone, if the row was there.
    pub fn take_row(&mut self, hash: u64, input: usize, id: RowId) -> Option<Option<Place>> {
        let place = self.place_of(hash, input, id)?;
        let (lists, spill) = self.at(place);
        lists.remove(input, id, spill);
        if lists.present() == 0 {
            self.remove(place);
            return Some(None);
        }
        Some(Some(place))
    }
}

/// What has been said about gaps, where rows of optional inputs can expire in silence.
///
/// A result with a gap at input `j` stands downstream iff `j` has been empty since the newest row of that result
/// came: else the gap was filled when that row came, and when the filler expired nobody was told. So the arrival of
/// each row is numbered, and for the few keys where a list was emptied in silence, the number at that moment is kept.
#[derive(Debug)]
pub struct Hushed<K, const N: usize> {
    next: u64,
    arrivals: [Vec<u64>; N],
    emptied: BTreeMap<K, [u64; N]>,
}

impl<K: Key, const N: usize> Default for Hushed<K, N> {
    fn default() -> Self {
        Hushed { next: 1, arrivals: std::array::from_fn(|_| Vec::new()), emptied: BTreeMap::new() }
    }
}

impl<K: Key, const N: usize> Hushed<K, N> {
    /// A row has come.
    pub fn on_arrival(&mut self, input: usize, id: RowId) {
        let arrivals = &mut self.arrivals[input];
        if arrivals.len() <= id.index() {
            arrivals.resize(id.index() + 1, 0);
        }
        arrivals[id.index()] = self.next;
        self.next += 1;
    }

    /// The number that the next row will have.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The number of a row.
    pub fn arrival(&self, input: usize, id: RowId) -> u64 {
        self.arrivals[input].get(id.index()).copied().unwrap_or(0)
    }

    /// When each list of a key was emptied in silence, if one was.
    pub fn emptied(&self, key: &K) -> Option<&[u64; N]> {
        self.emptied.get(key)
    }

    /// A row comes back that had this number.
    pub fn put_back(&mut self, input: usize, id: RowId, number: u64) {
        let next = std::mem::replace(&mut self.next, number);
        self.on_arrival(input, id);
        self.next = next.max(self.next);
    }

    /// When each list of a key was emptied comes back.
    pub fn put_back_emptied(&mut self, key: K, emptied: [u64; N]) {
        self.emptied.insert(key, emptied);
    }

    /// The next row has at least this number.
    pub fn go_on(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// The last row of an optional input has expired.
    pub fn on_emptied(&mut self, key: &K, input: usize) {
        self.emptied.entry(key.clone()).or_insert([0; N])[input] = self.next;
    }

    /// The gap of an input has been announced for all that stands under the key.
    pub fn on_announced(&mut self, key: &K, input: usize) {
        if let Some(emptied) = self.emptied.get_mut(key) {
            emptied[input] = 0;
        }
    }

    /// Nothing is held under the key any more.
    pub fn on_gone(&mut self, key: &K) {
        self.emptied.remove(key);
    }

    /// Whether a result with gaps was said and stands.
    pub fn stands(&self, key: &K, ids: &[RowId; N]) -> bool {
        let Some(emptied) = self.emptied.get(key) else { return true };
        let rows = ids.iter().enumerate().filter(|(_, id)| !id.is_missing());
        let newest = rows.map(|(input, id)| self.arrivals[input][id.index()]).max().unwrap_or(0);
        ids.iter().zip(emptied).all(|(id, &emptied)| !id.is_missing() || emptied <= newest)
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let arrivals: usize = self.arrivals.iter().map(|column| column.capacity() * 8).sum();
        (arrivals + self.emptied.len() * (size_of::<K>() + size_of::<[u64; N]>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn rows<const N: usize>(lists: &Lists<N>, input: usize, spill: &Spill) -> Vec<usize> {
        let (front, back) = lists.list(input, spill);
        front.iter().chain(back).map(|id| id.index()).collect()
    }

    #[test]
    fn a_list_keeps_the_order_of_arrival_through_removals() {
        let (mut lists, mut spill) = (Lists::<3>::default(), Spill::default());
        assert!(lists.push(1, RowId::new(9), &mut spill));
        assert!(!lists.push(1, RowId::new(4), &mut spill));
        assert!(!lists.push(1, RowId::new(7), &mut spill));
        assert_eq!((lists.present(), lists.many()), (0b010, 0b010));
        assert!(lists.contains(1, RowId::new(7), &spill) && !lists.contains(0, RowId::new(7), &spill));
        assert!(lists.remove(1, RowId::new(4), &mut spill) && !lists.remove(1, RowId::new(4), &mut spill));
        assert_eq!(rows(&lists, 1, &spill), [9, 7]);
        assert!(lists.remove(1, RowId::new(9), &mut spill));
        assert_eq!((rows(&lists, 1, &spill), lists.many()), (vec![7], 0));
        assert!(lists.remove(1, RowId::new(7), &mut spill));
        assert_eq!((lists.present(), lists.many(), lists.met()), (0, 0, 0));
    }

    #[test]
    fn a_list_of_any_length_answers_as_a_queue_does() {
        let (mut lists, mut spill) = (Lists::<1>::default(), Spill::default());
        let mut model = VecDeque::new();
        let mut seed = 7u64;
        for n in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize;
            // Grows to about a dozen, and shrinks again.
            if model.is_empty() || at % 12 >= model.len() {
                model.push_back(n);
                lists.push(0, RowId::new(n as u32), &mut spill);
            } else if let Some(gone) = model.remove(at % model.len()) {
                assert!(lists.remove(0, RowId::new(gone as u32), &mut spill));
            }
            assert_eq!(rows(&lists, 0, &spill), Vec::from(model.clone()));
        }
    }

    #[test]
    fn a_row_is_found_by_its_hash_though_another_key_has_it_too() {
        let mut table: KeyedRows<u8, 1> = KeyedRows::default();
        let mut put = |key: u8, ids: std::ops::Range<u32>| {
            let place = table.upsert(5, key);
            let (lists, spill) = table.at(place);
            ids.for_each(|id| {
                lists.push(0, RowId::new(id), spill);
            });
            (table.place_of(5, 0, RowId::new(3)), table.place_of(5, 0, RowId::new(700)), place)
        };
        let (three, none, one) = put(1, 0..600);
        assert_eq!((three, none), (Some(one), None));
        let (three, seven_hundred, other) = put(2, 600..1_200);
        assert_eq!((three, seven_hundred), (Some(one), Some(other)));
    }

    #[test]
    fn an_entry_goes_with_its_last_row() {
        let mut table: KeyedRows<u8, 2> = KeyedRows::default();
        let place = table.upsert(5, 1);
        let (lists, spill) = table.at(place);
        lists.push(0, RowId::new(1), spill);
        lists.push(1, RowId::new(1), spill);
        assert!(matches!(table.take_row(5, 0, RowId::new(1)), Some(Some(_))));
        assert_eq!(table.take_row(5, 0, RowId::new(1)), None);
        assert_eq!(table.take_row(5, 1, RowId::new(1)), Some(None));
        assert!(table.is_empty());
    }

    #[test]
    fn a_gap_that_was_filled_when_a_row_came_does_not_stand_after_the_filler_expired() {
        let mut hushed: Hushed<u8, 2> = Hushed::default();
        let (old, new) = (RowId::new(0), RowId::new(1));
        hushed.on_arrival(0, old);
        hushed.on_emptied(&1, 1);
        hushed.on_arrival(0, new);
        assert!(!hushed.stands(&1, &[old, RowId::MISSING]));
        assert!(hushed.stands(&1, &[new, RowId::MISSING]));
        hushed.on_announced(&1, 1);
        assert!(hushed.stands(&1, &[old, RowId::MISSING]));
    }
}

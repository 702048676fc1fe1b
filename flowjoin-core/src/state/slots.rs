//! Small rows of one key side by side.
//!
//! A join makes its results of the rows of one key. Where each input has its rows in a slab of its own, a result of N
//! inputs touches N places of memory; here the first row of each input stands in the slot of the key, and it touches
//! one. The number of a slot is that of the key's entry in its table. What does not fit (a second row of an input) is
//! kept in the slab.

use super::Chunks;

/// Slots by number, which never move. A slot is a tuple with a place for a row of each input.
#[derive(Debug)]
pub struct Slots<S> {
    slots: Chunks<S>,
    len: u32,
}

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Slots { slots: Chunks::default(), len: 0 }
    }
}

impl<S: Default> Slots<S> {
    /// Whether slots are small enough that one may be kept for each key, though not every input has a row there.
    pub const fn are_small() -> bool {
        size_of::<S>() <= LARGEST
    }

    /// The slot of a number, if there is one.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&S> {
        self.slots.get(slot as usize)
    }

    /// The slot of a number, to be changed, if there is one.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut S> {
        self.slots.get_mut(slot as usize)
    }

    /// The slot of a number, which is made with all before it if there is none.
    #[inline]
    pub fn reach(&mut self, slot: u32) -> &mut S {
        if slot >= self.len {
            self.grow(slot);
        }
        &mut self.slots[slot as usize]
    }

    // Mostly by one, as the next key comes.
    #[inline]
    fn grow(&mut self, slot: u32) {
        for _ in self.len..=slot {
            self.slots.push(S::default());
        }
        self.len = slot + 1;
    }

    /// All slots with their numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &S)> {
        self.slots.iter().enumerate().map(|(number, slot)| (number as u32, slot))
    }

    /// Bytes taken, without what rows own elsewhere.
    pub fn bytes(&self) -> u64 {
        self.slots.bytes()
    }
}

/// Bytes of the largest slot that is kept for a key of which perhaps one input has a row.
const LARGEST: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_made_with_those_before_it() {
        let mut slots: Slots<(Option<u8>, Option<String>)> = Slots::default();
        assert!(slots.get(0).is_none() && slots.get_mut(3_000).is_none());
        slots.reach(3_000).1 = Some("a".to_string());
        slots.reach(5).0 = Some(7);
        assert_eq!(slots.get(3_000), Some(&(None, Some("a".to_string()))));
        assert_eq!(
            slots.iter().filter(|(_, slot)| **slot != (None, None)).map(|(n, _)| n).collect::<Vec<_>>(),
            [5, 3_000]
        );
        assert_eq!((slots.iter().count(), slots.get(3_001)), (3_001, None));
    }

    #[test]
    fn slots_of_large_rows_are_not_kept() {
        assert!(Slots::<([u64; 32], [u64; 32])>::are_small() && !Slots::<([u64; 32], [u64; 32], u8)>::are_small());
    }
}

//! Which rows have met a partner.

use super::{Bits, Chunks, RowId, prefetch};

/// The rows of N inputs that have met a partner: a bit a row in a slab, and a word a slot.
#[derive(Debug)]
pub struct Met<const N: usize> {
    slabs: [Bits; N],
    // In chunks, so that to grow never stops the operator.
    slots: Chunks<u16>,
}

impl<const N: usize> Default for Met<N> {
    fn default() -> Self {
        Met { slabs: std::array::from_fn(|_| Bits::default()), slots: Chunks::default() }
    }
}

impl<const N: usize> Met<N> {
    /// Notes that a row has met; returns whether it had not before.
    #[inline]
    pub fn insert(&mut self, input: usize, id: RowId) -> bool {
        match id.slot() {
            Some(slot) => self.insert_in_slot(slot, 1 << input) != 0,
            None => self.slabs[input].insert(id),
        }
    }

    /// Notes that rows of a slot have met, a bit an input; returns those that had not before.
    #[inline]
    pub fn insert_in_slot(&mut self, slot: u32, rows: u16) -> u16 {
        let slot = slot as usize;
        if let Some(met) = self.slots.get_mut(slot) {
            let new = rows & !*met;
            *met |= rows;
            return new;
        }
        while self.slots.len() < slot {
            self.slots.push(0);
        }
        self.slots.push(rows);
        rows
    }

    /// Asks the processor for what is known of a slot, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        self.slots.get(slot as usize).into_iter().for_each(prefetch);
    }

    /// Forgets that a row has met; returns whether it had.
    #[inline]
    pub fn remove(&mut self, input: usize, id: RowId) -> bool {
        let Some(slot) = id.slot() else { return self.slabs[input].remove(id) };
        let Some(rows) = self.slots.get_mut(slot as usize) else { return false };
        let was = *rows >> input & 1 == 1;
        *rows &= !(1 << input);
        was
    }

    /// Whether a row has met.
    #[inline]
    pub fn contains(&self, input: usize, id: RowId) -> bool {
        match id.slot() {
            Some(slot) => self.slots.get(slot as usize).is_some_and(|rows| rows >> input & 1 == 1),
            None => self.slabs[input].contains(id),
        }
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.slabs.iter().map(Bits::bytes).sum::<u64>() + self.slots.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_meets_once_wherever_it_stands() {
        let mut met: Met<3> = Met::default();
        for id in [RowId::in_slab(9), RowId::in_slot(9)] {
            assert!(!met.contains(1, id) && !met.remove(1, id));
            assert!(met.insert(1, id) && !met.insert(1, id));
            assert!(met.contains(1, id) && !met.contains(2, id));
        }
        assert_eq!(met.insert_in_slot(9, 0b111), 0b101);
        assert!(met.remove(1, RowId::in_slot(9)) && met.contains(2, RowId::in_slot(9)));
        assert!(met.contains(1, RowId::in_slab(9)));
    }
}

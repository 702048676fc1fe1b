//! One bit a row.

use super::RowId;

/// A set of row ids, dense and growing.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Puts a row into the set; returns whether it was new there.
    #[inline]
    pub fn insert(&mut self, id: RowId) -> bool {
        let (word, bit) = (id.index() / 64, 1u64 << (id.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Takes a row out of the set; returns whether it was there.
    #[inline]
    pub fn remove(&mut self, id: RowId) -> bool {
        let bit = 1u64 << (id.index() % 64);
        match self.words.get_mut(id.index() / 64) {
            Some(word) => {
                let was = *word & bit != 0;
                *word &= !bit;
                was
            }
            None => false,
        }
    }

    /// Whether a row is in the set.
    #[inline]
    pub fn contains(&self, id: RowId) -> bool {
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        (self.words.capacity() * 8) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_new_once_until_it_is_removed() {
        let mut bits = Bits::default();
        let id = RowId::new(130);
        assert!(!bits.contains(id) && !bits.remove(id));
        assert!(bits.insert(id) && !bits.insert(id) && bits.contains(id));
        assert!(bits.remove(id) && bits.insert(id));
        assert!(!bits.contains(RowId::new(129)));
    }
}

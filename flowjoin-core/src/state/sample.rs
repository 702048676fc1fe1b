//! Which keys are looked at more closely than the others.

/// A sample of the keys, by their hashes: all of them while rows are few, and from then on one in 256. So the rows of a key
/// are looked at together or not at all, and for a row of another key it costs a look at its hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    // A key is looked at if these bits of its hash are zero.
    mask: u64,
    rows: u64,
}

impl Sample {
    /// So many rows are looked at before the sample is one of few keys.
    pub const ALL_MAX: u64 = 8_192;

    /// Whether a key is looked at.
    #[inline]
    pub fn takes(&self, hash: u64) -> bool {
        bits(hash) & self.mask == 0
    }

    /// For how many each key that is looked at stands.
    pub fn one_in(&self) -> u64 {
        self.mask + 1
    }

    /// Counts a row of a key that is looked at.
    pub fn on_row(&mut self) {
        self.rows += 1;
        if self.rows == Self::ALL_MAX {
            self.mask |= ONE_IN - 1;
        }
    }

    /// Looks at half of the keys from now on; returns whether that is so, which it is not when they are very few already.
    pub fn halve(&mut self) -> bool {
        let halved = self.mask < BITS;
        if halved {
            self.mask = self.mask * 2 + 1;
        }
        halved
    }
}

// The places of keys in tables are taken from the bits below, those in tasks from the bits above.
fn bits(hash: u64) -> u64 {
    hash >> 32 & BITS
}

const BITS: u64 = (1 << 25) - 1;

// Of so many keys one is looked at from then on.
const ONE_IN: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn all_keys_are_looked_at_first_and_then_one_in_256() {
        let mut sample = Sample::default();
        let taken = |sample: &Sample| (0..100_000u64).filter(|key| sample.takes(key.stable_hash(&mut vec![]))).count();
        (1..Sample::ALL_MAX).for_each(|_| sample.on_row());
        assert_eq!((taken(&sample), sample.one_in()), (100_000, 1));
        sample.on_row();
        // 390 are expected, with a standard deviation of 20.
        assert!((300..480).contains(&taken(&sample)) && sample.one_in() == 256, "{}", taken(&sample));
    }

    #[test]
    fn a_sample_can_be_halved_until_it_is_one_of_33_million() {
        let mut sample = Sample::default();
        assert!((0..25).all(|_| sample.halve()) && !sample.halve());
        assert_eq!(sample.one_in(), 1 << 25);
    }
}

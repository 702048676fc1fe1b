//! Keys whose rows have expired, in little memory.

/// Keys that expired not long ago, by 32 bits of their hashes, in a fixed number of sets of four; where a fifth comes
/// into a set, the oldest is forgotten. So about the last 16,384 keys are known, in 64 KB. A key that is not there is
/// taken for one that is in less than one case of a billion.
#[derive(Debug)]
pub struct Expired {
    // Newest first; zero is none.
    sets: Box<[[u32; WAYS]; SETS]>,
}

impl Default for Expired {
    fn default() -> Self {
        Expired { sets: Box::new([[0; WAYS]; SETS]) }
    }
}

impl Expired {
    /// How many keys are known at the most.
    pub const KEYS: usize = WAYS * SETS;

    /// Notes a key.
    pub fn insert(&mut self, hash: u64) {
        let (set, print) = self.place(hash);
        let oldest = set.iter().position(|&other| other == print || other == 0).unwrap_or(WAYS - 1);
        set[..=oldest].rotate_right(1);
        set[0] = print;
    }

    /// Forgets a key.
    pub fn remove(&mut self, hash: u64) {
        let (set, print) = self.place(hash);
        if let Some(at) = set.iter().position(|&other| other == print) {
            set[at] = 0;
            set[at..].rotate_left(1);
        }
    }

    /// Whether a key has expired, as far as is known.
    pub fn contains(&self, hash: u64) -> bool {
        self.sets[set_of(hash)].contains(&print_of(hash))
    }

    /// Bytes taken.
    pub const fn bytes() -> u64 {
        (Self::KEYS * size_of::<u32>()) as u64
    }

    fn place(&mut self, hash: u64) -> (&mut [u32; WAYS], u32) {
        (&mut self.sets[set_of(hash)], print_of(hash))
    }
}

fn set_of(hash: u64) -> usize {
    hash as usize % SETS
}

// The keys of a task have bits in common, at the top and where a sample is taken: the product mixes all below them in.
fn print_of(hash: u64) -> u32 {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (mixed as u32).max(1)
}

const WAYS: usize = 4;
const SETS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_until_it_is_removed() {
        let mut expired = Expired::default();
        assert!(!expired.contains(0) && !expired.contains(7));
        for hash in [7, 0, u64::MAX, 7] {
            expired.insert(hash);
        }
        assert!([7, 0, u64::MAX].into_iter().all(|hash| expired.contains(hash)));
        expired.remove(7);
        assert!(!expired.contains(7) && expired.contains(0));
        assert_eq!(Expired::bytes(), 65_536);
    }

    #[test]
    fn the_oldest_of_a_set_makes_way_and_one_noted_again_is_young() {
        let mut expired = Expired::default();
        let of_one_set: Vec<u64> = (0..6).map(|n| 5 + n * SETS as u64).collect();
        of_one_set[..4].iter().for_each(|&hash| expired.insert(hash));
        expired.insert(of_one_set[0]);
        expired.insert(of_one_set[4]);
        let known = |expired: &Expired| of_one_set.iter().map(|&hash| expired.contains(hash)).collect::<Vec<_>>();
        assert_eq!(known(&expired), [true, false, true, true, true, false]);
        expired.remove(of_one_set[3]);
        expired.insert(of_one_set[5]);
        assert_eq!(known(&expired), [true, false, true, false, true, true]);
    }
}

//! The index of a shard of a table: which entries a hash may name.
//!
//! Eight marks, each the tag of a hash and the number of an entry, make a line of the processor's cache, and a hash has its
//! home in one line. A look-up compares all tags of the line at once: where the probing of single places would guess
//! wrongly when to stop, it takes no branch. A mark that finds its line full goes to the next one that is not, and comes
//! back, or nearer, when another leaves: so a look-up ends with the first line that is not full. In a line the marks
//! stand in front of the free places.

use super::table::prefetch;

/// Numbers of entries by the tags of their hashes.
#[derive(Debug, Default)]
pub struct Marks {
    // None, or a power of two of them.
    lines: Box<[Line]>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line {
    // Zero is no tag: the place is free.
    tags: [u32; PLACES],
    entries: [u32; PLACES],
}

const PLACES: usize = 8;

// Places of a line, a bit each, from the second on: so the compiler makes vectors of all eight, where it would treat the
// first apart, whose bit would be what the comparison itself gives.
#[derive(Clone, Copy)]
struct Hits(u32);

impl Hits {
    // The first place; if there is none, any.
    #[inline]
    fn first(self) -> usize {
        (self.0.trailing_zeros() as usize).wrapping_sub(1) % PLACES
    }
}

impl Iterator for Hits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let first = (self.0 != 0).then(|| self.first());
        self.0 &= self.0.wrapping_sub(1);
        first
    }
}

/// The tag of a hash: its low bits, as other bits have chosen the shard.
#[inline]
pub fn tag_of(hash: u64) -> u32 {
    (hash as u32).max(1)
}

impl Line {
    const FREE: Line = Line { tags: [0; PLACES], entries: [NO_ENTRY; PLACES] };

    // The places of the marks with this tag.
    #[inline]
    fn with(&self, tag: u32) -> Hits {
        Hits((0..PLACES).fold(0, |hits, place| hits | if self.tags[place] == tag { 2 << place } else { 0 }))
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.tags[PLACES - 1] != 0
    }

    fn used(&self) -> usize {
        self.tags.iter().take_while(|&&tag| tag != 0).count()
    }

    fn put(&mut self, tag: u32, entry: u32) {
        let place = self.used();
        (self.tags[place], self.entries[place]) = (tag, entry);
    }

    // Takes a mark out; the last one takes its place.
    fn take(&mut self, place: usize) -> (u32, u32) {
        let taken = (self.tags[place], self.entries[place]);
        let last = self.used() - 1;
        (self.tags[place], self.entries[place]) = (self.tags[last], self.entries[last]);
        (self.tags[last], self.entries[last]) = (0, NO_ENTRY);
        taken
    }
}

impl Marks {
    /// How many marks there is room for.
    pub fn places(&self) -> usize {
        self.lines.len() * PLACES
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.lines.len().wrapping_sub(1)
    }

    /// Asks the processor for the home of a tag, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, tag: u32) {
        if let Some(line) = self.lines.get(self.home(tag)) {
            prefetch(line);
        }
    }

    /// Which entry is probably that of the tag; [`NO_ENTRY`] if its home has none, though another line may.
    #[inline]
    pub fn guess(&self, tag: u32) -> u32 {
        let Some(line) = self.lines.get(self.home(tag)) else { return NO_ENTRY };
        let with = line.with(tag);
        let entry = line.entries[with.first()];
        if with.0 == 0 { NO_ENTRY } else { entry }
    }

    /// The first entry of the tag that the test holds for.
    #[inline]
    pub fn find(&self, tag: u32, mut test: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        loop {
            let line = self.lines.get(at)?;
            let found = line.with(tag).map(|place| line.entries[place]).find(|&entry| test(entry));
            if found.is_some() {
                return found;
            }
            if !line.is_full() {
                return None;
            }
            at = (at + 1) & (self.lines.len() - 1);
        }
    }

    /// Notes an entry. There must be a free place.
    #[inline]
    pub fn insert(&mut self, tag: u32, entry: u32) {
        let mut at = self.home(tag);
        while self.lines[at].is_full() {
            at = (at + 1) & (self.lines.len() - 1);
        }
        self.lines[at].put(tag, entry);
    }

    /// Forgets an entry that is noted.
    pub fn remove(&mut self, tag: u32, entry: u32) {
        let mask = self.lines.len() - 1;
        let mut hole = self.home(tag);
        let place = loop {
            let line = &self.lines[hole];
            if let Some(place) = line.entries.iter().position(|&other| other == entry) {
                break place;
            }
            hole = (hole + 1) & mask;
        };
        let mut was_full = self.lines[hole].is_full();
        self.lines[hole].take(place);
        // Of the marks that went past the line because it was full, one comes back to it; then one to where that was.
        let mut next = (hole + 1) & mask;
        while was_full && next != hole {
            let line = &self.lines[next];
            let is_full = line.is_full();
            let goes_past = |tag: u32| (next.wrapping_sub(self.home(tag)) & mask) >= (next.wrapping_sub(hole) & mask);
            if let Some(place) = line.tags[..line.used()].iter().position(|&tag| goes_past(tag)) {
                let (tag, entry) = self.lines[next].take(place);
                self.lines[hole].put(tag, entry);
                (hole, was_full) = (next, is_full);
            } else {
                was_full = is_full;
            }
            next = (next + 1) & mask;
        }
    }

    /// Makes room for twice as many marks.
    #[cold]
    pub fn grow(&mut self) {
        let lines = (self.lines.len() * 2).max(SMALLEST / PLACES);
        let larger = Marks { lines: vec![Line::FREE; lines].into_boxed_slice() };
        let smaller = std::mem::replace(self, larger);
        smaller.iter().for_each(|(tag, entry)| self.insert(tag, entry));
    }

    /// All marks: tags and entries.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.lines.iter().flat_map(|line| line.tags.into_iter().zip(line.entries).take_while(|&(tag, _)| tag != 0))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.lines) as u64
    }
}

/// The number of no entry.
pub const NO_ENTRY: u32 = u32::MAX;

/// Places of the smallest index that has any.
const SMALLEST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_one_of_the_cache() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
    }

    proptest! {
        // Few homes and full lines: marks go far, and come back.
        #[test]
        fn marks_are_found_through_inserts_and_removals(
            steps in proptest::collection::vec((any::<bool>(), 0u32..6, any::<prop::sample::Index>()), 1..400),
        ) {
            let mut marks = Marks::default();
            let mut model: Vec<(u32, u32)> = Vec::new();
            for (entry, (insert, tag, pick)) in steps.into_iter().enumerate() {
                if insert || model.is_empty() {
                    if model.len() + 1 >= marks.places() {
                        marks.grow();
                    }
                    // Tags of one home, and some of its neighbour.
                    let mark = (tag_of(u64::from(tag) << 16 | u64::from(tag == 5)), entry as u32);
                    marks.insert(mark.0, mark.1);
                    model.push(mark);
                } else {
                    let (tag, entry) = model.swap_remove(pick.index(model.len()));
                    marks.remove(tag, entry);
                }
                for &(tag, entry) in &model {
                    prop_assert_eq!(marks.find(tag, |other| other == entry), Some(entry));
                    let guess = marks.guess(tag);
                    prop_assert!(guess == NO_ENTRY || model.contains(&(tag, guess)));
                }
                let mut all: Vec<_> = marks.iter().collect();
                all.sort_unstable();
                let mut expected = model.clone();
                expected.sort_unstable();
                prop_assert_eq!(all, expected);
                prop_assert_eq!(marks.find(77, |_| true), None);
                // No line has a free place before one that went past it.
                for (at, line) in marks.lines.iter().enumerate() {
                    for &tag in &line.tags[..line.used()] {
                        let mut home = marks.home(tag);
                        while home != at {
                            prop_assert!(marks.lines[home].is_full());
                            home = (home + 1) % marks.lines.len();
                        }
                    }
                }
            }
        }
    }
}

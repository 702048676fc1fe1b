//! A long list whose items never move.
//!
//! It is kept in chunks, so that growing copies nothing (but the first chunk, while that is small) and never stops the
//! operator. A chunk takes a power of two of bytes, or nearly: allocators hand those out without a rest.

/// Items by number, from 0.
#[derive(Debug)]
pub struct Chunks<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new() }
    }
}

impl<T> Chunks<T> {
    /// Items of a chunk.
    pub const LEN: usize = match size_of::<T>() {
        0 => usize::MAX,
        size if size > BYTES => 1,
        size => BYTES / size,
    };

    /// The item of a number, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / Self::LEN)?.get(index % Self::LEN)
    }

    /// The item of a number, to be changed, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.chunks.get_mut(index / Self::LEN)?.get_mut(index % Self::LEN)
    }

    /// Appends an item, whose number is one more than that of the last.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(item),
            _ => self.push_growing(item),
        }
    }

    #[cold]
    fn push_growing(&mut self, item: T) {
        match self.chunks.last_mut() {
            // The first chunk starts small: many lists never fill one.
            None => self.chunks.push(Vec::with_capacity(SMALLEST.min(Self::LEN))),
            Some(last) if last.len() < Self::LEN => last.reserve_exact(last.len().min(Self::LEN - last.len())),
            Some(_) => self.chunks.push(Vec::with_capacity(Self::LEN)),
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(item);
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * Self::LEN + last.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// All items, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Bytes taken, without what items own elsewhere.
    pub fn bytes(&self) -> u64 {
        let items: usize = self.chunks.iter().map(Vec::capacity).sum();
        (items * size_of::<T>()) as u64
    }
}

impl<T> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.chunks[index / Self::LEN][index % Self::LEN]
    }
}

impl<T> std::ops::IndexMut<usize> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / Self::LEN][index % Self::LEN]
    }
}

const BYTES: usize = 1 << 18;

const SMALLEST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_by_number_and_take_no_more_room_than_they_need() {
        let mut items: Chunks<[u64; 3]> = Chunks::default();
        assert!(items.is_empty() && items.get(0).is_none());
        let count = 2 * Chunks::<[u64; 3]>::LEN as u64 + 5;
        for n in 0..count {
            assert_eq!(items.len() as u64, n);
            items.push([n, n + 1, n + 2]);
        }
        items[7][0] = 70;
        assert_eq!((items[7][0], items.get(count as usize - 1).map(|item| item[0])), (70, Some(count - 1)));
        assert!(items.get(count as usize).is_none() && items.get_mut(count as usize).is_none());
        assert_eq!(items.iter().map(|item| item[1]).sum::<u64>(), count * (count + 1) / 2);
        assert_eq!(items.bytes(), 3 * 24 * (BYTES as u64 / 24));
    }

    #[test]
    fn items_of_any_size_have_a_chunk() {
        let mut nothing: Chunks<()> = Chunks::default();
        let mut large: Chunks<[u8; BYTES + 1]> = Chunks::default();
        for _ in 0..3 {
            nothing.push(());
            large.push([1; BYTES + 1]);
        }
        assert_eq!((nothing.len(), large.len(), large[2][BYTES]), (3, 3, 1));
    }
}

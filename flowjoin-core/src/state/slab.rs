//! Rows by id.
//!
//! Rows never move; the places of those that left are used again, the last one first.

use std::num::NonZero;

use super::table::prefetch;
use super::{Chunks, RowId};
use crate::error::OpError;
use crate::time::EventTime;

/// A row in state, with its event time.
#[derive(Clone, Debug)]
pub struct Held<T> {
    /// The row.
    pub row: T,
    // As far before the end of time as it is, which is never nothing: so an optional row takes no more room.
    left: NonZero<u64>,
}

impl<T> Held<T> {
    /// A row with its time, which is at most [`EventTime::LAST`].
    #[inline]
    pub fn new(row: T, time: EventTime) -> Held<T> {
        let left = EventTime::MAX.as_millis().wrapping_sub(time.as_millis()) as u64;
        Held { row, left: NonZero::new(left).unwrap_or(NonZero::<u64>::MIN) }
    }

    /// Its event time.
    #[inline]
    pub fn time(&self) -> EventTime {
        EventTime::from_millis(EventTime::MAX.as_millis().wrapping_sub(self.left.get() as i64))
    }
}

/// The rows of one input of one task.
#[derive(Debug)]
pub struct Slab<T> {
    rows: Chunks<Option<Held<T>>>,
    free: Vec<RowId>,
    live: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { rows: Chunks::default(), free: Vec::new(), live: 0 }
    }
}

impl<T> Slab<T> {
    /// Takes a row in.
    ///
    /// # Errors
    /// If the slab has no numbers left.
    #[inline]
    pub fn insert(&mut self, row: T, time: EventTime) -> Result<RowId, OpError> {
        self.live += 1;
        if let Some(id) = self.free.pop() {
            if let Some(&next) = self.free.len().checked_sub(AHEAD).and_then(|at| self.free.get(at)) {
                self.prefetch(next);
            }
            self.rows[number(id)] = Some(Held::new(row, time));
            return Ok(id);
        }
        let index = self.rows.len();
        if index >= RowId::LIMIT {
            self.live -= 1;
            return Err(OpError::too_many_rows());
        }
        self.rows.push(Some(Held::new(row, time)));
        Ok(RowId::in_slab(index as u32))
    }

    /// Puts another row in the place of one that is held, and returns that one.
    pub fn replace(&mut self, id: RowId, row: T, time: EventTime) -> Held<T> {
        let held = self.rows[number(id)].as_mut();
        std::mem::replace(held.expect("only a row that is held is replaced"), Held::new(row, time))
    }

    /// The row of this id, if it is held.
    #[inline]
    pub fn get(&self, id: RowId) -> Option<&Held<T>> {
        self.rows.get(number(id))?.as_ref()
    }

    /// Asks the processor for the row, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, id: RowId) {
        if let Some(held) = self.rows.get(number(id)) {
            prefetch(held);
        }
    }

    /// Takes a row out; its id may be given to another row.
    pub fn remove(&mut self, id: RowId) -> Option<Held<T>> {
        let held = self.vacate(id)?;
        self.free.push(id);
        Some(held)
    }

    /// Drops a row that is held; its id may be given to another row. A row that owns nothing is left where it is until
    /// then, since the visit would cost more than the memory is worth.
    #[inline]
    pub fn discard(&mut self, id: RowId) {
        if std::mem::needs_drop::<T>() {
            self.remove(id);
        } else {
            self.live -= 1;
            self.free.push(id);
        }
    }

    /// Takes a row out and keeps its id from being given away until [`release`](Self::release).
    pub fn vacate(&mut self, id: RowId) -> Option<Held<T>> {
        let held = self.rows.get_mut(number(id))?.take()?;
        self.live -= 1;
        Some(held)
    }

    /// Gives back the id of a vacated row.
    pub fn release(&mut self, id: RowId) {
        self.free.push(id);
    }

    /// How many rows are held.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The ids of the rows held, ascending.
    pub fn ids(&self) -> Vec<RowId> {
        let mut free = self.free.clone();
        free.sort_unstable();
        let mut free = free.into_iter().peekable();
        let all = self.rows.iter().enumerate();
        let all = all.map(|(index, held)| (RowId::in_slab(index as u32), held));
        all.filter(|(id, held)| free.next_if_eq(id).is_none() && held.is_some()).map(|(id, _)| id).collect()
    }

    /// Bytes taken for rows and ids, without what rows own elsewhere.
    pub fn bytes(&self) -> u64 {
        self.rows.bytes() + (self.free.capacity() * size_of::<RowId>()) as u64
    }
}

#[inline]
fn number(id: RowId) -> usize {
    id.index() / 2
}

/// Free places asked for ahead of use.
const AHEAD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_rows_that_left_are_used_again() {
        let mut slab = Slab::default();
        let ids: Vec<_> = (0..10_000).map(|n| slab.insert(n, EventTime::MIN).unwrap()).collect();
        assert_eq!(slab.get(ids[9_999]).unwrap().row, 9_999);
        assert_eq!(slab.remove(ids[5]).unwrap().row, 5);
        assert!(slab.get(ids[5]).is_none() && slab.remove(ids[5]).is_none());
        assert_eq!(slab.insert(77, EventTime::MIN).unwrap(), ids[5]);
        assert_eq!((slab.len(), slab.ids().len()), (10_000, 10_000));
    }

    #[test]
    fn a_vacated_id_is_not_given_away() {
        let mut slab = Slab::default();
        let id = slab.insert("a", EventTime::MIN).unwrap();
        slab.vacate(id);
        assert_ne!(slab.insert("b", EventTime::MIN).unwrap(), id);
        slab.release(id);
        assert_eq!(slab.insert("c", EventTime::MIN).unwrap(), id);
    }

    #[test]
    fn a_row_has_any_time_before_the_end_in_no_more_room() {
        let millis = EventTime::from_millis;
        for time in [EventTime::MIN, millis(i64::MIN + 1), millis(-1), millis(0), millis(1), millis(i64::MAX - 1)] {
            assert_eq!(Held::new((), time).time(), time);
        }
        assert_eq!(Held::new((), EventTime::MAX).time(), EventTime::LAST);
        assert_eq!(size_of::<Option<Held<[u64; 2]>>>(), 24);
    }

    #[test]
    fn a_missing_row_is_not_held() {
        assert!(Slab::<u8>::default().get(RowId::MISSING).is_none());
    }
}

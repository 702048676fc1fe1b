//! A long list of rows in the order in which they came, from which any row can be taken.
//!
//! Rows mostly leave at one of the ends, where they are looked for first. Once one is looked for in the middle of a long
//! list, the list is numbered, so that no row is looked for among all others from then on.

use std::collections::{BTreeMap, VecDeque};

use super::RowId;
use super::rows::Runs;

/// Rows in order of arrival.
#[derive(Debug, Default)]
pub struct Queue {
    rows: VecDeque<RowId>,
    order: Option<Box<Order>>,
}

// The number of each row: they ascend in the order of the list, with gaps where rows have left.
#[derive(Debug, Default)]
struct Order {
    next: u64,
    numbers: VecDeque<u64>,
    of: BTreeMap<RowId, u64>,
}

impl Order {
    fn push(&mut self, id: RowId) {
        self.numbers.push_back(self.next);
        self.of.insert(id, self.next);
        self.next += 1;
    }
}

impl FromIterator<RowId> for Queue {
    fn from_iter<I: IntoIterator<Item = RowId>>(rows: I) -> Queue {
        Queue { rows: rows.into_iter().collect(), order: None }
    }
}

impl Queue {
    /// Appends a row.
    #[inline]
    pub fn push(&mut self, id: RowId) {
        self.rows.push_back(id);
        if let Some(order) = &mut self.order {
            order.push(id);
        }
    }

    /// The rows, as two runs.
    #[inline]
    pub fn rows(&self) -> Runs<'_> {
        self.rows.as_slices()
    }

    /// Where a row stands, if it is there.
    pub fn position(&mut self, id: RowId) -> Option<usize> {
        let len = self.rows.len();
        if self.order.is_none() {
            let is_it = |other: &RowId| *other == id;
            if len <= LONG {
                return self.rows.iter().position(is_it);
            }
            let at_the_front = self.rows.iter().take(NEAR).position(is_it);
            let near = at_the_front.or_else(|| Some(len - 1 - self.rows.iter().rev().take(NEAR).position(is_it)?));
            if near.is_some() {
                return near;
            }
        }
        let order = self.order.get_or_insert_with(|| {
            let mut order = Box::<Order>::default();
            self.rows.iter().for_each(|&id| order.push(id));
            order
        });
        let number = order.of.get(&id)?;
        order.numbers.binary_search(number).ok()
    }

    /// Takes out the row that stands at a place; the order of the others stays.
    pub fn remove(&mut self, position: usize) {
        let id = self.rows.remove(position);
        if let (Some(order), Some(id)) = (&mut self.order, id) {
            order.numbers.remove(position);
            order.of.remove(&id);
        }
    }

    /// Bytes taken; the map of an order is counted as if its leaves were two thirds full.
    pub fn bytes(&self) -> usize {
        let of_order =
            |order: &Order| order.numbers.capacity() * 8 + order.of.len() * size_of::<(RowId, u64)>() * 3 / 2;
        self.rows.capacity() * size_of::<RowId>() + self.order.as_deref().map_or(0, of_order)
    }
}

/// Lists up to this length are looked through.
const LONG: usize = 256;

/// So many rows at either end are looked at first.
const NEAR: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_row_is_found_and_the_others_keep_their_order() {
        let mut queue = Queue::default();
        let mut model = Vec::new();
        let mut seed = 7u64;
        for n in 0..3_000u32 {
            queue.push(RowId::new(n));
            model.push(RowId::new(n));
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Two come for one that goes, until half of them are there.
            if n % 2 == 0 || n > 2_000 {
                let at = (seed >> 33) as usize % model.len();
                let id = model.remove(at);
                assert_eq!(queue.position(id), Some(at));
                queue.remove(at);
                assert_eq!(queue.position(id), None);
            }
            let (front, back) = queue.rows();
            assert!(front.iter().chain(back).eq(&model));
        }
    }

    // Were each row looked for among all others, this would take minutes.
    #[test]
    fn a_long_list_is_emptied_in_any_order_as_quickly_as_in_its_own() {
        let rows = 200_000u32;
        let mut queue: Queue = (0..rows).map(RowId::new).collect();
        for n in 0..rows {
            let id = RowId::new((u64::from(n) * 7_919 % u64::from(rows)) as u32);
            let position = queue.position(id).expect("each row is there until it goes");
            queue.remove(position);
        }
        assert!(queue.rows().0.is_empty() && queue.rows().1.is_empty());
    }
}

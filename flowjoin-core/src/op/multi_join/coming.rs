//! The rows of a batch on their way into state, a block at a time.
//!
//! First the keys of all rows of a block are looked up, each while those of the next rows are on their way from memory.
//! Then the rows get their places, side by side with the other rows of their keys. Only then do they change the result.

use std::collections::VecDeque;

use super::super::Cx;
use super::super::joined::{Located, Placing, Staged};
use super::{COMBOS_MAX, MultiJoin};
use crate::batch::{Head, Kinds};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Ahead, Lists, Place, RowId, Spill};
use crate::time::EventTime;

/// The rows of a batch that have not been joined yet.
pub(super) struct Coming<K> {
    pub(super) input: usize,
    // Those whose keys have not been looked up, the kinds of all, and what is known of the next of them.
    staged: std::vec::IntoIter<Head<K>>,
    kinds: Kinds,
    ahead: Ahead,
    // Those whose keys have, and how many of them have been joined.
    pub(super) block: Vec<Located>,
    pub(super) joined: usize,
    // Before which of the changes of a table that have not been looked up all its rows go, and when.
    truncations: VecDeque<(usize, EventTime)>,
    looked_up: usize,
}

impl<K> Default for Coming<K> {
    fn default() -> Self {
        Coming {
            input: 0,
            staged: Vec::new().into_iter(),
            kinds: Kinds::AllInsert,
            ahead: Ahead::default(),
            block: Vec::new(),
            joined: 0,
            truncations: VecDeque::new(),
            looked_up: 0,
        }
    }
}

impl<K> Coming<K> {
    /// Begins with the rows of a batch of an input, and for a table with the changes before which all its rows go.
    pub(super) fn begin(&mut self, input: usize, rows: Staged<K>, truncations: Vec<(usize, EventTime)>) {
        debug_assert!(self.is_done(), "a batch comes when the one before has been joined");
        self.input = input;
        self.looked_up = 0;
        self.staged = rows.heads.into_iter();
        self.kinds = rows.kinds;
        self.truncations.extend(truncations);
    }

    /// How many rows and truncations have not been looked up.
    pub(super) fn len(&self) -> usize {
        self.staged.len() + self.truncations.len()
    }

    /// Whether all rows have been joined.
    pub(super) fn is_done(&self) -> bool {
        self.joined == self.block.len() && self.len() == 0
    }

    /// The next row to be joined.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Located> {
        let next = self.block.get(self.joined).copied();
        self.joined += usize::from(next.is_some());
        next
    }

    // How many rows make the next block: the two halves of an update are not parted.
    fn block_len(&self) -> usize {
        if let Some(&(before, _)) = self.truncations.front() {
            return (before - self.looked_up).min(BLOCK);
        }
        let rows = self.staged.len().min(BLOCK);
        let last = rows.checked_sub(1).map(|last| self.kinds.at(self.looked_up + last));
        let parts = last == Some(RowKind::UpdateBefore);
        if parts { self.staged.len().min(rows + 1) } else { rows }
    }
}

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Joins the rows that are coming, until the outbox is full.
    pub(super) fn proceed(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let input = self.coming.input;
        self.folding.begin(input);
        loop {
            let done = match (self.at_once[input], self.spec.is_table(input)) {
                (true, _) => self.join_block(input, cx),
                (false, true) => self.fold_table(input, cx),
                (false, false) => self.fold_block(input, cx),
            };
            if !done {
                return Ok(());
            }
            if self.coming.len() == 0 {
                break;
            }
            let rows = self.coming.block_len();
            if rows == 0
                && let Some((_, time)) = self.coming.truncations.pop_front()
            {
                self.truncate(input, time, cx.out);
                continue;
            }
            self.locate(input, rows)?;
        }
        if self.at_once[input] {
            self.select(cx.out);
        } else {
            self.unfold(cx.out);
        }
        Ok(())
    }

    // Looks up the keys of the next rows, and gives the rows their places.
    fn locate(&mut self, input: usize, rows: usize) -> Result<(), OpError> {
        let first = self.coming.looked_up;
        self.coming.looked_up += rows;
        self.coming.block.clear();
        self.coming.joined = 0;
        if first == 0 {
            self.coming.ahead = Ahead::begin(&self.table, |after| Some(self.coming.staged.as_slice().get(after)?.hash));
        }
        for index in first..first + rows {
            let coming = self.coming.staged.as_slice();
            let guess = self.coming.ahead.next(&self.table, |after| Some(coming.get(after)?.hash));
            let Some(Head { key, hash, time }) = self.coming.staged.next() else { break };
            let kind = self.coming.kinds.at(index);
            let is_null = key.is_null();
            let (place, comes_out) = match self.table.verify(hash, &key, guess) {
                _ if is_null => (None, false),
                Some((place, lists, spill)) => (Some(place), self.expect(input, place, lists, spill)),
                None => {
                    let place = match kind.adds() {
                        true => Some(self.table.upsert(hash, key)),
                        false => self.table.find(hash, &key),
                    };
                    let comes_out = place.is_some_and(|place| {
                        let (lists, spill) = self.table.view(place);
                        self.expect(input, place, lists, spill)
                    });
                    (place, comes_out)
                }
            };
            self.coming.block.push(Located { hash, time, place, id: RowId::MISSING, kind, is_null, comes_out });
        }
        let how = Placing { side_by_side: self.side_by_side[input], changes_of_table: self.spec.is_table(input) };
        self.rows.settle(input, &mut self.coming.block, how)
    }

    // Asks for what a row will be joined with; returns whether it is in some result as soon as it has come.
    #[inline(always)]
    fn expect(&self, input: usize, place: Place, lists: &Lists<N>, spill: &Spill) -> bool {
        lists.prefetch(spill);
        // The row that may be taken back or replaced, which the one that comes is compared with.
        if self.spec.changes[input] && lists.many() >> input & 1 == 0 {
            lists.list(input, spill).0.iter().for_each(|&id| self.rows.prefetch(input, id));
        }
        let comes_out = self.shape.required() & !(lists.present() | 1 << input) == 0;
        if comes_out {
            self.met.prefetch(place.number());
        }
        comes_out
    }

    // Joins rows that change the result as they come; returns false when the outbox is full.
    fn join_block(&mut self, input: usize, cx: &mut Cx<'_>) -> bool {
        while let Some(row) = self.coming.next() {
            match row.place {
                Some(place) => self.on_insert(input, place, &row, cx.now),
                None => self.on_null(input, (row.id, row.time), cx),
            }
            if self.combos.len() >= COMBOS_MAX && !self.select(cx.out) {
                return false;
            }
        }
        // The rows of the block are near now; after the next block they would have to be fetched again.
        self.combos.len() < COMBOS_MIN || self.select(cx.out)
    }
}

/// Rows that are looked up together. What they touch fits the first-level cache.
pub(super) const BLOCK: usize = 128;

/// Combinations of a block that are worth a batch of their own.
const COMBOS_MIN: usize = 64;

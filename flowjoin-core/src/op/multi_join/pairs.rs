//! What goes and comes under one key in a batch.
//!
//! As a rule these are few rows, which are looked through. Where they are many, as when a table is emptied whose rows share
//! a key of a join, they are found by their prints.

use std::collections::BTreeSet;

use super::super::joined::JoinRows;
use super::super::kernel::Pair;
use crate::key::Key;
use crate::state::RowId;

/// The changes of one key, in order.
#[derive(Default)]
pub struct Pairs {
    list: Vec<Pair>,
    index: Option<Box<Index>>,
}

/// The rows of the input that changes.
pub struct Rows<'a, K: Key, const N: usize> {
    /// The rows of all inputs.
    pub rows: &'a mut dyn JoinRows<K, N>,
    /// Which input it is.
    pub input: usize,
}

// The places of the rows that come, and of those that go and can come again.
#[derive(Default)]
struct Index {
    news: BTreeSet<(u64, usize)>,
    olds: BTreeSet<(u64, usize)>,
}

impl<K: Key, const N: usize> Rows<'_, K, N> {
    fn same(&mut self, a: RowId, b: RowId) -> bool {
        self.rows.same(self.input, a, b)
    }

    fn print(&mut self, id: RowId) -> u64 {
        self.rows.print(self.input, id)
    }

    // Whether the row that goes could come again in its own place: what comes there now is another one.
    fn is_free(&mut self, pair: Pair) -> bool {
        !pair.old.is_missing() && (pair.new.is_missing() || !self.same(pair.old, pair.new))
    }
}

impl Pairs {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.list.clear();
        self.index = None;
    }

    /// Notes a change, as the last one.
    pub fn push<K: Key, const N: usize>(&mut self, pair: Pair, rows: &mut Rows<'_, K, N>) {
        self.list.push(pair);
        match &mut self.index {
            Some(index) => index.note(self.list.len() - 1, pair, rows),
            None if self.list.len() > FEW => {
                let mut index = Box::new(Index::default());
                self.list.iter().enumerate().for_each(|(at, &pair)| index.note(at, pair, rows));
                self.index = Some(index);
            }
            None => {}
        }
    }

    /// The first change: the only one, where there is at most one row.
    pub fn only(&self) -> Option<Pair> {
        self.list.first().copied()
    }

    /// The last change, if it is of a row that goes and nothing in its place.
    pub fn last_that_goes(&self) -> Option<usize> {
        self.list.last().filter(|pair| pair.new.is_missing()).map(|_| self.list.len() - 1)
    }

    /// The last change in which a row comes that is the same as this one.
    pub fn that_comes<K: Key, const N: usize>(&self, id: RowId, rows: &mut Rows<'_, K, N>) -> Option<usize> {
        let mut is_it = |at: usize| {
            let new = self.list[at].new;
            !new.is_missing() && rows.same(new, id)
        };
        let Some(index) = &self.index else { return (0..self.list.len()).rev().find(|&at| is_it(at)) };
        let print = rows.print(id);
        places(&index.news, print).rev().find(|&at| rows.same(self.list[at].new, id))
    }

    /// The first change in which a row goes that is the same as this one, and that does not come again already.
    pub fn that_goes<K: Key, const N: usize>(&self, id: RowId, rows: &mut Rows<'_, K, N>) -> Option<usize> {
        let Some(index) = &self.index else {
            return (0..self.list.len()).find(|&at| {
                let pair = self.list[at];
                !pair.old.is_missing() && rows.same(pair.old, id) && rows.is_free(pair)
            });
        };
        let print = rows.print(id);
        places(&index.olds, print).find(|&at| rows.same(self.list[at].old, id))
    }

    /// Lets another row come in a change; returns the one that did.
    pub fn replace<K: Key, const N: usize>(&mut self, at: usize, new: RowId, rows: &mut Rows<'_, K, N>) -> RowId {
        let before = self.list[at];
        self.list[at].new = new;
        if let Some(index) = &mut self.index {
            index.forget(at, before, rows);
            index.note(at, self.list[at], rows);
        }
        before.new
    }

    /// Lets the row of a change not come. What goes in it is the last change then; returns the row, and whether anything
    /// goes.
    pub fn retract<K: Key, const N: usize>(&mut self, at: usize, rows: &mut Rows<'_, K, N>) -> (RowId, bool) {
        let Pair { old, new } = self.list[at];
        match &mut self.index {
            Some(index) => {
                index.forget(at, self.list[at], rows);
                // The places of the others stay.
                self.list[at] = Pair::removed(RowId::MISSING);
            }
            None => {
                self.list.remove(at);
            }
        }
        if !old.is_missing() {
            self.push(Pair::removed(old), rows);
        }
        (new, !old.is_missing())
    }

    /// Takes the changes out.
    pub fn take(&mut self) -> Vec<Pair> {
        if self.index.take().is_some() {
            self.list.retain(|pair| !pair.old.is_missing() || !pair.new.is_missing());
        }
        std::mem::take(&mut self.list)
    }

    /// Gives the memory of changes back that were taken out.
    pub fn give_back(&mut self, list: Vec<Pair>) {
        self.list = list;
    }
}

impl Index {
    fn note<K: Key, const N: usize>(&mut self, at: usize, pair: Pair, rows: &mut Rows<'_, K, N>) {
        if !pair.new.is_missing() {
            self.news.insert((rows.print(pair.new), at));
        }
        if rows.is_free(pair) {
            self.olds.insert((rows.print(pair.old), at));
        }
    }

    fn forget<K: Key, const N: usize>(&mut self, at: usize, pair: Pair, rows: &mut Rows<'_, K, N>) {
        if !pair.new.is_missing() {
            self.news.remove(&(rows.print(pair.new), at));
        }
        if !pair.old.is_missing() {
            self.olds.remove(&(rows.print(pair.old), at));
        }
    }
}

fn places(of: &BTreeSet<(u64, usize)>, print: u64) -> impl DoubleEndedIterator<Item = usize> {
    of.range((print, 0)..=(print, usize::MAX)).map(|&(_, at)| at)
}

/// So many changes are looked through sooner than looked up.
const FEW: usize = 16;

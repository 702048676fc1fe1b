//! The rows that stand under a key, in the order in which they came, and how one is found among them that is taken back.

use std::collections::{BTreeMap, BTreeSet};

use crate::op::joined::Identity;
use crate::record::Data;
use crate::state::{Equality, Lists, RowId, Slab, Spill};

/// All rows of a table, and when two of them are the same.
pub struct Rows<T> {
    /// The rows.
    pub slab: Slab<T>,
    identity: Option<Identity<T>>,
    equality: Equality,
    // Rows that are found by their prints.
    printed: usize,
}

/// The rows of one key. Where they are few they are looked through.
#[derive(Default)]
pub struct Stack {
    few: Lists<1>,
    many: Option<Box<Many>>,
}

/// Which of several equal rows is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The one that came first.
    Oldest,
    /// The one that came last.
    Newest,
}

// Rows by the number of their arrival, and these numbers by the prints of the rows.
#[derive(Default)]
struct Many {
    next: u64,
    rows: BTreeMap<u64, RowId>,
    prints: BTreeSet<(u64, u64)>,
}

impl<T: Data> Rows<T> {
    /// No rows. With an identity, two are the same if it says so; without, if they are equal.
    pub fn new(identity: Option<Identity<T>>) -> Self {
        Rows { slab: Slab::default(), identity, equality: Equality::default(), printed: 0 }
    }

    /// Whether rows have an identity.
    pub fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// A hash of what makes a row the same as another.
    pub fn print(&mut self, row: &T) -> u64 {
        match &self.identity {
            Some(identity) => (identity.hash)(row),
            None => self.equality.print(row),
        }
    }

    fn print_of(&mut self, id: RowId) -> u64 {
        let row = &self.slab.get(id).expect("a row that stands is held").row;
        match &self.identity {
            Some(identity) => (identity.hash)(row),
            None => self.equality.print(row),
        }
    }

    fn same(&mut self, id: RowId, row: &T) -> bool {
        let held = &self.slab.get(id).expect("a row that stands is held").row;
        match &self.identity {
            Some(identity) => (identity.same)(held, row),
            None => self.equality.holds(held, row),
        }
    }

    /// Whether a row that is held is equal to this one.
    pub fn is_equal(&mut self, id: RowId, row: &T) -> bool {
        self.slab.get(id).is_some_and(|held| self.equality.holds(&held.row, row))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.slab.bytes() + (self.printed * size_of::<(u64, u64, u64, RowId)>()) as u64
    }
}

impl Stack {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        match &self.many {
            Some(many) => many.rows.is_empty(),
            None => self.few.present() == 0,
        }
    }

    /// Whether there is more than one.
    pub fn is_crowded(&self) -> bool {
        match &self.many {
            Some(many) => many.rows.len() > 1,
            None => self.few.many() != 0,
        }
    }

    /// The row that came first, or last.
    pub fn at_end(&self, end: End, spill: &Spill) -> Option<RowId> {
        if let Some(many) = &self.many {
            let entry = match end {
                End::Oldest => many.rows.first_key_value(),
                End::Newest => many.rows.last_key_value(),
            };
            return entry.map(|(_, &id)| id);
        }
        match end {
            End::Oldest => self.few.list(0, spill).0.first().copied(),
            End::Newest => self.few.newest(0, spill),
        }
    }

    /// The rows, in the order in which they came.
    pub fn ids(&self, spill: &Spill) -> Vec<RowId> {
        let (front, back) = self.few.list(0, spill);
        match &self.many {
            Some(many) => many.rows.values().copied().collect(),
            None => front.iter().chain(back).copied().collect(),
        }
    }

    /// Adds a row, as the newest.
    pub fn push<T: Data>(&mut self, id: RowId, spill: &mut Spill, rows: &mut Rows<T>) {
        if let Some(many) = &mut self.many {
            return many.push(id, rows);
        }
        self.few.push(0, id, spill);
        let (front, back) = self.few.list(0, spill);
        if front.len() + back.len() <= FEW {
            return;
        }
        let all: Vec<RowId> = front.iter().chain(back).copied().collect();
        let mut many = Box::new(Many::default());
        for id in all {
            many.push(id, rows);
            self.few.remove(0, id, spill);
        }
        self.many = Some(many);
    }

    /// A row that is the same as this one.
    pub fn find<T: Data>(&self, row: &T, end: End, spill: &Spill, rows: &mut Rows<T>) -> Option<RowId> {
        match &self.many {
            Some(many) => many.find(row, end, rows).map(|(_, number)| many.rows[&number]),
            None => {
                let (front, back) = self.few.list(0, spill);
                let mut all = front.iter().chain(back).copied();
                match end {
                    End::Oldest => all.find(|&id| rows.same(id, row)),
                    End::Newest => all.rev().find(|&id| rows.same(id, row)),
                }
            }
        }
    }

    /// Takes a row out that is the same as this one.
    pub fn take<T: Data>(&mut self, row: &T, end: End, spill: &mut Spill, rows: &mut Rows<T>) -> Option<RowId> {
        if let Some(many) = &mut self.many {
            let found = many.find(row, end, rows)?;
            many.prints.remove(&found);
            rows.printed -= 1;
            return many.rows.remove(&found.1);
        }
        let id = self.find(row, end, spill, rows)?;
        self.few.remove(0, id, spill);
        Some(id)
    }
}

impl Many {
    fn push<T: Data>(&mut self, id: RowId, rows: &mut Rows<T>) {
        self.rows.insert(self.next, id);
        self.prints.insert((rows.print_of(id), self.next));
        self.next += 1;
        rows.printed += 1;
    }

    fn find<T: Data>(&self, row: &T, end: End, rows: &mut Rows<T>) -> Option<(u64, u64)> {
        let print = rows.print(row);
        let mut found = self.prints.range((print, 0)..=(print, u64::MAX)).copied();
        match end {
            End::Oldest => found.find(|(_, number)| rows.same(self.rows[number], row)),
            End::Newest => found.rev().find(|(_, number)| rows.same(self.rows[number], row)),
        }
    }
}

/// So many rows are looked through sooner than looked up.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::EventTime;

    // What a stack does is what a list does in which the rows are looked for one by one.
    #[test]
    fn a_stack_of_any_height_answers_as_a_list_does() {
        for identity in [None, Some(Identity::by(|row: &(u64, u64)| row.0))] {
            let has_identity = identity.is_some();
            let (mut stack, mut spill, mut rows) = (Stack::default(), Spill::default(), Rows::new(identity));
            let mut list: Vec<(u64, u64)> = Vec::new();
            let mut seed = 7u64;
            for step in 0..6_000u64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let row = ((seed >> 33) % 23, (seed >> 50) % 2);
                let is_it = |other: &(u64, u64)| if has_identity { other.0 == row.0 } else { *other == row };
                let end = if seed >> 40 & 1 == 0 { End::Oldest } else { End::Newest };
                // It grows to some dozens, shrinks to nothing, and grows again.
                if (seed >> 45) % 16 < if step / 500 % 2 == 0 { 12 } else { 3 } {
                    let id = rows.slab.insert(row, EventTime::MIN).unwrap();
                    stack.push(id, &mut spill, &mut rows);
                    list.push(row);
                } else {
                    let at = match end {
                        End::Oldest => list.iter().position(is_it),
                        End::Newest => list.iter().rposition(is_it),
                    };
                    let found = stack.find(&row, end, &spill, &mut rows);
                    let taken = stack.take(&row, end, &mut spill, &mut rows);
                    assert_eq!((found, taken.is_some()), (taken, at.is_some()));
                    let taken = taken.and_then(|id| rows.slab.remove(id)).map(|held| held.row);
                    assert_eq!(taken, at.map(|at| list.remove(at)));
                }
                let of = |id: Option<RowId>| id.and_then(|id| rows.slab.get(id)).map(|held| held.row);
                assert_eq!(of(stack.at_end(End::Oldest, &spill)), list.first().copied());
                assert_eq!(of(stack.at_end(End::Newest, &spill)), list.last().copied());
                assert_eq!((stack.is_empty(), stack.is_crowded()), (list.is_empty(), list.len() > 1));
            }
        }
    }
}

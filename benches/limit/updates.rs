//! `updates` by hand: two tables and an input of facts on one key.
//!
//! A key has one slot with the order, the payment and the first delivery, and a chain of further deliveries. A row that
//! is put over another takes its place in the results, delivery by delivery.

use crate::exchange::{Hashed, Query};
use crate::table::{self, Guesses, Slab, Slot, Stage, Table};
use crate::updates::{self, Change};
use crate::workload::{self, ABSENT, Size, Tally};

/// A change of a table, or a delivery.
#[derive(Clone, Copy)]
pub struct Row {
    hash: u64,
    key: u64,
    /// [`ABSENT`] if it deletes.
    value: u64,
}

impl Row {
    #[inline]
    fn new(key: u64, value: u64) -> Self {
        Row { hash: table::hash(key), key, value }
    }
}

impl Hashed for Row {
    #[inline]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// One thread's share of the join.
pub struct Updating {
    rows: u64,
    table: Table<Key>,
    more: Slab<Link>,
    tally: Tally,
}

impl Updating {
    /// A share that has seen no rows.
    pub fn new(size: Size) -> Self {
        Updating { rows: size.rows(), table: Table::new(), more: Slab::new(), tally: Tally::default() }
    }

    #[inline]
    fn join_row(&mut self, input: usize, row: &Row, guess: Option<u32>) {
        let id = self.table.find_or_insert(row.hash, row.key, guess);
        let slot = self.table.slot_mut(id);
        if input == DELIVERIES {
            if slot.values[DELIVERIES] == ABSENT {
                slot.values[DELIVERIES] = row.value;
            } else {
                slot.more = self.more.insert(Link { next: slot.more, status: row.value });
            }
            if let Some(result) = slot.with(row.value) {
                self.tally.add(result);
            }
            return;
        }
        let before = std::mem::replace(&mut slot.values[input], row.value);
        if before == row.value || slot.values[1 - input] == ABSENT {
            return;
        }
        let mut status = slot.values[DELIVERIES];
        let mut next = slot.more;
        let partner = slot.values[1 - input];
        while status != ABSENT {
            let result = |value| match input {
                ORDERS => [row.key, value, partner, status],
                _ => [row.key, partner, value, status],
            };
            if before != ABSENT {
                self.tally.subtract(result(before));
            }
            if row.value != ABSENT {
                self.tally.add(result(row.value));
            }
            if next == END {
                break;
            }
            let link = &self.more[next];
            (status, next) = (link.status, link.next);
        }
    }
}

impl Query for Updating {
    type Row = Row;
    type Outcome = Tally;
    const INPUTS: usize = 3;

    fn rows_in(&self) -> u64 {
        // The longest input; the others end before.
        updates::payment_numbers(self.rows)
    }

    #[inline]
    fn make(&mut self, input: usize, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(Row)) {
        let rows = self.rows;
        match input {
            ORDERS => indexes.flat_map(|index| updates::order_changes(index, rows)).for_each(|change| match change {
                Change::Put(order) => take(Row::new(order.order_id, order.amount.into())),
                Change::Delete(order_id) => take(Row::new(order_id, ABSENT)),
            }),
            PAYMENTS => indexes
                .flat_map(|index| updates::payment_changes(index, rows))
                .for_each(|row| take(Row::new(row.order_id, row.method.into()))),
            _ => indexes
                .filter(|&index| index < rows)
                .map(workload::logistics)
                .for_each(|row| take(Row::new(row.order_id, row.status.into()))),
        }
    }

    fn watermark(&self, _input: usize) -> i64 {
        i64::MIN
    }

    fn join(&mut self, input: usize, rows: &[Row]) {
        let mut guesses = Guesses::new();
        table::pipeline(rows.len(), |stage, at| match stage {
            Stage::Index => self.table.prefetch(rows[at].hash),
            Stage::Slot => guesses.set(at, self.table.guess(rows[at].hash)),
            Stage::Chain => {
                if let Some(id) = guesses.at(at) {
                    self.more.prefetch(self.table.slot(id).more);
                }
            }
            Stage::Join => self.join_row(input, &rows[at], guesses.at(at)),
        });
    }

    fn advance(&mut self, _source: usize, _input: usize, _watermark: i64) {}

    fn finish(&self) -> Tally {
        self.tally
    }
}

/// What stands under a key.
struct Key {
    key: u64,
    /// The order, the payment and the first delivery, or [`ABSENT`].
    values: [u64; 3],
    /// The newest delivery that is not the first.
    more: u32,
}

impl Key {
    /// The result row of a delivery.
    #[inline]
    fn with(&self, status: u64) -> Option<[u64; 4]> {
        let [amount, method, _] = self.values;
        (amount != ABSENT && method != ABSENT).then_some([self.key, amount, method, status])
    }
}

impl Slot for Key {
    #[inline]
    fn new(key: u64) -> Self {
        Key { key, values: [ABSENT; 3], more: END }
    }

    #[inline]
    fn key(&self) -> u64 {
        self.key
    }
}

/// A delivery that is not the first of its key.
struct Link {
    status: u64,
    next: u32,
}

/// The end of a chain.
const END: u32 = u32::MAX;
const ORDERS: usize = 0;
const PAYMENTS: usize = 1;
const DELIVERIES: usize = 2;

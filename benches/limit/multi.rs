//! The equi-joins of facts: any number of inputs on one key, inner or optional, nothing expires.
//!
//! A key has one slot for all inputs, with the first row of each input inline and a bit that says whether it is there.
//! Further rows of a key hang on one chain. "Does every input have a match" is then one comparison. No middle result
//! is stored: a row is joined with all other inputs when it comes, and every result has exactly one last row. The value
//! of an optional input that has no row is [`ABSENT`], which stands in the slot from the start.

use std::marker::PhantomData;

use crate::exchange::{Hashed, Query};
use crate::table::{self, Guesses, Slab, Slot, Stage, Table};
use crate::workload::{self, ABSENT, Size, Tally};

/// Where the rows of an equi-join come from.
pub trait Inputs<const N: usize> {
    /// A bit for each input that need not have a row.
    const OPTIONAL: u32 = 0;

    /// How many rows each input has.
    fn rows_in(size: Size) -> u64;

    /// Makes rows of an input as key and value.
    fn make(input: usize, size: Size, indexes: impl Iterator<Item = u64>, take: impl FnMut(u64, u64));

    /// Counts a result row in.
    fn emit(tally: &mut Tally, key: u64, values: &[u64; N]);

    /// Takes a result row back.
    fn retract(_: &mut Tally, _: u64, _: &[u64; N]) {
        unreachable!("an inner join of facts takes nothing back")
    }
}

/// orders ⋈ payments ⋈ logistics.
pub struct Orders;

impl Inputs<3> for Orders {
    fn rows_in(size: Size) -> u64 {
        size.rows()
    }

    #[inline]
    fn make(input: usize, _: Size, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(u64, u64)) {
        match input {
            0 => indexes.map(workload::order).for_each(|row| take(row.order_id, row.amount.into())),
            1 => indexes.map(workload::payment).for_each(|row| take(row.order_id, row.method.into())),
            _ => indexes.map(workload::logistics).for_each(|row| take(row.order_id, row.status.into())),
        }
    }

    #[inline]
    fn emit(tally: &mut Tally, key: u64, &[amount, method, status]: &[u64; 3]) {
        tally.add([key, amount, method, status]);
    }
}

/// orders ⟕ payments ⟕ logistics.
pub struct LeftOrders;

impl Inputs<3> for LeftOrders {
    const OPTIONAL: u32 = 0b110;

    fn rows_in(size: Size) -> u64 {
        Orders::rows_in(size)
    }

    #[inline]
    fn make(input: usize, size: Size, indexes: impl Iterator<Item = u64>, take: impl FnMut(u64, u64)) {
        Orders::make(input, size, indexes, take);
    }

    #[inline]
    fn emit(tally: &mut Tally, key: u64, values: &[u64; 3]) {
        Orders::emit(tally, key, values);
    }

    #[inline]
    fn retract(tally: &mut Tally, key: u64, &[amount, method, status]: &[u64; 3]) {
        tally.subtract([key, amount, method, status]);
    }
}

/// wide_0 ⋈ … ⋈ wide_9.
pub struct WideInputs;

impl Inputs<10> for WideInputs {
    fn rows_in(size: Size) -> u64 {
        size.wide_rows()
    }

    #[inline]
    fn make(input: usize, size: Size, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(u64, u64)) {
        let keys = size.keys();
        indexes.map(|index| workload::wide(input, index, keys)).for_each(|row| take(row.key, row.val));
    }

    #[inline]
    fn emit(tally: &mut Tally, key: u64, &[a, b, c, d, e, f, g, h, i, j]: &[u64; 10]) {
        tally.add([key, a, b, c, d, e, f, g, h, i, j]);
    }
}

/// A row of any input.
#[derive(Clone, Copy)]
pub struct Row {
    hash: u64,
    key: u64,
    value: u64,
}

impl Hashed for Row {
    #[inline]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// One thread's share of an equi-join of `N` inputs.
pub struct MultiJoin<I, const N: usize> {
    size: Size,
    table: Table<Key<N>>,
    more: Slab<Link>,
    lists: Lists<N>,
    tally: Tally,
    inputs: PhantomData<I>,
}

impl<I: Inputs<N>, const N: usize> MultiJoin<I, N> {
    /// A share that has seen no rows.
    pub fn new(size: Size) -> Self {
        MultiJoin {
            size,
            table: Table::new(),
            more: Slab::new(),
            lists: Lists::new(),
            tally: Tally::default(),
            inputs: PhantomData,
        }
    }

    #[inline]
    fn join_row(&mut self, input: usize, row: &Row, guess: Option<u32>) {
        let id = self.table.find_or_insert(row.hash, row.key, guess);
        let slot = self.table.slot_mut(id);
        let bit = 1 << input;
        let first = slot.present & bit == 0;
        if first {
            slot.present |= bit;
            slot.first[input] = row.value;
        } else {
            slot.more = self.more.insert(Link { input: input as u32, next: slot.more, value: row.value });
        }
        if (slot.present | I::OPTIONAL) != (1 << N) - 1 {
            return;
        }
        // What stood in the place of the first row of an optional input, where there was anything beside it.
        let gap = first && I::OPTIONAL & bit != 0 && slot.present != bit;
        if slot.more == END {
            if gap {
                let mut before = slot.first;
                before[input] = ABSENT;
                I::retract(&mut self.tally, row.key, &before);
            }
            I::emit(&mut self.tally, row.key, &slot.first);
        } else {
            if gap {
                self.lists.gather(slot, &self.more, input, ABSENT);
                self.lists.product(|values| I::retract(&mut self.tally, row.key, values));
            }
            self.lists.gather(slot, &self.more, input, row.value);
            self.lists.product(|values| I::emit(&mut self.tally, row.key, values));
        }
    }
}

impl<I: Inputs<N>, const N: usize> Query for MultiJoin<I, N> {
    type Row = Row;
    type Outcome = Tally;
    const INPUTS: usize = N;

    fn rows_in(&self) -> u64 {
        I::rows_in(self.size)
    }

    #[inline]
    fn make(&mut self, input: usize, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(Row)) {
        I::make(input, self.size, indexes, |key, value| take(Row { hash: table::hash(key), key, value }));
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

/// The rows of a key.
struct Key<const N: usize> {
    key: u64,
    /// A bit for each input of which a row has come.
    present: u32,
    /// The newest row that is not the first of its input.
    more: u32,
    /// The first row of each input; absent where there is none.
    first: [u64; N],
}

impl<const N: usize> Slot for Key<N> {
    #[inline]
    fn new(key: u64) -> Self {
        Key { key, present: 0, more: END, first: [ABSENT; N] }
    }

    #[inline]
    fn key(&self) -> u64 {
        self.key
    }
}

/// A row that is not the first of its input and key.
struct Link {
    value: u64,
    input: u32,
    next: u32,
}

/// The rows of one key, input by input, and the walk over their product. Kept between keys for its memory.
struct Lists<const N: usize> {
    values: [Vec<u64>; N],
}

impl<const N: usize> Lists<N> {
    fn new() -> Self {
        Lists { values: [const { Vec::new() }; N] }
    }

    /// Collects what a row that has just come joins with; of its own input it is the only row.
    fn gather(&mut self, slot: &Key<N>, more: &Slab<Link>, input: usize, value: u64) {
        for (values, first) in self.values.iter_mut().zip(slot.first) {
            values.clear();
            values.push(first);
        }
        let mut next = slot.more;
        while next != END {
            let link = &more[next];
            self.values[link.input as usize].push(link.value);
            next = link.next;
        }
        self.values[input].clear();
        self.values[input].push(value);
    }

    /// Calls `emit` for every choice of one row of each input.
    fn product(&self, mut emit: impl FnMut(&[u64; N])) {
        let mut chosen = [0; N];
        let mut values: [u64; N] = std::array::from_fn(|input| self.values[input][0]);
        loop {
            emit(&values);
            let mut input = 0;
            loop {
                if input == N {
                    return;
                }
                let list = &self.values[input];
                chosen[input] += 1;
                if chosen[input] < list.len() {
                    values[input] = list[chosen[input]];
                    break;
                }
                chosen[input] = 0;
                values[input] = list[0];
                input += 1;
            }
        }
    }
}

/// The end of a chain.
const END: u32 = u32::MAX;

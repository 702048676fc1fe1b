//! The temporal join: each order with the level that its user had at the order's time.
//!
//! An order waits in a bucket of half a second until the watermark, the smallest over both inputs and all sources, has
//! passed its time. A user has the newest level inline; older ones, which orders that wait may still need, hang on a chain
//! in order of time, which is cut behind the newest level that the watermark has passed.

use std::collections::VecDeque;

use crate::exchange::{Hashed, Query};
use crate::table::{self, Guesses, Slab, Slot, Stage, Table};
use crate::workload::{self, EPOCH_MS, LEVEL_DISORDER_MS, ORDER_DISORDER_MS, Size, Tally};

/// A row of either input.
#[derive(Clone, Copy)]
pub struct Row {
    hash: u64,
    user_id: u64,
    ts: i64,
    /// Of an order.
    order_id: u64,
    /// Of a level.
    level: u32,
}

impl Hashed for Row {
    #[inline]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// One thread's share of the temporal join.
pub struct TemporalJoin {
    size: Size,
    table: Table<User>,
    older: Slab<Level>,
    waiting: Waiting,
    due: Vec<Row>,
    /// The highest time of the rows that this thread's sources have made, by input; beyond all once it has made all.
    highest: [i64; 2],
    /// The watermark of each source, by input.
    watermarks: Vec<[i64; 2]>,
    watermark: i64,
    tally: Tally,
}

impl TemporalJoin {
    /// A share that has seen no rows, fed by `sources` threads.
    pub fn new(size: Size, sources: usize) -> Self {
        TemporalJoin {
            size,
            table: Table::new(),
            older: Slab::new(),
            waiting: Waiting { first: EPOCH_MS >> BUCKET_BITS, buckets: VecDeque::new() },
            due: Vec::new(),
            highest: [i64::MIN; 2],
            watermarks: vec![[i64::MIN; 2]; sources],
            watermark: i64::MIN,
            tally: Tally::default(),
        }
    }

    fn rows_of(&self, input: usize) -> u64 {
        if input == ORDERS { self.size.rows() } else { self.size.levels() }
    }

    #[inline]
    fn take_level(&mut self, row: &Row, guess: Option<u32>) {
        let id = self.table.find_or_insert(row.hash, row.user_id, guess);
        let newest = &mut self.table.slot_mut(id).newest;
        let mut new = Level { ts: row.ts, level: row.level, older: END };
        if newest.ts == NEVER {
            *newest = new;
        } else if newest.ts <= new.ts {
            let older = std::mem::replace(newest, new);
            newest.older = self.older.insert(older);
        } else {
            // Sources are read side by side, so a level may come before one that is older: never by much.
            let (mut before, mut next) = (None, newest.older);
            while next != END && self.older[next].ts > new.ts {
                (before, next) = (Some(next), self.older[next].older);
            }
            new.older = next;
            let id = self.older.insert(new);
            match before {
                Some(before) => self.older[before].older = id,
                None => newest.older = id,
            }
        }
        cut(newest, &mut self.older, self.watermark);
    }

    #[inline]
    fn look_up(&mut self, row: &Row, guess: Option<u32>) {
        let id = self.table.find_or_insert(row.hash, row.user_id, guess);
        let mut level = self.table.slot(id).newest;
        while level.ts > row.ts {
            level = self.older[level.older];
        }
        self.tally.add([row.order_id, row.user_id, level.level.into()]);
    }

    /// Joins the orders that the watermark has passed.
    fn look_up_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.waiting.take_due(self.watermark, &mut due);
        let mut guesses = Guesses::new();
        table::pipeline(due.len(), |stage, at| match stage {
            Stage::Index => self.table.prefetch(due[at].hash),
            Stage::Slot => guesses.set(at, self.table.guess(due[at].hash)),
            Stage::Chain => {}
            Stage::Join => self.look_up(&due[at], guesses.at(at)),
        });
        due.clear();
        self.due = due;
    }
}

impl Query for TemporalJoin {
    type Row = Row;
    type Outcome = Tally;
    const INPUTS: usize = 2;

    fn rows_in(&self) -> u64 {
        self.size.rows()
    }

    #[inline]
    fn make(&mut self, input: usize, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(Row)) {
        let (rows, users, sources) = (self.rows_of(input), self.size.users(), self.watermarks.len() as u64);
        let mut highest = self.highest[input];
        let mut next = None;
        for index in indexes {
            next = Some(index + sources);
            if index >= rows {
                continue;
            }
            let row = if input == ORDERS {
                let order = workload::user_order(index, users);
                let hash = table::hash(order.user_id);
                Row { hash, user_id: order.user_id, ts: order.ts, order_id: order.order_id, level: 0 }
            } else {
                let level = workload::level(index, users);
                let hash = table::hash(level.user_id);
                Row { hash, user_id: level.user_id, ts: level.ts, order_id: 0, level: level.level }
            };
            highest = highest.max(row.ts);
            take(row);
        }
        self.highest[input] = if next.is_some_and(|next| next >= rows) { i64::MAX } else { highest };
    }

    fn watermark(&self, input: usize) -> i64 {
        let disorder = if input == ORDERS { ORDER_DISORDER_MS } else { LEVEL_DISORDER_MS };
        self.highest[input].saturating_sub(disorder + 1)
    }

    fn join(&mut self, input: usize, rows: &[Row]) {
        if input == ORDERS {
            rows.iter().for_each(|row| self.waiting.push(*row));
            return;
        }
        let mut guesses = Guesses::new();
        table::pipeline(rows.len(), |stage, at| match stage {
            Stage::Index => self.table.prefetch(rows[at].hash),
            Stage::Slot => guesses.set(at, self.table.guess(rows[at].hash)),
            Stage::Chain => {}
            Stage::Join => self.take_level(&rows[at], guesses.at(at)),
        });
    }

    fn advance(&mut self, source: usize, input: usize, watermark: i64) {
        self.watermarks[source][input] = watermark;
        let slowest = self.watermarks.iter().flatten().copied().min().unwrap_or(i64::MIN);
        if slowest > self.watermark {
            self.watermark = slowest;
            self.look_up_due();
        }
    }

    fn finish(&self) -> Tally {
        assert!(self.waiting.buckets.iter().all(Vec::is_empty), "every order is joined");
        self.tally
    }
}

/// Orders by the half second of their time.
struct Waiting {
    /// The number of the first bucket.
    first: i64,
    buckets: VecDeque<Vec<Row>>,
}

impl Waiting {
    #[inline]
    fn push(&mut self, row: Row) {
        let at = ((row.ts >> BUCKET_BITS) - self.first) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize_with(at + 1, Vec::new);
        }
        self.buckets[at].push(row);
    }

    /// Takes out the orders up to a time.
    fn take_due(&mut self, watermark: i64, due: &mut Vec<Row>) {
        while self.first < watermark >> BUCKET_BITS
            && let Some(mut bucket) = self.buckets.pop_front()
        {
            due.append(&mut bucket);
            self.first += 1;
        }
        if let Some(bucket) = self.buckets.front_mut() {
            due.extend(bucket.extract_if(.., |row| row.ts <= watermark));
        }
    }
}

/// The levels of a user.
struct User {
    key: u64,
    newest: Level,
}

impl Slot for User {
    #[inline]
    fn new(key: u64) -> Self {
        User { key, newest: Level { ts: NEVER, level: 0, older: END } }
    }

    #[inline]
    fn key(&self) -> u64 {
        self.key
    }
}

/// A level, and the one before it.
#[derive(Clone, Copy)]
struct Level {
    ts: i64,
    level: u32,
    older: u32,
}

/// Drops the levels before the newest one that the watermark has passed: no order that waits or comes needs them.
#[inline]
fn cut(newest: &mut Level, older: &mut Slab<Level>, watermark: i64) {
    let mut last = None;
    let mut level = *newest;
    while level.ts > watermark {
        if level.older == END {
            return;
        }
        last = Some(level.older);
        level = older[level.older];
    }
    match last {
        None => newest.older = END,
        Some(last) => older[last].older = END,
    }
    let mut next = level.older;
    while next != END {
        let id = next;
        next = older[id].older;
        older.release(id);
    }
}

/// The input of orders.
const ORDERS: usize = 0;
/// The end of a chain.
const END: u32 = u32::MAX;
/// Earlier than any time: a user without levels.
const NEVER: i64 = i64::MIN;
/// Orders of 2^9 ms share a bucket.
const BUCKET_BITS: u32 = 9;

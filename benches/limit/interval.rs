//! The interval join: orders and payments of one `order_id`, the payment from 5 s before the order to 30 s after it.
//!
//! A key has one slot with the first order and the first payment inline; further rows hang on a chain. A row is joined
//! when it comes and leaves when the watermark passes the last time at which a partner could still come: 30 s after an
//! order, 5 s after a payment. The watermark is the smallest over both inputs and all sources. A slot has one timer, set for
//! when its first row leaves; when it fires, all rows that may leave do, and it is set again for the last of the others.
//! Timers lie in buckets of half a second, so that setting one is a push and a bucket fires as a whole.

use std::collections::VecDeque;

use crate::exchange::{Hashed, Query};
use crate::table::{self, Guesses, Slab, Slot, Stage, Table};
use crate::workload::{
    self, EPOCH_MS, INTERVAL_AFTER_MS, INTERVAL_BEFORE_MS, ORDER_DISORDER_MS, PAYMENT_DISORDER_MS, Size, Tally,
};

/// A row of either input.
#[derive(Clone, Copy)]
pub struct Row {
    hash: u64,
    key: u64,
    ts: i64,
    method: u8,
}

impl Hashed for Row {
    #[inline]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// One thread's share of the interval join.
pub struct IntervalJoin {
    size: Size,
    table: Table<Key>,
    more: Slab<Link>,
    timers: Timers,
    /// The highest time of the rows that this thread's sources have made, by input.
    highest: [i64; 2],
    /// The watermark of each source, by input.
    watermarks: Vec<[i64; 2]>,
    watermark: i64,
    tally: Tally,
}

impl IntervalJoin {
    /// A share that has seen no rows, fed by `sources` threads.
    pub fn new(size: Size, sources: usize) -> Self {
        IntervalJoin {
            size,
            table: Table::new(),
            more: Slab::new(),
            timers: Timers::new(),
            highest: [EPOCH_MS; 2],
            watermarks: vec![[i64::MIN; 2]; sources],
            watermark: i64::MIN,
            tally: Tally::default(),
        }
    }

    #[inline]
    fn join_row<const INPUT: usize>(&mut self, row: &Row, guess: Option<u32>) {
        assert!(row.ts > self.watermark, "the generated rows are never late");
        let id = self.table.find_or_insert(row.hash, row.key, guess);
        let slot = self.table.slot_mut(id);
        let other = 1 - INPUT;
        if slot.present & 1 << other != 0 {
            let partner = if INPUT == ORDERS { (slot.payment_ts, slot.method) } else { (slot.order_ts, 0) };
            emit::<INPUT>(&mut self.tally, row, partner);
        }
        let mut next = slot.more;
        while next != END {
            let link = &self.more[next];
            if link.input as usize == other {
                emit::<INPUT>(&mut self.tally, row, (link.ts, link.method));
            }
            next = link.next;
        }
        if slot.present & 1 << INPUT != 0 {
            slot.more = self.more.insert(Link { ts: row.ts, method: row.method, next: slot.more, input: INPUT as u32 });
        } else if INPUT == ORDERS {
            slot.order_ts = row.ts;
        } else {
            (slot.payment_ts, slot.method) = (row.ts, row.method);
        }
        slot.present |= 1 << INPUT;
        let leaves_at = leaves_at(INPUT, row.ts);
        if slot.until == NEVER {
            self.timers.set(leaves_at, id);
        }
        slot.until = slot.until.max(leaves_at);
    }

    #[inline]
    fn join_rows<const INPUT: usize>(&mut self, rows: &[Row]) {
        let mut guesses = Guesses::new();
        table::pipeline(rows.len(), |stage, at| match stage {
            Stage::Index => self.table.prefetch(rows[at].hash),
            Stage::Slot => guesses.set(at, self.table.guess(rows[at].hash)),
            Stage::Chain => {}
            Stage::Join => self.join_row::<INPUT>(&rows[at], guesses.at(at)),
        });
    }

    /// Lets the rows go that the watermark has passed.
    fn clean(&mut self) {
        while let Some(ids) = self.timers.pop_due(self.watermark) {
            table::pipeline(ids.len(), |stage, at| match stage {
                Stage::Index => table::prefetch(self.table.slot(ids[at])),
                Stage::Slot => self.table.prefetch(table::hash(self.table.slot(ids[at]).key)),
                Stage::Chain => {}
                Stage::Join => self.fire(ids[at]),
            });
            self.timers.recycle(ids);
        }
    }

    /// Lets the rows of a slot go that the watermark has passed, and the slot with the last of them.
    #[inline]
    fn fire(&mut self, id: u32) {
        let watermark = self.watermark;
        let slot = self.table.slot_mut(id);
        if slot.until <= watermark && slot.more == END {
            let key = slot.key;
            self.table.remove(table::hash(key), id);
            return;
        }
        if leaves_at(ORDERS, slot.order_ts) <= watermark {
            slot.present &= !(1 << ORDERS);
        }
        if leaves_at(PAYMENTS, slot.payment_ts) <= watermark {
            slot.present &= !(1 << PAYMENTS);
        }
        slot.more = unlink_passed(&mut self.more, slot.more, watermark);
        if slot.until > watermark {
            self.timers.set(slot.until, id);
        } else {
            assert!(slot.more == END, "no row of a slot stays longer than the slot");
            let key = slot.key;
            self.table.remove(table::hash(key), id);
        }
    }
}

impl Query for IntervalJoin {
    type Row = Row;
    type Outcome = Tally;
    const INPUTS: usize = 2;

    fn rows_in(&self) -> u64 {
        self.size.rows()
    }

    #[inline]
    fn make(&mut self, input: usize, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(Row)) {
        let mut highest = self.highest[input];
        let mut take = |row: Row| {
            highest = highest.max(row.ts);
            take(row);
        };
        let row = |key, ts, method| Row { hash: table::hash(key), key, ts, method };
        if input == ORDERS {
            indexes.map(workload::timed_order).for_each(|order| take(row(order.order_id, order.ts, 0)));
        } else {
            let payments = indexes.map(workload::timed_payment);
            payments.for_each(|payment| take(row(payment.order_id, payment.ts, payment.method as u8)));
        }
        self.highest[input] = highest;
    }

    fn watermark(&self, input: usize) -> i64 {
        let disorder = if input == ORDERS { ORDER_DISORDER_MS } else { PAYMENT_DISORDER_MS };
        self.highest[input] - disorder - 1
    }

    fn join(&mut self, input: usize, rows: &[Row]) {
        if input == ORDERS {
            self.join_rows::<ORDERS>(rows);
        } else {
            self.join_rows::<PAYMENTS>(rows);
        }
    }

    fn advance(&mut self, source: usize, input: usize, watermark: i64) {
        self.watermarks[source][input] = watermark;
        let slowest = self.watermarks.iter().flatten().copied().min().unwrap_or(i64::MIN);
        if slowest > self.watermark {
            self.watermark = slowest;
            self.clean();
        }
    }

    fn finish(&self) -> Tally {
        self.tally
    }
}

/// The rows of a key.
struct Key {
    key: u64,
    order_ts: i64,
    payment_ts: i64,
    method: u8,
    /// The newest row that is not the first of its input.
    more: u32,
    /// When the last row leaves.
    until: i64,
    /// A bit for each input whose inline row is there.
    present: u8,
}

impl Slot for Key {
    #[inline]
    fn new(key: u64) -> Self {
        Key { key, order_ts: 0, payment_ts: 0, method: 0, more: END, until: NEVER, present: 0 }
    }

    #[inline]
    fn key(&self) -> u64 {
        self.key
    }
}

/// A row whose key had a row of its input already.
struct Link {
    ts: i64,
    method: u8,
    input: u32,
    next: u32,
}

/// When which slots may have a row that has to go.
struct Timers {
    /// The number of the first bucket.
    first: i64,
    buckets: VecDeque<Vec<u32>>,
    spare: Vec<Vec<u32>>,
}

impl Timers {
    fn new() -> Self {
        Timers { first: EPOCH_MS >> BUCKET_BITS, buckets: VecDeque::new(), spare: Vec::new() }
    }

    #[inline]
    fn set(&mut self, at: i64, id: u32) {
        let bucket = (at >> BUCKET_BITS) - self.first;
        let bucket = usize::try_from(bucket).expect("a timer is set for after the watermark");
        while self.buckets.len() <= bucket {
            self.buckets.push_back(self.spare.pop().unwrap_or_default());
        }
        self.buckets[bucket].push(id);
    }

    /// The first bucket, if the watermark has passed all of it.
    fn pop_due(&mut self, watermark: i64) -> Option<Vec<u32>> {
        if (self.first + 1) << BUCKET_BITS > watermark + 1 {
            return None;
        }
        let ids = self.buckets.pop_front()?;
        self.first += 1;
        Some(ids)
    }

    fn recycle(&mut self, mut ids: Vec<u32>) {
        ids.clear();
        self.spare.push(ids);
    }
}

/// Counts the row and its partner in if the payment lies in the order's interval.
#[inline]
fn emit<const INPUT: usize>(tally: &mut Tally, row: &Row, (partner_ts, partner_method): (i64, u8)) {
    let (order_ts, payment_ts, method) =
        if INPUT == ORDERS { (row.ts, partner_ts, partner_method) } else { (partner_ts, row.ts, row.method) };
    if (order_ts - INTERVAL_BEFORE_MS..=order_ts + INTERVAL_AFTER_MS).contains(&payment_ts) {
        tally.add([row.key, order_ts as u64, payment_ts as u64, method.into()]);
    }
}

/// The last time at which a partner of the row can still come.
#[inline]
fn leaves_at(input: usize, ts: i64) -> i64 {
    ts + if input == ORDERS { INTERVAL_AFTER_MS } else { INTERVAL_BEFORE_MS }
}

/// Takes the rows that the watermark has passed out of a chain and returns its new head.
#[cold]
fn unlink_passed(more: &mut Slab<Link>, head: u32, watermark: i64) -> u32 {
    let (mut kept, mut next) = (END, head);
    while next != END {
        let id = next;
        let link = &mut more[id];
        next = link.next;
        if leaves_at(link.input as usize, link.ts) <= watermark {
            more.release(id);
        } else {
            link.next = kept;
            kept = id;
        }
    }
    kept
}

/// The input of orders.
const ORDERS: usize = 0;
/// The input of payments.
const PAYMENTS: usize = 1;
/// The end of a chain.
const END: u32 = u32::MAX;
/// Earlier than any time: a slot without rows.
const NEVER: i64 = i64::MIN;
/// Timers of 2^9 ms share a bucket.
const BUCKET_BITS: u32 = 9;

//! The window join: orders and payments of one `order_id % 10 000` in the same tumbling window of 10 s.
//!
//! The rows of a window wait in a list an input, as nothing can come out before the window fires. It fires when the
//! watermark, the smallest over both inputs and all sources, has reached its end: the orders are hung into a hash table of
//! chains, each payment walks the chain of its key, and the window goes as a whole. Table and lists are used again.

use std::collections::VecDeque;

use crate::exchange::{Hashed, Query};
use crate::table;
use crate::workload::{
    self, EPOCH_MS, ORDER_DISORDER_MS, PAYMENT_DISORDER_MS, Size, Tally, WINDOW_MS, window_key, window_start,
};

/// A row of either input.
#[derive(Clone, Copy)]
pub struct Row {
    hash: u64,
    key: u64,
    order_id: u64,
    ts: i64,
}

impl Hashed for Row {
    #[inline]
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// One thread's share of the window join.
pub struct WindowJoin {
    size: Size,
    /// The number of the first window, counted from the epoch.
    first: i64,
    windows: VecDeque<[Vec<Row>; 2]>,
    spare: Vec<[Vec<Row>; 2]>,
    /// For each place of the table, the newest order there.
    heads: Vec<u32>,
    /// For each order of the window, the one before it at its place.
    before: Vec<u32>,
    /// The highest time of the rows that this thread's sources have made, by input.
    highest: [i64; 2],
    /// The watermark of each source, by input.
    watermarks: Vec<[i64; 2]>,
    watermark: i64,
    tally: Tally,
}

impl WindowJoin {
    /// A share that has seen no rows, fed by `sources` threads.
    pub fn new(size: Size, sources: usize) -> Self {
        WindowJoin {
            size,
            first: EPOCH_MS.div_euclid(WINDOW_MS),
            windows: VecDeque::new(),
            spare: Vec::new(),
            heads: Vec::new(),
            before: Vec::new(),
            highest: [EPOCH_MS; 2],
            watermarks: vec![[i64::MIN; 2]; sources],
            watermark: i64::MIN,
            tally: Tally::default(),
        }
    }

    /// Lets the windows fire that the watermark has passed.
    fn fire(&mut self) {
        while (self.first + 1).saturating_mul(WINDOW_MS) - 1 <= self.watermark {
            let Some(mut window) = self.windows.pop_front() else { return };
            self.first += 1;
            self.join_window(&window);
            window.iter_mut().for_each(Vec::clear);
            self.spare.push(window);
        }
    }

    fn join_window(&mut self, [orders, payments]: &[Vec<Row>; 2]) {
        let places = (orders.len() * 2).next_power_of_two().max(16);
        let mask = places as u64 - 1;
        self.heads.clear();
        self.heads.resize(places, END);
        self.before.clear();
        for (number, order) in orders.iter().enumerate() {
            let head = &mut self.heads[(order.hash & mask) as usize];
            self.before.push(*head);
            *head = number as u32;
        }
        for payment in payments {
            let mut next = self.heads[(payment.hash & mask) as usize];
            while next != END {
                let order = &orders[next as usize];
                if order.key == payment.key {
                    self.tally.add([order.order_id, payment.order_id, window_start(order.ts) as u64]);
                }
                next = self.before[next as usize];
            }
        }
    }
}

impl Query for WindowJoin {
    type Row = Row;
    type Outcome = Tally;
    const INPUTS: usize = 2;

    fn rows_in(&self) -> u64 {
        self.size.rows()
    }

    #[inline]
    fn make(&mut self, input: usize, indexes: impl Iterator<Item = u64>, mut take: impl FnMut(Row)) {
        let mut highest = self.highest[input];
        let mut take = |order_id: u64, ts: i64| {
            highest = highest.max(ts);
            let key = window_key(order_id);
            take(Row { hash: table::hash(key), key, order_id, ts });
        };
        if input == ORDERS {
            indexes.map(workload::timed_order).for_each(|order| take(order.order_id, order.ts));
        } else {
            indexes.map(workload::timed_payment).for_each(|payment| take(payment.order_id, payment.ts));
        }
        self.highest[input] = highest;
    }

    fn watermark(&self, input: usize) -> i64 {
        let disorder = if input == ORDERS { ORDER_DISORDER_MS } else { PAYMENT_DISORDER_MS };
        self.highest[input] - disorder - 1
    }

    fn join(&mut self, input: usize, rows: &[Row]) {
        for row in rows {
            assert!(row.ts > self.watermark, "the generated rows are never late");
            let window = (row.ts.div_euclid(WINDOW_MS) - self.first) as usize;
            while self.windows.len() <= window {
                self.windows.push_back(self.spare.pop().unwrap_or_default());
            }
            self.windows[window][input].push(*row);
        }
    }

    fn advance(&mut self, source: usize, input: usize, watermark: i64) {
        self.watermarks[source][input] = watermark;
        let slowest = self.watermarks.iter().flatten().copied().min().unwrap_or(i64::MIN);
        if slowest > self.watermark {
            self.watermark = slowest;
            self.fire();
        }
    }

    fn end(&mut self) {
        self.watermark = i64::MAX;
        self.fire();
    }

    fn finish(&self) -> Tally {
        self.tally
    }
}

/// The input of orders.
const ORDERS: usize = 0;
/// The end of a chain.
const END: u32 = u32::MAX;

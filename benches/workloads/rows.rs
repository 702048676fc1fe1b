//! The rows of the workloads as rows of flowjoin: their event times, and how results are counted and summed.

use flowjoin::prelude::*;
use flowjoin::{TimeError, Watermarks};

use crate::updates::PaymentVersion;
use crate::workload::{
    ABSENT, LEVEL_DISORDER_MS, Level, Logistics, ORDER_DISORDER_MS, Order, PAYMENT_DISORDER_MS, Payment, Tally,
    TimedOrder, TimedPayment, UserOrder, Wide,
};

macro_rules! by_arrival {
    ($($row:ty),*) => {$(
        impl Event for $row {
            fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> {
                Ok(arrival)
            }
            fn watermarks() -> Watermarks {
                Watermarks::ingestion()
            }
        }
    )*};
}
by_arrival!(Order, Payment, PaymentVersion, Logistics, Wide);

macro_rules! by_order {
    ($($row:ty),*) => {$(
        impl Keyed for $row {
            type Key = u64;
            fn key(&self) -> u64 {
                self.order_id
            }
            fn key_name() -> &'static str {
                "order_id"
            }
        }
    )*};
}
by_order!(Order, PaymentVersion);

macro_rules! by_time {
    ($($row:ty, $disorder:expr);*) => {$(
        impl Event for $row {
            fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
                Ok(EventTime::from_millis(self.ts))
            }
            fn watermarks() -> Watermarks {
                Watermarks::of_field("ts").out_of_order(millis($disorder))
            }
        }
    )*};
}
by_time!(
    TimedOrder, ORDER_DISORDER_MS;
    TimedPayment, PAYMENT_DISORDER_MS;
    UserOrder, ORDER_DISORDER_MS;
    Level, LEVEL_DISORDER_MS
);

impl Keyed for Level {
    type Key = u64;
    fn key(&self) -> u64 {
        self.user_id
    }
    fn key_name() -> &'static str {
        "user_id"
    }
}

/// A row of mj3, mj3-left or updates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order3 {
    pub order_id: u64,
    pub amount: u32,
    pub method: Option<u32>,
    pub status: Option<u32>,
}

/// A row of mj10.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wide10 {
    pub key: u64,
    pub vals: [u64; 10],
}

/// A row of the interval joins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Paid {
    pub order_id: u64,
    pub ordered: i64,
    pub paid: i64,
    pub method: u32,
}

/// A row of the temporal join.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leveled {
    pub order_id: u64,
    pub user_id: u64,
    pub level: u32,
}

/// A row of the window join.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Together {
    pub order: u64,
    pub payment: u64,
    pub window: i64,
}

/// A result row that can be counted.
pub trait Counted {
    /// Counts it in, or takes it back.
    fn count(&self, adds: bool, tally: &mut Tally);
}

fn change<const FIELDS: usize>(tally: &mut Tally, adds: bool, fields: [u64; FIELDS]) {
    if adds { tally.add(fields) } else { tally.subtract(fields) }
}

impl Counted for Order3 {
    fn count(&self, adds: bool, tally: &mut Tally) {
        let or_absent = |field: Option<u32>| field.map_or(ABSENT, u64::from);
        let fields = [self.order_id, u64::from(self.amount), or_absent(self.method), or_absent(self.status)];
        change(tally, adds, fields);
    }
}

impl Counted for Wide10 {
    fn count(&self, adds: bool, tally: &mut Tally) {
        let mut fields = [self.key; 11];
        fields[1..].copy_from_slice(&self.vals);
        change(tally, adds, fields);
    }
}

impl Counted for Paid {
    fn count(&self, adds: bool, tally: &mut Tally) {
        change(tally, adds, [self.order_id, self.ordered as u64, self.paid as u64, u64::from(self.method)]);
    }
}

impl Counted for Leveled {
    fn count(&self, adds: bool, tally: &mut Tally) {
        change(tally, adds, [self.order_id, self.user_id, u64::from(self.level)]);
    }
}

impl Counted for Together {
    fn count(&self, adds: bool, tally: &mut Tally) {
        change(tally, adds, [self.order, self.payment, self.window as u64]);
    }
}

impl Counted for Unmatched<TimedOrder> {
    fn count(&self, adds: bool, tally: &mut Tally) {
        change(tally, adds, [self.row.order_id, self.row.ts as u64]);
    }
}

//! The answers of `updates` and `temporal` by their definitions over complete inputs: what the tables hold in the end,
//! joined; and what held at the time of each order.

#![allow(dead_code, reason = "each program that includes this file uses a part of it")]

use std::collections::BTreeMap;

use crate::updates::{Change, PaymentVersion, order_changes, order_numbers, payment_changes, payment_numbers};
use crate::workload::{Level, Logistics, Order, Size, Tally, UserOrder, level, logistics, user_order};

/// The rows of the inputs when all changes have been made.
pub struct Inputs {
    /// The orders that were not deleted.
    pub orders: BTreeMap<u64, Order>,
    /// The last version of each payment.
    pub payments: BTreeMap<u64, PaymentVersion>,
    /// All deliveries.
    pub logistics: Vec<Logistics>,
}

impl Inputs {
    /// The inputs with so many rows.
    pub fn of(rows: u64) -> Inputs {
        let mut orders = BTreeMap::new();
        for change in (0..order_numbers(rows)).flat_map(|number| order_changes(number, rows)) {
            match change {
                Change::Put(order) => orders.insert(order.order_id, order),
                Change::Delete(order_id) => orders.remove(&order_id),
            };
        }
        let versions = (0..payment_numbers(rows)).flat_map(|number| payment_changes(number, rows));
        let payments = versions.map(|payment| (payment.order_id, payment)).collect();
        Inputs { orders, payments, logistics: (0..rows).map(logistics).collect() }
    }

    /// The fields of the joined rows.
    pub fn joined(&self) -> impl Iterator<Item = [u64; 4]> {
        self.logistics.iter().filter_map(|delivery| {
            let (order, payment) = (self.orders.get(&delivery.order_id)?, self.payments.get(&delivery.order_id)?);
            Some(fields(order, payment, delivery))
        })
    }
}

/// The fields of a joined row.
pub fn fields(order: &Order, payment: &PaymentVersion, delivery: &Logistics) -> [u64; 4] {
    [order.order_id, order.amount.into(), payment.method.into(), delivery.status.into()]
}

/// The orders and levels of `temporal`.
pub struct Leveled {
    /// All orders.
    pub orders: Vec<UserOrder>,
    /// All levels, in the order in which they come.
    pub levels: Vec<Level>,
}

impl Leveled {
    /// The inputs of a size.
    pub fn of(size: Size) -> Leveled {
        let orders = (0..size.rows()).map(|index| user_order(index, size.users())).collect();
        Leveled { orders, levels: (0..size.levels()).map(|index| level(index, size.users())).collect() }
    }

    /// The fields of the joined rows.
    pub fn joined(&self) -> impl Iterator<Item = [u64; 3]> {
        let mut of_users: BTreeMap<u64, BTreeMap<i64, u32>> = BTreeMap::new();
        for level in &self.levels {
            of_users.entry(level.user_id).or_default().insert(level.ts, level.level);
        }
        self.orders.iter().filter_map(move |order| {
            let (_, level) = of_users.get(&order.user_id)?.range(..=order.ts).next_back()?;
            Some([order.order_id, order.user_id, u64::from(*level)])
        })
    }
}

/// Their count and checksum.
pub fn tally<const FIELDS: usize>(rows: impl IntoIterator<Item = [u64; FIELDS]>) -> Tally {
    let mut tally = Tally::default();
    rows.into_iter().for_each(|fields| tally.add(fields));
    tally
}

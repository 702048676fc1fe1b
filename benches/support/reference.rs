//! The answer of `updates` by its definition over complete inputs: what the tables hold in the end, joined.

use std::collections::BTreeMap;

use crate::updates::{Change, PaymentVersion, order_changes, order_numbers, payment_changes, payment_numbers};
use crate::workload::{Logistics, Order, Tally, logistics};

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

/// Their count and checksum.
pub fn tally(rows: impl IntoIterator<Item = [u64; 4]>) -> Tally {
    let mut tally = Tally::default();
    rows.into_iter().for_each(|fields| tally.add(fields));
    tally
}

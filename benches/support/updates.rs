//! The inputs of the workload `updates`, to the bit: tables whose rows are put, put again and deleted.
//!
//! The changes of an input are numbered as its rows are, but a number may have several changes or none: row `i` is put
//! at number `i`, its next version at `i + lag`, the one after at `i + 2 lag`. So from early on most changes update
//! rows that were put long before, and an input is still a function of the index alone. It can be dealt out to any
//! number of readers that divides the lag: all changes of a row go to the same one.

#![allow(dead_code, reason = "each benchmark that includes this file uses a part of it")]

use serde::{Deserialize, Serialize};

use crate::workload::{Order, Size, h, order, payment};

/// A change of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// The row of its key is this one now.
    Put(T),
    /// There is no row of this key any more.
    Delete(u64),
}

/// A version of a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentVersion {
    /// The order that is paid; one in twenty has no order. No two payments share one.
    pub order_id: u64,
    /// Below 4.
    pub method: u32,
    /// From 0 to [`UPDATES`].
    pub version: u32,
}

/// The changes of number `number` of orders, of which there are `rows`: the order is put, and the one put a lag before
/// is deleted if it is one in ten. The numbers end at [`order_numbers`].
#[inline]
pub fn order_changes(number: u64, rows: u64) -> impl Iterator<Item = Change<Order>> {
    let put = (number < rows).then(|| Change::Put(order(number)));
    let older = number.checked_sub(lag(rows)).filter(|&older| is_deleted(older, rows));
    put.into_iter().chain(older.map(Change::Delete))
}

/// The changes of number `number` of payments, of which there are `rows`: the payment is put, and those put one, two
/// and three lags before get their next version. The numbers end at [`payment_numbers`].
#[inline]
pub fn payment_changes(number: u64, rows: u64) -> impl Iterator<Item = PaymentVersion> {
    (0..=UPDATES).filter_map(move |version| {
        let index = number.checked_sub(u64::from(version) * lag(rows)).filter(|&index| index < rows)?;
        Some(payment_version(index, version))
    })
}

/// How many numbers orders has.
pub const fn order_numbers(rows: u64) -> u64 {
    rows + lag(rows)
}

/// How many numbers payments has.
pub const fn payment_numbers(rows: u64) -> u64 {
    rows + UPDATES as u64 * lag(rows)
}

/// How many changes and rows the inputs have together: orders and their deletions, payments and their updates, and
/// logistics.
pub const fn changes_in(size: Size) -> u64 {
    let rows = size.rows();
    rows + rows / 10 + rows * (1 + UPDATES as u64) + rows
}

/// After how many numbers a row is changed again: a power of two at all sizes.
pub const fn lag(rows: u64) -> u64 {
    rows / 8
}

/// Version `version` of payment `index`.
#[inline]
fn payment_version(index: u64, version: u32) -> PaymentVersion {
    let first = payment(index);
    let method = if version == 0 { first.method } else { (h(60 + u64::from(version), index) % 4) as u32 };
    PaymentVersion { order_id: first.order_id, method, version }
}

/// Whether order `index` is deleted: one of each ten is.
#[inline]
const fn is_deleted(index: u64, rows: u64) -> bool {
    index / 10 < rows / 10 && index % 10 == h(18, index / 10) % 10
}

/// How often each payment is updated.
pub const UPDATES: u32 = 3;

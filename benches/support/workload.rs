//! The join workloads, to the bit: every input row as a function of its index, and the answer that every run must reach.
//!
//! This file knows nothing of the framework. A benchmark includes it by path, so that the framework and the yardstick
//! read the same rows and are held to the same count and checksum. Nothing is read from disk and no row depends on
//! another, so an input can be dealt out to any number of readers by index.
//!
//! The prose definitions are in `benches/WORKLOADS.md`.

#![allow(dead_code, reason = "each benchmark that includes this file uses a part of it")]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::updates;

/// One join query over generated inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// orders ⋈ payments ⋈ logistics on `order_id`; nothing expires.
    Mj3,
    /// orders ⟕ payments ⟕ logistics on `order_id`, as a changelog.
    Mj3Left,
    /// As [`Workload::Mj3`] where payments are updated and orders deleted; see [`updates`].
    Updates,
    /// Ten inputs joined on one key.
    Mj10,
    /// orders ⋈ payments on `order_id`, the payment from 5 s before the order to 30 s after it.
    Interval,
    /// As [`Workload::Interval`], and every order without such a payment comes out once as unmatched.
    IntervalLeft,
    /// orders ⋈ vip on `user_id`, the level that the user had at the order's time.
    Temporal,
    /// orders ⋈ payments on `order_id % 10 000`, in tumbling windows of 10 s.
    Window,
}

impl Workload {
    /// All workloads, in the order in which they are described.
    pub const ALL: [Workload; 8] = [
        Workload::Mj3,
        Workload::Mj3Left,
        Workload::Updates,
        Workload::Mj10,
        Workload::Interval,
        Workload::IntervalLeft,
        Workload::Temporal,
        Workload::Window,
    ];

    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::Mj3 => "mj3",
            Workload::Mj3Left => "mj3-left",
            Workload::Updates => "updates",
            Workload::Mj10 => "mj10",
            Workload::Interval => "interval",
            Workload::IntervalLeft => "interval-left",
            Workload::Temporal => "temporal",
            Workload::Window => "window",
        }
    }

    /// How many rows all inputs of the workload have together; each change of a table counts as one.
    pub const fn rows_in(self, size: Size) -> u64 {
        match self {
            Workload::Mj3 | Workload::Mj3Left => 3 * size.rows(),
            Workload::Updates => updates::changes_in(size),
            Workload::Mj10 => WIDE_INPUTS as u64 * size.wide_rows(),
            Workload::Interval | Workload::IntervalLeft | Workload::Window => 2 * size.rows(),
            Workload::Temporal => size.rows() + size.levels(),
        }
    }

    /// The count and checksum that the workload's output must have.
    pub const fn answer(self, size: Size) -> Answer {
        match self {
            Workload::Mj3 => Answer::joined(match size {
                Size::Small => Tally::of(14_756, 0x64e8_c815_a4d5_2a13),
                Size::Default => Tally::of(1_892_369, 0x29ad_cdb9_e38c_9eb9),
                Size::Large => Tally::of(15_140_386, 0xd79f_7033_ca0a_247b),
            }),
            Workload::Mj3Left => Answer::joined(match size {
                Size::Small => Tally::of(16_384, 0x3707_b13d_2a6e_26d2),
                Size::Default => Tally::of(2_097_152, 0xc6f5_6e1a_d175_1913),
                Size::Large => Tally::of(16_777_216, 0x6938_617e_1d92_c18d),
            }),
            Workload::Updates => Answer::joined(match size {
                Size::Small => Tally::of(13_270, 0xd459_60af_dcb6_b4df),
                Size::Default => Tally::of(1_703_079, 0xf29f_1bf8_9deb_0684),
                Size::Large => Tally::of(13_625_824, 0x0696_80c0_9514_47ae),
            }),
            Workload::Mj10 => Answer::joined(match size {
                Size::Small => Tally::of(12_844, 0xf200_64c7_5be1_1c76),
                Size::Default => Tally::of(1_624_337, 0x3fb8_8e8b_0cd3_3829),
                Size::Large => Tally::of(12_993_661, 0xd71d_c335_c7d3_463a),
            }),
            Workload::Interval => Answer::joined(interval_answer(size)),
            Workload::Temporal => Answer::joined(match size {
                Size::Small => Tally::of(16_384, 0x82a2_c624_686d_0522),
                Size::Default => Tally::of(2_097_152, 0xa9f8_1800_55bb_55fb),
                Size::Large => Tally::of(16_777_216, 0x0073_cde5_f59e_da9d),
            }),
            Workload::Window => Answer::joined(match size {
                Size::Small => Tally::of(6_401, 0xc578_3c6e_13cc_63c6),
                Size::Default => Tally::of(2_086_131, 0xc2da_89d7_9351_db32),
                Size::Large => Tally::of(16_766_233, 0x16b8_3f15_aec3_12b6),
            }),
            Workload::IntervalLeft => Answer {
                joined: interval_answer(size),
                unmatched: Some(match size {
                    Size::Small => Tally::of(845, 0x2ebf_89d7_7ca7_cd4b),
                    Size::Default => Tally::of(105_024, 0xfffc_05d7_d227_e577),
                    Size::Large => Tally::of(839_513, 0x6e3d_9949_dda6_31b4),
                }),
            },
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many rows a workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A fraction of a second in a debug build: for tests.
    Small,
    /// What figures are quoted for.
    Default,
    /// Eight times the default: for memory and growth.
    Large,
}

impl Size {
    /// All sizes, ascending.
    pub const ALL: [Size; 3] = [Size::Small, Size::Default, Size::Large];

    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Size::Small => "small",
            Size::Default => "default",
            Size::Large => "large",
        }
    }

    /// N: how many rows each of orders, payments and logistics has; a multiple of 4096.
    pub const fn rows(self) -> u64 {
        match self {
            Size::Small => 1 << 14,
            Size::Default => 1 << 21,
            Size::Large => 1 << 24,
        }
    }

    /// K: how many keys the wide inputs have; a multiple of 1024.
    pub const fn keys(self) -> u64 {
        match self {
            Size::Small => 1 << 11,
            Size::Default => 1 << 18,
            Size::Large => 1 << 21,
        }
    }

    /// U: how many users there are.
    pub const fn users(self) -> u64 {
        match self {
            Size::Small => 1_000,
            Size::Default | Size::Large => 100_000,
        }
    }

    /// How many rows vip has: one a user, and then a tenth as many as orders.
    pub const fn levels(self) -> u64 {
        self.users() + self.rows() / 10
    }

    /// How many rows each wide input has: every key once, and a fifth as many rows on keys that were there before.
    pub const fn wide_rows(self) -> u64 {
        self.keys() + self.keys() / 5
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let named = Size::ALL.into_iter().find(|size| size.name() == word);
        named.ok_or_else(|| format!("no size `{word}`; there are {}", Size::ALL.map(Size::name).join(", ")))
    }
}

/// An order, with the columns that mj3 reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The row's index; no two orders share one.
    pub order_id: u64,
    /// Below 100 000.
    pub amount: u32,
}

/// A payment, with the columns that mj3 reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    /// The order that is paid; one in twenty has no order.
    pub order_id: u64,
    /// Below 4.
    pub method: u32,
}

/// A delivery, with the columns that mj3 reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logistics {
    /// The order that is delivered; one in twenty has no order.
    pub order_id: u64,
    /// Below 5.
    pub status: u32,
}

/// An order, with the columns that the interval joins read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedOrder {
    /// The row's index; no two orders share one.
    pub order_id: u64,
    /// Milliseconds since the epoch; ascending.
    pub ts: i64,
}

/// A payment, with the columns that the interval joins read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedPayment {
    /// The order that is paid; one in twenty has no order.
    pub order_id: u64,
    /// Milliseconds since the epoch; up to 2 s out of order.
    pub ts: i64,
    /// Below 4.
    pub method: u32,
}

/// An order, with the columns that the temporal join reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserOrder {
    /// The row's index; no two orders share one.
    pub order_id: u64,
    /// Below [`Size::users`].
    pub user_id: u64,
    /// Milliseconds since the epoch; ascending.
    pub ts: i64,
}

/// A row of vip: the level of a user from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Below [`Size::users`].
    pub user_id: u64,
    /// Below 5.
    pub level: u32,
    /// Milliseconds since the epoch; ascending.
    pub ts: i64,
}

/// A row of one of the ten wide inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wide {
    /// Below [`Size::keys`].
    pub key: u64,
    /// All 64 bits are used.
    pub val: u64,
}

/// Row `index` of orders.
#[inline]
pub fn order(index: u64) -> Order {
    Order { order_id: index, amount: (h(2, index) % 100_000) as u32 }
}

/// Row `index` of payments.
#[inline]
pub fn payment(index: u64) -> Payment {
    Payment { order_id: paid_order(index), method: (h(3, index) % 4) as u32 }
}

/// Row `index` of logistics.
#[inline]
pub fn logistics(index: u64) -> Logistics {
    let order_id = perm(index, 4096, 1229).wrapping_add(miss(8, index));
    Logistics { order_id, status: (h(6, index) % 5) as u32 }
}

/// Row `index` of orders, for the interval joins.
#[inline]
pub fn timed_order(index: u64) -> TimedOrder {
    TimedOrder { order_id: index, ts: EPOCH_MS + index as i64 }
}

/// Row `index` of payments, for the interval joins.
#[inline]
pub fn timed_payment(index: u64) -> TimedPayment {
    let delay_ms = 10_000 + (h(4, index) % 2_000) as i64;
    TimedPayment {
        order_id: paid_order(index),
        ts: EPOCH_MS + index as i64 + delay_ms,
        method: (h(3, index) % 4) as u32,
    }
}

/// Row `index` of orders, for the temporal join over so many users.
#[inline]
pub fn user_order(index: u64, users: u64) -> UserOrder {
    UserOrder { order_id: index, user_id: h(1, index) % users, ts: EPOCH_MS + index as i64 }
}

/// Row `index` of vip over so many users: first one a user, before all orders, and then one in ten milliseconds.
#[inline]
pub fn level(index: u64, users: u64) -> Level {
    let (user_id, ts) = match index.checked_sub(users) {
        None => (index, EPOCH_MS - 1),
        Some(later) => (h(16, index) % users, EPOCH_MS + later as i64 * 10),
    };
    Level { user_id, level: (h(17, index) % 5) as u32, ts }
}

/// Row `index` of wide input `input`, which is below [`WIDE_INPUTS`], over `keys` keys.
#[inline]
pub fn wide(input: usize, index: u64, keys: u64) -> Wide {
    debug_assert!(input < WIDE_INPUTS, "there are ten wide inputs");
    let key = if index < keys { perm(index, 1024, 421) } else { h(20 + input as u64, index) % keys };
    Wide { key, val: h(40 + input as u64, index) }
}

/// The count of some rows and the order-free checksum over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many rows: those added less those taken back.
    pub count: u64,
    /// The wrapping sum of `mix(row_hash)` over the rows.
    pub checksum: u64,
}

impl Tally {
    /// A tally that is known beforehand.
    pub const fn of(count: u64, checksum: u64) -> Self {
        Tally { count, checksum }
    }

    /// Counts a row in: an insertion, or the new side of an update.
    #[inline]
    pub fn add<const FIELDS: usize>(&mut self, fields: [u64; FIELDS]) {
        self.count = self.count.wrapping_add(1);
        self.checksum = self.checksum.wrapping_add(mix(row_hash(fields)));
    }

    /// Takes a row back: a deletion, or the old side of an update.
    #[inline]
    pub fn subtract<const FIELDS: usize>(&mut self, fields: [u64; FIELDS]) {
        self.count = self.count.wrapping_sub(1);
        self.checksum = self.checksum.wrapping_sub(mix(row_hash(fields)));
    }

    /// The tally of this tally's rows and the other's together.
    pub fn merge(self, other: Tally) -> Tally {
        Tally { count: self.count.wrapping_add(other.count), checksum: self.checksum.wrapping_add(other.checksum) }
    }
}

/// What a workload's output must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The joined rows; of a changelog, those of the final table.
    pub joined: Tally,
    /// The unmatched rows, where the workload has such an output.
    pub unmatched: Option<Tally>,
}

impl Answer {
    /// The answer of a workload that has no unmatched output.
    pub const fn joined(joined: Tally) -> Self {
        Answer { joined, unmatched: None }
    }
}

/// Folds a result row's fields, left to right. A missing right side is the one field [`ABSENT`].
#[inline]
pub fn row_hash<const FIELDS: usize>(fields: [u64; FIELDS]) -> u64 {
    fields.into_iter().fold(0, |hash, field| mix(hash.wrapping_add(field)))
}

/// The finalizer of splitmix64, on which all generated columns and all checksums rest.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The pseudo-random number at `index` of stream `stream`.
#[inline]
pub const fn h(stream: u64, index: u64) -> u64 {
    mix(mix(stream).wrapping_add(index))
}

/// Shuffles indexes within blocks of `block`, a power of two; a bijection because `factor` is odd.
#[inline]
pub const fn perm(index: u64, block: u64, factor: u64) -> u64 {
    let low = index & (block - 1);
    (index - low) + (low.wrapping_mul(factor).wrapping_add(7) & (block - 1))
}

/// What the window join joins orders and payments on.
#[inline]
pub const fn window_key(order_id: u64) -> u64 {
    order_id % WINDOW_KEYS
}

/// When the window begins that a time is in.
#[inline]
pub const fn window_start(ts: i64) -> i64 {
    ts - ts.rem_euclid(WINDOW_MS)
}

/// The order that payment `index` pays, or a key that no order has.
#[inline]
const fn paid_order(index: u64) -> u64 {
    perm(index, 1024, 421).wrapping_add(miss(5, index))
}

/// [`MISS`] for one row in twenty, else zero.
#[inline]
const fn miss(stream: u64, index: u64) -> u64 {
    if h(stream, index).is_multiple_of(20) { MISS } else { 0 }
}

/// The joined rows of both interval workloads.
const fn interval_answer(size: Size) -> Tally {
    match size {
        Size::Small => Tally::of(15_539, 0x27a3_734c_45b3_ad0e),
        Size::Default => Tally::of(1_992_128, 0x844a_fdd5_fa60_b167),
        Size::Large => Tally::of(15_937_703, 0x5066_175d_c203_9251),
    }
}

/// How many inputs mj10 joins.
pub const WIDE_INPUTS: usize = 10;
/// T0: the time of the first order, in milliseconds since the epoch.
pub const EPOCH_MS: i64 = 1_700_000_000_000;
/// Added to a key that must find no partner.
pub const MISS: u64 = 1 << 40;
/// The field that stands for a missing right side in a row hash.
pub const ABSENT: u64 = u64::MAX;
/// How far before its order a payment may lie in the interval joins.
pub const INTERVAL_BEFORE_MS: i64 = 5_000;
/// How far after its order a payment may lie in the interval joins.
pub const INTERVAL_AFTER_MS: i64 = 30_000;
/// How late the watermark of orders assumes its rows to be.
pub const ORDER_DISORDER_MS: i64 = 0;
/// How late the watermark of vip assumes its rows to be.
pub const LEVEL_DISORDER_MS: i64 = 0;
/// How late the watermark of payments assumes its rows to be.
pub const PAYMENT_DISORDER_MS: i64 = 5_000;
/// How many keys the window join has.
pub const WINDOW_KEYS: u64 = 10_000;
/// How long its windows are.
pub const WINDOW_MS: i64 = 10_000;

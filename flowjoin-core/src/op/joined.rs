//! The typed half of a join, as the untyped half sees it.
//!
//! A join operator works on row ids; the rows themselves, one slab an input, and the user's `select` are behind
//! [`JoinRows`], which is implemented once for each number of inputs. It is called a few times a batch, never a row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::batch::{AnyBatch, KeyedBatch, KeyedRow, Kinds};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::record::Data;
use crate::state::{RowId, Slab};
use crate::time::{EventTime, Watermark};

use super::{Outbox, Port};
use crate::account::Reason;

/// When two rows of an input are one and the same, in two versions: they have the same unique key.
pub struct Identity<T> {
    /// Whether they do.
    pub same: Arc<dyn Fn(&T, &T) -> bool + Send + Sync>,
    /// A hash of the unique key.
    pub hash: Arc<dyn Fn(&T) -> u64 + Send + Sync>,
}

impl<T> Clone for Identity<T> {
    fn clone(&self) -> Self {
        Identity { same: self.same.clone(), hash: self.hash.clone() }
    }
}

impl<T: 'static> Identity<T> {
    /// By the unique key that a function takes of a row.
    pub fn by<U: Hash + Eq>(unique: impl Fn(&T) -> U + Send + Sync + 'static) -> Identity<T> {
        let unique = Arc::new(unique);
        let of = unique.clone();
        Identity {
            same: Arc::new(move |a, b| unique(a) == unique(b)),
            hash: Arc::new(move |row| {
                let mut hasher = std::hash::DefaultHasher::new();
                of(row).hash(&mut hasher);
                hasher.finish()
            }),
        }
    }
}

/// One combination of rows that enters or leaves the result.
#[derive(Clone, Copy, Debug)]
pub struct Combo<const N: usize> {
    /// The rows, one an input; missing where an optional input has none.
    pub ids: [RowId; N],
    /// What happens to it.
    pub kind: RowKind,
    /// The time of the row that caused it: the result is not older.
    pub cause: EventTime,
}

/// A row that was taken into state.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<K> {
    /// Its key.
    pub key: K,
    /// The hash of its key.
    pub hash: u64,
    /// Its time.
    pub time: EventTime,
    /// Where it is.
    pub id: RowId,
}

/// The rows of a batch that were taken into state.
#[derive(Debug)]
pub struct Arrivals<K> {
    /// The rows, in order.
    pub rows: Vec<Arrival<K>>,
    /// Their kinds.
    pub kinds: Kinds,
    /// How many rows of the batch were late, and not taken in.
    pub late: u64,
}

impl<K> Default for Arrivals<K> {
    fn default() -> Self {
        Arrivals { rows: Vec::new(), kinds: Kinds::AllInsert, late: 0 }
    }
}

/// The times that rows may have when they are taken in.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Rows before this are late.
    pub late_before: Watermark,
    /// The times of the others are raised to this.
    pub not_before: EventTime,
}

impl Lateness {
    /// Facts: what is behind the watermark is late.
    pub const fn facts(watermark: Watermark) -> Lateness {
        Lateness { late_before: watermark, not_before: EventTime::MIN }
    }

    /// Changes: none is late, as to leave one out would leave the result wrong for ever.
    pub const fn changes(watermark: Watermark) -> Lateness {
        Lateness { late_before: Watermark::NONE, not_before: watermark.time() }
    }
}

/// The rows of a join, and what to make of them.
pub trait JoinRows<K: Key, const N: usize>: Send {
    /// Takes the rows of a batch in, and says where they are; what `arrivals` said before is forgotten. Rows behind the
    /// watermark are late: they go to the late port instead. The times of the others are raised to `not_before`.
    ///
    /// # Errors
    /// If a slab is full.
    fn arrive(
        &mut self,
        input: usize,
        batch: AnyBatch,
        lateness: Lateness,
        arrivals: &mut Arrivals<K>,
        out: &mut Outbox,
    ) -> Result<(), OpError>;

    /// Makes result rows of combinations and sends them.
    fn select(&mut self, combos: &[Combo<N>], out: &mut Outbox);

    /// Drops rows; their ids are free.
    fn discard(&mut self, input: usize, ids: &[RowId]);

    /// Drops a row and keeps its id until [`release`](Self::release).
    fn vacate(&mut self, input: usize, id: RowId);

    /// Frees the id of a vacated row.
    fn release(&mut self, input: usize, id: RowId);

    /// Moves rows out to the unmatched port of their input, with times not before `not_before`; their ids are free.
    fn unmatched(&mut self, input: usize, ids: &[RowId], reason: Reason, not_before: EventTime, out: &mut Outbox);

    /// Moves rows that came after this watermark out to the late port of their input; their ids are free.
    fn late(&mut self, input: usize, ids: &[RowId], watermark: Watermark, out: &mut Outbox);

    /// Whether a row is held.
    fn holds_row(&self, input: usize, id: RowId) -> bool;

    /// Whether rows of an input have a unique key, so that one stands for each.
    fn has_identity(&self, input: usize) -> bool;

    /// A hash of the unique key of a row, or of the whole row where it has none: rows that are the same have the same.
    fn print(&mut self, input: usize, id: RowId) -> u64;

    /// Whether two rows of an input have the same unique key, or are equal where they have none.
    fn same(&mut self, input: usize, a: RowId, b: RowId) -> bool;

    /// Whether the condition between an input and those on its left holds for the rows of a combination, which is filled
    /// up to that input.
    fn holds(&self, input: usize, ids: &[RowId; N]) -> bool;

    /// Asks the processor for a row, which will be needed soon.
    fn prefetch(&self, input: usize, id: RowId);

    /// The time of a row that is held.
    fn time(&self, input: usize, id: RowId) -> EventTime;

    /// The rows held, ascending by id.
    fn held(&self, input: usize) -> Vec<RowId>;

    /// How many rows are held.
    fn len(&self, input: usize) -> usize;

    /// Bytes taken by the rows.
    fn bytes(&self) -> u64;

    /// Rows sent on the main output so far.
    fn emitted(&self) -> u64;
}

/// The port of the unmatched rows of an input.
pub const fn unmatched_port(input: usize) -> Port {
    Port(1 + input)
}

/// The port of the late rows of an input, in a join of so many.
pub const fn late_port(input: usize, inputs: usize) -> Port {
    Port(1 + inputs + input)
}

/// Takes the rows of a keyed batch into a slab; those that are late are handed to `on_late` instead.
///
/// # Errors
/// If the slab is full.
pub fn arrive<K: Key, T: Data>(
    slab: &mut Slab<T>,
    batch: AnyBatch,
    Lateness { late_before, not_before }: Lateness,
    arrivals: &mut Arrivals<K>,
    mut on_late: impl FnMut(T, EventTime, RowKind),
) -> Result<(), OpError> {
    let KeyedBatch { rows, kinds } = batch.take::<KeyedBatch<K, T>>()?;
    arrivals.rows.clear();
    arrivals.rows.reserve(rows.len());
    arrivals.kinds = Kinds::AllInsert;
    arrivals.late = 0;
    for (index, KeyedRow { key, hash, time, row }) in rows.into_iter().enumerate() {
        let kind = kinds.at(index);
        if late_before.is_late(time) {
            arrivals.late += 1;
            on_late(row, time, kind);
            continue;
        }
        arrivals.kinds.push(kind, arrivals.rows.len());
        let time = time.max(not_before);
        let id = slab.insert(row, time)?;
        arrivals.rows.push(Arrival { key, hash, time, id });
    }
    Ok(())
}

//! The typed half of a join, as the untyped half sees it.
//!
//! A join operator works on row ids; the rows themselves, one slab an input, and the user's `select` are behind
//! [`JoinRows`], which is implemented once for each number of inputs. It is called a few times a batch, never a row.

use crate::batch::{AnyBatch, KeyedBatch, Kinds};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::record::Data;
use crate::state::{RowId, Slab};
use crate::time::{EventTime, Watermark};

use super::{Outbox, Port};
use crate::account::Reason;

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

/// The rows of a batch that were taken into state.
#[derive(Debug)]
pub struct Arrivals<K> {
    /// Their keys.
    pub keys: Vec<K>,
    /// The hashes of their keys.
    pub hashes: Vec<u64>,
    /// Where they are.
    pub ids: Vec<RowId>,
    /// Their times.
    pub times: Vec<EventTime>,
    /// Their kinds.
    pub kinds: Kinds,
    /// How many rows of the batch were late, and not taken in.
    pub late: u64,
}

/// The rows of a join, and what to make of them.
pub trait JoinRows<K: Key, const N: usize>: Send {
    /// Takes the rows of a batch in. With a watermark, rows behind it are late: they go to the late port instead.
    ///
    /// # Errors
    /// If a slab is full.
    fn arrive(
        &mut self,
        input: usize,
        batch: AnyBatch,
        late_before: Watermark,
        out: &mut Outbox,
    ) -> Result<Arrivals<K>, OpError>;

    /// Makes result rows of combinations and sends them.
    fn select(&mut self, combos: &[Combo<N>], out: &mut Outbox);

    /// Drops rows; their ids are free.
    fn discard(&mut self, input: usize, ids: &[RowId]);

    /// Drops a row and keeps its id until [`release`](Self::release).
    fn vacate(&mut self, input: usize, id: RowId);

    /// Frees the id of a vacated row.
    fn release(&mut self, input: usize, id: RowId);

    /// Moves rows out to the unmatched port of their input; their ids are free.
    fn unmatched(&mut self, input: usize, ids: &[RowId], reason: Reason, out: &mut Outbox);

    /// Whether two rows of an input are equal.
    fn equal(&self, input: usize, a: RowId, b: RowId) -> bool;

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
    late_before: Watermark,
    mut on_late: impl FnMut(T, EventTime, RowKind),
) -> Result<Arrivals<K>, OpError> {
    let KeyedBatch { batch, keys, hashes } = batch.take::<KeyedBatch<K, T>>()?;
    let (rows, times, kinds) = batch.into_parts();
    let mut ids = Vec::with_capacity(rows.len());
    if !times.iter().any(|&time| late_before.is_late(time)) {
        for (row, &time) in rows.into_iter().zip(&times) {
            ids.push(slab.insert(row, time)?);
        }
        return Ok(Arrivals { keys, hashes, ids, times, kinds, late: 0 });
    }
    let mut kept =
        Arrivals { keys: Vec::new(), hashes: Vec::new(), ids, times: Vec::new(), kinds: Kinds::AllInsert, late: 0 };
    for (index, ((row, time), (key, hash))) in rows.into_iter().zip(times).zip(keys.into_iter().zip(hashes)).enumerate()
    {
        let kind = kinds.at(index);
        if late_before.is_late(time) {
            kept.late += 1;
            on_late(row, time, kind);
            continue;
        }
        kept.kinds.push(kind, kept.ids.len());
        kept.ids.push(slab.insert(row, time)?);
        kept.keys.push(key);
        kept.hashes.push(hash);
        kept.times.push(time);
    }
    Ok(kept)
}

/// Whether two rows are equal: by their bytes, since rows need not be `Eq`.
pub fn equal_rows<T: Data>(a: &T, b: &T) -> bool {
    let bytes = |row: &T| bincode::serde::encode_to_vec(row, bincode::config::standard()).ok();
    match (bytes(a), bytes(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

//! The typed half of a join, as the untyped half sees it.
//!
//! A join operator works on row ids; the rows themselves, one slab an input, and the user's `select` are behind
//! [`JoinRows`], which is implemented once for each number of inputs. It is called a few times a batch, never a row.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::batch::{AnyBatch, Head, KeyedBatch, KeyedRow, Kinds};
use crate::change::RowKind;
use crate::error::OpError;
use crate::io::{RowChange, TableBatch};
use crate::key::Key;
use crate::record::Data;
use crate::state::{Held, Place, RowId, Slab, Slots, prefetch, prefetch_all};
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

impl<const N: usize> Combo<N> {
    /// The first of its rows that stands in a slot; missing if none does. The others that stand in a slot have this id too,
    /// as they stand beside it.
    #[inline]
    pub fn home(&self) -> RowId {
        self.ids.iter().copied().find(|id| id.slot().is_some()).unwrap_or(RowId::MISSING)
    }
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

/// The rows of a batch that have come, and whose places in state are not known yet.
#[derive(Debug)]
pub struct Staged<K> {
    /// What is known of each.
    pub heads: Vec<Head<K>>,
    /// What happens to them.
    pub kinds: Kinds,
    /// How many rows of the batch were late, and are not among them.
    pub late: u64,
}

/// A row whose key has been looked up, and that has been taken into state.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    /// The hash of its key.
    pub hash: u64,
    /// Its time.
    pub time: EventTime,
    /// Where its key is; none if the key is null, or is not held and the row takes something back.
    pub place: Option<Place>,
    /// Where the row is.
    pub id: RowId,
    /// What happens to it.
    pub kind: RowKind,
    /// Whether its key is null.
    pub is_null: bool,
    /// Whether it is in some result as soon as it has come.
    pub comes_out: bool,
}

/// The kinds that changes of a table have on their way into a join: none of them is the half of an update.
pub mod table_change {
    use crate::change::RowKind;

    /// The row of the key is this one now.
    pub const PUT: RowKind = RowKind::Insert;
    /// The row of the key is gone.
    pub const DELETE: RowKind = RowKind::Delete;
}

/// Where rows get their places.
#[derive(Clone, Copy, Debug)]
pub struct Placing {
    /// Beside the other rows of their key, where there is room, and not in the slab.
    pub side_by_side: bool,
    /// They come with the changes of a table, of which only those that put a row have one.
    pub changes_of_table: bool,
}

/// The times that rows may have when they are taken in.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Rows before this are late.
    pub late_before: Watermark,
    /// The times of the others are raised to this.
    pub not_before: EventTime,
    /// And lowered to this.
    pub not_after: EventTime,
}

impl Lateness {
    /// Facts: what is behind the watermark is late.
    pub const fn facts(watermark: Watermark) -> Lateness {
        Lateness { late_before: watermark, ..Lateness::NONE }
    }

    /// Changes: none is late, as to leave one out would leave the result wrong for ever.
    pub const fn changes(watermark: Watermark) -> Lateness {
        Lateness { not_before: watermark.time(), ..Lateness::NONE }
    }

    /// None is late, and all keep their times.
    pub const NONE: Lateness =
        Lateness { late_before: Watermark::NONE, not_before: EventTime::MIN, not_after: EventTime::LAST };

    /// Rows whose times are of no account for those of the results.
    pub const TIMELESS: Lateness = Lateness { not_after: EventTime::MIN, ..Lateness::NONE };

    // Whether rows may get other times than they have.
    fn moves(&self) -> bool {
        self.not_before > EventTime::MIN || self.not_after < EventTime::LAST
    }

    // The time that a row of this time gets.
    #[inline]
    fn moved(&self, time: EventTime) -> EventTime {
        time.max(self.not_before).min(self.not_after)
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

    /// Takes the rows of a batch in without a place for them yet. The rows themselves wait in the same order until
    /// [`settle`](Self::settle). Late rows and times are as in [`arrive`](Self::arrive).
    ///
    /// # Errors
    /// If the batch is of another type.
    fn stage(
        &mut self,
        input: usize,
        batch: AnyBatch,
        lateness: Lateness,
        out: &mut Outbox,
    ) -> Result<Staged<K>, OpError>;

    /// As [`stage`](Self::stage), for the changes of a table, none of which is late; their kinds are those of
    /// [`table_change`]. Tells too before which of them all rows of the table go, and when.
    ///
    /// # Errors
    /// If the batch is of another type.
    fn stage_table(
        &mut self,
        input: usize,
        batch: AnyBatch,
        not_before: EventTime,
    ) -> Result<(Staged<K>, Vec<(usize, EventTime)>), OpError>;

    /// Whether the rows of a key are small enough to stand side by side.
    fn are_small(&self) -> bool;

    /// Gives the next rows that wait their places.
    ///
    /// # Errors
    /// If a slab is full.
    fn settle(&mut self, input: usize, rows: &mut [Located], how: Placing) -> Result<(), OpError>;

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

    /// Goes on where so many rows had been sent.
    fn go_on(&mut self, emitted: u64);

    /// Appends the bytes of a row that is held.
    ///
    /// # Errors
    /// If the row cannot be kept.
    fn write_row(&self, input: usize, id: RowId, out: &mut Vec<u8>) -> Result<(), OpError>;

    /// Takes a row of this time in again: into the slot of this number, if there is one and it has room, else into the
    /// slab.
    ///
    /// # Errors
    /// If the bytes are not those of a row, or the slab is full.
    fn read_row(&mut self, input: usize, bytes: &[u8], time: EventTime, slot: Option<u32>) -> Result<RowId, OpError>;
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
    lateness: Lateness,
    arrivals: &mut Arrivals<K>,
    on_late: impl FnMut(T, EventTime, RowKind),
) -> Result<(), OpError> {
    let (Staged { heads, kinds, late }, rows) = in_time(batch, lateness, on_late)?;
    arrivals.rows.clear();
    arrivals.rows.reserve(heads.len());
    (arrivals.kinds, arrivals.late) = (kinds, late);
    for (Head { key, hash, time }, row) in heads.into_iter().zip(rows) {
        let id = slab.insert(row, time)?;
        arrivals.rows.push(Arrival { key, hash, time, id });
    }
    Ok(())
}

/// Takes the rows of a keyed batch in without a place for them: the rows into `waiting`. Those that are late are handed to
/// `on_late` instead.
///
/// # Errors
/// If the batch is of another type.
pub fn stage<K: Key, T: Data>(
    waiting: &mut Waiting<T>,
    batch: AnyBatch,
    lateness: Lateness,
    on_late: impl FnMut(T, EventTime, RowKind),
) -> Result<Staged<K>, OpError> {
    let (staged, rows) = in_time(batch, lateness, on_late)?;
    *waiting = rows.into_iter();
    Ok(staged)
}

// The rows of a keyed batch that are not late, at the times that they get.
fn in_time<K: Key, T: Data>(
    batch: AnyBatch,
    lateness: Lateness,
    mut on_late: impl FnMut(T, EventTime, RowKind),
) -> Result<(Staged<K>, Vec<T>), OpError> {
    let (mut heads, mut rows, mut kinds) = batch.take::<KeyedBatch<K, T>>()?.into_parts();
    let came = heads.len();
    if heads.iter().any(|head| lateness.late_before.is_late(head.time)) {
        let mut kept = KeyedBatch::default();
        for (index, (Head { key, hash, time }, row)) in heads.into_iter().zip(rows).enumerate() {
            match lateness.late_before.is_late(time) {
                true => on_late(row, time, kinds.at(index)),
                false => kept.push(KeyedRow { key, hash, time, row }, kinds.at(index)),
            }
        }
        (heads, rows, kinds) = kept.into_parts();
    }
    if lateness.moves() {
        heads.iter_mut().for_each(|head| head.time = lateness.moved(head.time));
    }
    let late = (came - heads.len()) as u64;
    Ok((Staged { heads, kinds, late }, rows))
}

/// As [`stage`], for the changes of a table. What a delete says of the row that went is not needed here.
///
/// # Errors
/// If the batch is of another type.
pub fn stage_table<K: Key, T: Data>(
    waiting: &mut Waiting<T>,
    batch: AnyBatch,
    not_before: EventTime,
) -> Result<(Staged<K>, Vec<(usize, EventTime)>), OpError> {
    let TableBatch { rows, truncations } = batch.take::<TableBatch<K, T>>()?;
    let mut staged = Staged { heads: Vec::with_capacity(rows.len()), kinds: Kinds::AllInsert, late: 0 };
    let mut wait = Vec::with_capacity(rows.len());
    for KeyedRow { key, hash, time, row } in rows {
        let kind = match row {
            RowChange::Put(row) => {
                wait.push(row);
                table_change::PUT
            }
            RowChange::Delete(_) => table_change::DELETE,
        };
        staged.kinds.push(kind, staged.heads.len());
        staged.heads.push(Head { key, hash, time: time.max(not_before).min(EventTime::LAST) });
    }
    *waiting = wait.into_iter();
    Ok((staged, truncations))
}

/// The rows of a batch that have no place yet, in order.
pub type Waiting<T> = std::vec::IntoIter<T>;

/// Rows whose places are asked for ahead of use.
const AHEAD: usize = 12;

/// The rows of one input: in a slab of its own, and in a field of the slots that all inputs share.
pub struct Shelf<'a, T, S, F> {
    slab: &'a mut Slab<T>,
    slots: &'a mut Slots<S>,
    // The field of this input.
    field: F,
    // How many rows stand in slots.
    in_slots: &'a mut usize,
}

impl<'a, T, S: Default, F: Fn(&mut S) -> &mut Option<Held<T>>> Shelf<'a, T, S, F> {
    /// The rows in a slab and in a field of slots, of which so many are there.
    pub fn new(slab: &'a mut Slab<T>, slots: &'a mut Slots<S>, field: F, in_slots: &'a mut usize) -> Self {
        Shelf { slab, slots, field, in_slots }
    }

    /// Gives the next rows that wait their places.
    ///
    /// # Errors
    /// If the slab is full.
    #[inline]
    pub fn settle(
        &mut self,
        waiting: &mut Waiting<T>,
        rows: &mut [Located],
        Placing { side_by_side, changes_of_table }: Placing,
    ) -> Result<(), OpError> {
        if side_by_side {
            rows.iter().take(AHEAD).for_each(|row| self.prefetch(row));
        }
        for index in 0..rows.len() {
            if side_by_side && let Some(row) = rows.get(index + AHEAD) {
                self.prefetch(row);
            }
            let row = &mut rows[index];
            let Located { time, place, kind, .. } = *row;
            if changes_of_table && kind != table_change::PUT {
                continue;
            }
            let Some(held) = waiting.next() else { break };
            row.id = match place.filter(|_| side_by_side && kind.adds()) {
                Some(place) => self.put(place.number(), held, time)?,
                None => self.slab.insert(held, time)?,
            };
        }
        Ok(())
    }

    // Asks for the place of a row, or of all rows of its key where they will come out together.
    #[inline]
    fn prefetch(&mut self, row: &Located) {
        if let Some(place) = row.place
            && let Some(slot) = self.slots.get_mut(place.number())
        {
            if row.comes_out {
                prefetch_all(slot);
            } else {
                prefetch((self.field)(slot));
            }
        }
    }

    /// Takes a row in: into the slot of this number, if there is one and it has room, else into the slab.
    ///
    /// # Errors
    /// If the slab is full.
    pub fn take_in(&mut self, row: T, time: EventTime, slot: Option<u32>) -> Result<RowId, OpError> {
        match slot {
            Some(slot) => self.put(slot, row, time),
            None => self.slab.insert(row, time),
        }
    }

    #[inline]
    fn put(&mut self, slot: u32, row: T, time: EventTime) -> Result<RowId, OpError> {
        let field = (self.field)(self.slots.reach(slot));
        if field.is_some() {
            return self.slab.insert(row, time);
        }
        *field = Some(Held::new(row, time));
        *self.in_slots += 1;
        Ok(RowId::in_slot(slot))
    }

    /// Takes a row out; its id may be given to another row.
    pub fn remove(&mut self, id: RowId) -> Option<Held<T>> {
        let Some(slot) = id.slot() else { return self.slab.remove(id) };
        let held = (self.field)(self.slots.get_mut(slot)?).take();
        *self.in_slots -= usize::from(held.is_some());
        held
    }

    /// Drops a row that is held; its id may be given to another row.
    #[inline]
    pub fn discard(&mut self, id: RowId) {
        match id.slot() {
            Some(_) => drop(self.remove(id)),
            None => self.slab.discard(id),
        }
    }
}

/// Finds a row of an input in its slab or its field of the slots.
#[inline]
pub fn held<'a, T, S: Default>(
    slab: &'a Slab<T>,
    slots: &'a Slots<S>,
    field: impl FnOnce(&'a S) -> &'a Option<Held<T>>,
    id: RowId,
) -> Option<&'a Held<T>> {
    match id.slot() {
        Some(slot) => slots.get(slot).and_then(|slot| field(slot).as_ref()),
        None => slab.get(id),
    }
}

/// Asks the processor for a row of an input, which will be needed soon.
#[inline]
pub fn prefetch_row<'a, T, S: Default>(
    slab: &Slab<T>,
    slots: &'a Slots<S>,
    field: impl FnOnce(&'a S) -> &'a Option<Held<T>>,
    id: RowId,
) where
    T: 'a,
{
    match id.slot() {
        Some(slot) => slots.get(slot).map(field).into_iter().for_each(prefetch),
        None => slab.prefetch(id),
    }
}

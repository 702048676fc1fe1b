//! What a batch changes in the visible rows.

use crate::account::Account;
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::change::RowKind;
use crate::key::Key;
use crate::op::{Outbox, Port};
use crate::record::Data;
use crate::state::{Equality, Place};
use crate::time::EventTime;

/// The keys that have been touched since the last changes were sent, in that order, each with what was visible before.
pub struct Touched<T> {
    keys: Vec<Change<T>>,
    equality: Equality,
    /// Rows sent so far.
    pub emitted: u64,
}

struct Change<T> {
    place: Place,
    hash: u64,
    time: EventTime,
    before: Before<T>,
}

enum Before<T> {
    // Nothing has changed, so what was visible still is.
    AsNow,
    Was(Option<T>),
}

impl<T> Default for Touched<T> {
    fn default() -> Self {
        Touched { keys: Vec::new(), equality: Equality::default(), emitted: 0 }
    }
}

impl<T: Data> Touched<T> {
    /// Notes a key that is touched for the first time; returns its number, from 1.
    pub fn first(&mut self, place: Place, hash: u64) -> u32 {
        self.keys.push(Change { place, hash, time: EventTime::MIN, before: Before::AsNow });
        self.keys.len() as u32
    }

    /// Where the keys are that are touched.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.keys.iter().map(|touched| touched.place)
    }

    /// Notes the time of a change of the key of this number.
    #[inline]
    pub fn at(&mut self, number: u32, time: EventTime) {
        let touched = &mut self.keys[number as usize - 1];
        touched.time = touched.time.max(time);
    }

    /// Notes that what was visible under the key of this number is no more. Only the first time counts.
    #[inline]
    pub fn was(&mut self, number: u32, row: Option<T>) {
        let before = &mut self.keys[number as usize - 1].before;
        if matches!(before, Before::AsNow) {
            *before = Before::Was(row);
        }
    }

    /// Whether so many keys have been touched that what has changed should be sent. Keys beyond that would no longer
    /// be near when they are looked at again.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.keys.len() >= KEYS_MAX
    }

    /// Sends what has changed, given the key at a place and what is visible under it now; no key is touched after that.
    pub fn send<'a, K: Key>(&mut self, mut now: impl FnMut(Place) -> (K, Option<&'a T>), out: &mut Outbox) {
        let updates = self.keys.iter().filter(|key| matches!(key.before, Before::Was(Some(_)))).count();
        let mut batch = KeyedBatch::default();
        batch.reserve(self.keys.len() + updates);
        for Change { place, hash, time, before } in self.keys.drain(..) {
            let (key, after) = now(place);
            let mut push = |key, row, kind| batch.push(KeyedRow { key, hash, time, row }, kind);
            match (before, after) {
                (Before::AsNow, _) | (Before::Was(None), None) => {}
                (Before::Was(None), Some(row)) => push(key, row.clone(), RowKind::Insert),
                (Before::Was(Some(row)), None) => push(key, row, RowKind::Delete),
                (Before::Was(Some(old)), Some(new)) if self.equality.holds(&old, new) => {}
                (Before::Was(Some(old)), Some(new)) => {
                    push(key.clone(), old, RowKind::UpdateBefore);
                    push(key, new.clone(), RowKind::UpdateAfter);
                }
            }
        }
        self.emitted += batch.len() as u64;
        out.send(Port::MAIN, AnyBatch::new(batch));
    }
}

/// The account of one input that goes through.
#[derive(Default)]
pub struct Through(pub Account);

impl Through {
    /// A change was taken in.
    pub fn taken(&mut self) {
        self.0.rows += 1;
        self.0.matched += 1;
    }

    /// A change of what is not there.
    pub fn orphan(&mut self) {
        self.0.rows += 1;
        self.0.orphan += 1;
    }

    /// A change that could not be made.
    pub fn bad(&mut self) {
        self.0.rows += 1;
        self.0.bad += 1;
    }
}

/// Keys whose changes are folded together. Their entries and rows fit the second-level cache, so that sending them
/// costs no second trip to memory.
const KEYS_MAX: usize = 512;

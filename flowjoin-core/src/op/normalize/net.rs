//! What a batch changes in the visible rows.

use crate::account::Account;
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::change::RowKind;
use crate::key::Key;
use crate::op::{Outbox, Port};
use crate::record::Data;
use crate::state::Equality;
use crate::time::EventTime;

/// The keys that a batch has touched, in the order in which it did, each with what was visible before.
pub struct Touched<K, T> {
    keys: Vec<Change<K, T>>,
    equality: Equality,
    /// Rows sent so far.
    pub emitted: u64,
}

struct Change<K, T> {
    key: K,
    hash: u64,
    time: EventTime,
    before: Option<T>,
}

impl<K, T> Default for Touched<K, T> {
    fn default() -> Self {
        Touched { keys: Vec::new(), equality: Equality::default(), emitted: 0 }
    }
}

impl<K: Key, T: Data> Touched<K, T> {
    /// Notes a key that is touched for the first time, with what is visible; returns its number, from 1.
    pub fn first(&mut self, key: K, hash: u64, before: Option<T>) -> u32 {
        self.keys.push(Change { key, hash, time: EventTime::MIN, before });
        self.keys.len() as u32
    }

    /// The keys that are touched.
    pub fn keys(&self) -> impl Iterator<Item = (&K, u64)> {
        self.keys.iter().map(|touched| (&touched.key, touched.hash))
    }

    /// Notes the time of a change of the key of this number.
    pub fn at(&mut self, number: u32, time: EventTime) {
        let touched = &mut self.keys[number as usize - 1];
        touched.time = touched.time.max(time);
    }

    /// Sends what has changed, given what is visible now; no key is touched after that.
    pub fn send(&mut self, mut now: impl FnMut(&K, u64) -> Option<T>, out: &mut Outbox) {
        let mut batch = KeyedBatch::default();
        for Change { key, hash, time, before } in self.keys.drain(..) {
            let after = now(&key, hash);
            let mut push = |key, row, kind| batch.push(KeyedRow { key, hash, time, row }, kind);
            match (before, after) {
                (None, None) => {}
                (None, Some(row)) => push(key, row, RowKind::Insert),
                (Some(row), None) => push(key, row, RowKind::Delete),
                (Some(old), Some(new)) if self.equality.holds(&old, &new) => {}
                (Some(old), Some(new)) => {
                    push(key.clone(), old, RowKind::UpdateBefore);
                    push(key, new, RowKind::UpdateAfter);
                }
            }
        }
        self.emitted += batch.rows.len() as u64;
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

    /// A change without a key.
    pub fn null_key(&mut self) {
        self.0.rows += 1;
        self.0.null_key += 1;
    }

    /// A change that could not be made.
    pub fn bad(&mut self) {
        self.0.rows += 1;
        self.0.bad += 1;
    }
}

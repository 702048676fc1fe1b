//! A stream whose rows are keyed, ready to be joined.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::flow::{NewNode, Output};
use super::input::{JoinsOn, Optional};
use super::interval::{IntervalJoin, interval_join};
use super::mode::{Append, AppendOnly, Mode};
use super::multi::{MultiJoin, multi_join};
use super::owed::{NeedsBounds, NeedsTtl};
use crate::key::Key;
use crate::op::key_by::KeyBy;
use crate::plan::{Build, Op, PortInfo};
use crate::record::Data;
use crate::state::Ttl;

/// Rows of type `T` by a key of type `K`: rows of one key meet in one task.
pub struct KeyedStream<K, T, M = Append> {
    pub(super) out: Output,
    pub(super) ttl: Option<Ttl>,
    #[allow(clippy::type_complexity)]
    rows: PhantomData<fn() -> (K, T, M)>,
}

impl<K, T, M> Clone for KeyedStream<K, T, M> {
    fn clone(&self) -> Self {
        KeyedStream { out: self.out.clone(), ttl: self.ttl, rows: PhantomData }
    }
}

impl<K: Key, T: Data, M: Mode> KeyedStream<K, T, M> {
    pub(super) fn by(
        from: Output,
        label: String,
        key: Arc<dyn Fn(&T) -> K + Send + Sync>,
        place: &'static Location<'static>,
    ) -> Self {
        let flow = from.flow.clone();
        let out = flow.add(NewNode {
            name: "key_by".to_string(),
            op: Op::KeyBy { key: label },
            inputs: &[from],
            ports: vec![PortInfo::main(M::MODE)],
            build: Build::Operator(Arc::new(move |cx| {
                Box::new(KeyBy::<K, T>::new(key.clone(), cx.batching, cx.task, cx.tasks))
            })),
            place,
        });
        KeyedStream { out, ttl: None, rows: PhantomData }
    }

    /// In a join, a row of the other inputs need not find one here: it then comes out with `None` for this input.
    ///
    /// LEFT is an optional right side, RIGHT an optional left side, FULL both.
    pub fn optional(self) -> Optional<Self> {
        Optional(self)
    }

    /// In a join, rows of this input are kept so long, whatever the join says for the others.
    #[track_caller]
    pub fn ttl(mut self, ttl: impl Into<Ttl>) -> Self {
        self.ttl = Some(super::owed::checked(ttl.into(), &self.out, Location::caller()));
        self
    }

    /// In a join, rows of this input are kept for ever.
    pub fn keep_forever(mut self) -> Self {
        self.ttl = Some(Ttl::Forever);
        self
    }

    /// Joins two streams on their key, as SQL does: every pair of rows of one key that are held at the same time.
    #[track_caller]
    pub fn join<R: JoinsOn<K>>(self, right: R) -> NeedsTtl<MultiJoin<(Self, R)>> {
        multi_join(self).and(right)
    }

    /// Joins two streams on their key and on the time between their rows.
    #[track_caller]
    pub fn interval_join<R>(self, right: R) -> NeedsBounds<IntervalJoin<Self, R>>
    where
        M: AppendOnly,
        R: JoinsOn<K>,
        R::Mode: AppendOnly,
    {
        interval_join(self, right, Location::caller())
    }
}

impl<K: Key, T: Data, M: Mode> Optional<KeyedStream<K, T, M>> {
    /// As [`KeyedStream::join`].
    #[track_caller]
    pub fn join<R: JoinsOn<K>>(self, right: R) -> NeedsTtl<MultiJoin<(Self, R)>> {
        multi_join(self).and(right)
    }

    /// As [`KeyedStream::interval_join`].
    #[track_caller]
    pub fn interval_join<R>(self, right: R) -> NeedsBounds<IntervalJoin<Self, R>>
    where
        M: AppendOnly,
        R: JoinsOn<K>,
        R::Mode: AppendOnly,
    {
        interval_join(self, right, Location::caller())
    }

    /// As [`KeyedStream::ttl`].
    #[track_caller]
    pub fn ttl(self, ttl: impl Into<Ttl>) -> Self {
        Optional(self.0.ttl(ttl))
    }

    /// As [`KeyedStream::keep_forever`].
    pub fn keep_forever(self) -> Self {
        Optional(self.0.keep_forever())
    }
}

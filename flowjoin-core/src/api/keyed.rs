//! A stream whose rows are keyed, ready to be joined.

use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::exists::{Exists, NotExists};
use super::flow::{KeyMark, NewNode, Output, Standing};
use super::input::{JoinsOn, MaybeOptional, Optional};
use super::interval::{IntervalJoin, interval_join};
use super::mode::{Append, AppendOnly, Changelog, Mode};
use super::multi::{MultiJoin, multi_join};
use super::owed::{NeedsBounds, NeedsTtl, NeedsWindow};
use super::policy::{GapPolicy, GapsClose, Usual};
use super::snapshot::{SnapshotJoin, snapshot_join};
use super::stream::function_name;
use super::temporal::{TemporalJoin, Versioned, temporal_join};
use crate::io::by_key::differs;
use crate::key::Key;
use crate::op::joined::Identity;
use crate::op::key_by::{KeyBy, KeyOf};
use crate::plan::{Build, ChangeMode, Op, PortInfo};
use crate::record::Data;
use crate::state::{TimeToLive, Ttl};

/// Rows of type `T` by a key of type `K`: rows of one key meet in one task.
pub struct KeyedStream<K, T, M = Append> {
    pub(super) out: Output,
    pub(super) ttl: Option<Ttl>,
    pub(super) key: KeyOf<K, T>,
    unique: Option<Unique<T>>,
    #[allow(clippy::type_complexity)]
    rows: PhantomData<fn() -> (K, T, M)>,
}

/// The unique key that rows have besides the key that they are joined on.
pub(super) struct Unique<T> {
    pub(super) same: Identity<T>,
    // For explain; a closure has no name to tell.
    pub(super) name: String,
    // Whether it is the key that the rows are joined on, so that there is at most one row a key.
    pub(super) whole: bool,
}

impl<T> Clone for Unique<T> {
    fn clone(&self) -> Self {
        Unique { same: self.same.clone(), name: self.name.clone(), whole: self.whole }
    }
}

impl<K, T, M> Clone for KeyedStream<K, T, M> {
    fn clone(&self) -> Self {
        let (out, key, unique) = (self.out.clone(), self.key.clone(), self.unique.clone());
        KeyedStream { out, ttl: self.ttl, key, unique, rows: PhantomData }
    }
}

impl<K: Key, T: Data, M: Mode> KeyedStream<K, T, M> {
    pub(super) fn by(from: Output, label: String, key: KeyOf<K, T>, place: &'static Location<'static>) -> Self {
        let flow = from.flow.clone();
        // Changes of one key that come by another key come from several tasks: what is taken back may come after what
        // replaces it.
        let keyed = KeyMark::of::<K>(&label, Standing::Newest).and_then(|mark| match M::MODE {
            ChangeMode::Append => Some(mark),
            ChangeMode::Changelog => from.keyed.clone().filter(|before| before.is(mark.of, &mark.name)),
        });
        if let Some(claims) = keyed.as_ref().and_then(|mark| mark.claims.as_ref()) {
            let key = key.clone();
            let by = "`key_by` takes the changes of each key to be in the order of the join; give the field another name, or key \
                      the rows by a closure, `.key_by(|row| ..)`, of which nothing is taken for granted";
            claims.add(by, move |made, joined_on| differs(&key(made.downcast_ref::<T>()?), joined_on));
        }
        let by = key.clone();
        let out = flow.add(NewNode {
            name: "key_by".to_string(),
            op: Op::KeyBy { key: label },
            inputs: &[from],
            ports: vec![PortInfo::main(M::MODE)],
            build: Build::Operator(Arc::new(move |cx| {
                Box::new(KeyBy::<K, T>::exchange(by.clone(), cx.batching, cx.task, cx.tasks))
            })),
            place,
        });
        KeyedStream::arranged(Output { keyed, ..out }, key, None)
    }

    /// Rows that are keyed already: batches of keyed rows come out of this step, each in the task that owns its key.
    pub(super) fn arranged(out: Output, key: KeyOf<K, T>, unique: Option<Unique<T>>) -> Self {
        KeyedStream { out, ttl: None, key, unique, rows: PhantomData }
    }

    pub(super) fn unique(mut self, unique: Unique<T>) -> Self {
        self.unique = Some(unique);
        self
    }

    /// The unique key of the rows, if they have one.
    pub(super) fn unique_key(&self) -> Option<&Unique<T>> {
        self.unique.as_ref()
    }

    /// In a join, a row of the other inputs need not find one here: it then comes out with `None` for this input.
    ///
    /// LEFT is an optional right side, RIGHT an optional left side, FULL both.
    pub fn optional(self) -> Optional<Self> {
        Optional { input: self, policy: Usual }
    }

    /// As [`optional`](Self::optional) if the flag is set, and else required; `select` gets an `Option` either way.
    ///
    /// For programs that are put together while they run; the result counts as a changelog in both cases.
    pub fn optional_if(self, optional: bool) -> MaybeOptional<Self> {
        MaybeOptional { input: self, optional }
    }

    /// In a join, rows of this input are kept so long, whatever the join says for the others.
    #[track_caller]
    pub fn ttl(mut self, ttl: impl TimeToLive) -> Self {
        self.ttl = Some(super::owed::checked(ttl.to_ttl(), &self.out, Location::caller()));
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

    /// The rows whose key some row of the other input has, each once: `EXISTS`, a semi join.
    #[track_caller]
    pub fn where_exists<R: JoinsOn<K>>(self, right: R) -> NeedsTtl<MultiJoin<(Self, Exists<R>)>> {
        multi_join(self).and_test(Exists(right))
    }

    /// The rows whose key no row of the other input has: `NOT EXISTS`, an anti join. A row with a null key is one.
    #[track_caller]
    pub fn where_not_exists<R: JoinsOn<K>>(self, right: R) -> NeedsTtl<MultiJoin<(Self, NotExists<R>)>> {
        multi_join(self).and_test(NotExists(right))
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

    /// Joins each row with the row that a table had for its key at its time: the version that held then. The table is one
    /// of changes with event times, by [`Flow::table`](super::Flow::table) or `latest_by_key`.
    ///
    /// A row waits until all versions up to its time have come, by the watermark.
    #[track_caller]
    pub fn temporal_join<R: Versioned<K>>(self, table: R) -> TemporalJoin<Self, R::Versions>
    where
        M: AppendOnly,
    {
        temporal_join(self, table, Location::caller())
    }

    /// Joins each row with the row that a table has for its key when it arrives, whatever becomes of that later.
    #[track_caller]
    pub fn snapshot_join<R: JoinsOn<K>>(self, table: R) -> SnapshotJoin<Self, R>
    where
        M: AppendOnly,
    {
        snapshot_join(self, table, Location::caller())
    }

    /// Joins two streams on their key and on the window of event time that their rows are in. It is short for
    /// [`join`](Self::join) with windows.
    #[track_caller]
    pub fn window_join<R>(self, right: R) -> NeedsWindow<MultiJoin<(Self, R)>>
    where
        M: AppendOnly,
        R: JoinsOn<K>,
        R::Mode: AppendOnly,
    {
        NeedsWindow(multi_join(self).and(right).0)
    }
}

impl<K: Key, T: Data> KeyedStream<K, T, Changelog> {
    /// Says that rows of one key have a unique key besides: of those with the same, one stands. An insert or update
    /// replaces the row with its unique key, wherever its other fields differ; a delete takes that row back, whatever
    /// its other fields are. Rows out of a [`Table`](super::Table) have theirs without this.
    ///
    /// Without a unique key, rows are a bag: each copy counts, and a row is taken back by an equal one. So they have to
    /// be where the changes of a unique key do not come in order, as after a join on another key: there the old row may
    /// be taken back after the new one has come, which would then be gone.
    ///
    /// Rows are found by a hash of their unique key, whatever the number of rows of their key.
    pub fn unique_by<U: Hash + Eq, F: Fn(&T) -> U + Send + Sync + 'static>(self, unique: F) -> Self {
        let name = function_name::<F>();
        self.unique(Unique { same: Identity::by(unique), name, whole: false })
    }
}

impl<K: Key, T: Data, M: Mode, P: GapPolicy> Optional<KeyedStream<K, T, M>, P> {
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

    /// As [`KeyedStream::window_join`].
    #[track_caller]
    pub fn window_join<R>(self, right: R) -> NeedsWindow<MultiJoin<(Self, R)>>
    where
        M: AppendOnly,
        R: JoinsOn<K>,
        R::Mode: AppendOnly,
    {
        NeedsWindow(multi_join(self).and(right).0)
    }
}

impl<K: Key, T: Data, M: Mode> Optional<KeyedStream<K, T, M>> {
    /// Says when its gap is told: [`Eager`](super::Eager) (as a regular join does without this),
    /// [`EagerAfter`](super::EagerAfter) a delay, or [`Final`](super::Final), when no row can fill it any more (as an
    /// interval join does without this). All inputs of the join have to be facts.
    pub fn emit<P: GapPolicy>(self, policy: P) -> Optional<KeyedStream<K, T, M>, P>
    where
        M: GapsClose,
    {
        Optional { input: self.input, policy }
    }
}

impl<K: Key, T: Data, M: Mode, P: GapPolicy> Optional<KeyedStream<K, T, M>, P> {
    /// As [`KeyedStream::join`].
    #[track_caller]
    pub fn join<R: JoinsOn<K>>(self, right: R) -> NeedsTtl<MultiJoin<(Self, R)>> {
        multi_join(self).and(right)
    }

    /// As [`KeyedStream::ttl`].
    #[track_caller]
    pub fn ttl(self, ttl: impl TimeToLive) -> Self {
        Optional { input: self.input.ttl(ttl), ..self }
    }

    /// As [`KeyedStream::keep_forever`].
    pub fn keep_forever(self) -> Self {
        Optional { input: self.input.keep_forever(), ..self }
    }
}

impl<K: Key, T: Data, M: Mode> MaybeOptional<KeyedStream<K, T, M>> {
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

    /// As [`KeyedStream::window_join`].
    #[track_caller]
    pub fn window_join<R>(self, right: R) -> NeedsWindow<MultiJoin<(Self, R)>>
    where
        M: AppendOnly,
        R: JoinsOn<K>,
        R::Mode: AppendOnly,
    {
        NeedsWindow(multi_join(self).and(right).0)
    }
}

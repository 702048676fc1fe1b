//! Tables: the latest row of each key, out of changes.
//!
//! ```text
//!   upsert files, Debezium   flow.table::<User>(source)   ─┐
//!   facts                    stream.latest_by_key()        ├─▶  Table<K, T>: at most one row a key, at every instant
//!   a changelog, keyed anew  changelog.to_table()         ─┘
//! ```
//!
//! Whatever comes in, what goes out is a legal changelog: `+I` for a new key, `-U +U` for a row that became another,
//! `-D` for one that went; nothing for a row that came again as it was. Changes of one key within one batch are folded,
//! unless some hundreds of other keys change in between.

use std::cmp::Ordering;
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::exists::{Exists, NotExists};
use super::flow::{Flow, KeyMark, NewNode, Output, Standing};
use super::input::{Input, JoinInput, JoinsOn, Optional};
use super::keyed::{KeyedStream, Unique};
use super::mode::{Accepts, Append, Changelog};
use super::multi::MultiJoin;
use super::owed::NeedsTtl;
use super::stream::Stream;
use crate::batch::{AnyBatch, Batch};
use crate::io::erased::erase_table;
use crate::io::{ByKey, Sink, TableSource, WholeChange, changes};
use crate::key::Key;
use crate::op::Port;
use crate::op::chain::{Apply, BatchFn};
use crate::op::deal_changes::DealChanges;
use crate::op::joined::Identity;
use crate::op::key_by::KeyBy;
use crate::op::normalize::{Conflict, History, Replace, Settled, Told, Versions};
use crate::plan::{Build, ChangeMode, Op, PortInfo};
use crate::record::{Data, Event, Keyed};
use crate::state::{Keeps, StateShape, StateSpec};

/// At most one row of type `T` for each key of type `K`, and how that changes.
///
/// It is an input of a regular join as it is, on its key; [`key_by`](Table::key_by) arranges it by another. The newest
/// row of each key is kept for as long as it stands.
pub struct Table<K, T> {
    pub(super) out: Output,
    versions: Order<T>,
    rows: PhantomData<fn() -> (K, T)>,
}

// Filled in by `ordered_by` after the operator has its place in the plan, and read when it is built.
type Order<T> = Arc<Mutex<Option<Versions<T>>>>;

impl<K, T> Clone for Table<K, T> {
    fn clone(&self) -> Self {
        Table { out: self.out.clone(), versions: self.versions.clone(), rows: PhantomData }
    }
}

impl Flow {
    /// Opens a source of changes as a table. Its key is that of the row's [`Keyed`], its event time that of [`Event`].
    ///
    /// The changes need not be well-formed: a row that is put twice, updated though it was never there, or deleted twice
    /// changes the table as far as it can be changed; a delete of what is not there is counted as an orphan.
    #[track_caller]
    pub fn table<T: Event + Keyed>(&self, source: impl TableSource<T>) -> Table<T::Key, T> {
        let place = Location::caller();
        let told = if source.tells_whole_rows() { Told::WholeRows } else { Told::Anything };
        let completes = source.tells_patches();
        let versions: Order<T> = Arc::default();
        let order = versions.clone();
        let source = erase_table::<T>(source, move || newest_of(&order));
        let name = source.endpoint().name;
        let output = self.add(NewNode {
            name: name.clone(),
            op: Op::Source,
            inputs: &[],
            ports: vec![PortInfo::main(ChangeMode::Changelog)],
            build: Build::Source(source),
            place,
        });
        if completes {
            let state = StateSpec { input: name.clone(), shape: StateShape::Rows, keeps: Keeps::Standing };
            self.keeps(output.from, vec![state]);
        }
        Table::of_changes(Output { label: name, ..output }, told, versions, place)
    }
}

fn newest_of<T>(order: &Order<T>) -> Option<Versions<T>> {
    order.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl<T: Keyed> Table<T::Key, T> {
    // Reads batches of `WholeChange<T>`.
    fn of_changes(changes: Output, told: Told, versions: Order<T>, place: &'static Location<'static>) -> Self {
        let keyed = exchange(changes, T::key_name().to_string(), place, |cx| {
            Box::new(DealChanges::<T>::exchange(cx.batching, cx.tasks))
        });
        let (name, order) = (keyed.label.clone(), versions.clone());
        let whole_rows = told == Told::WholeRows;
        let build =
            Build::Operator(Arc::new(move |_| Box::new(Replace::<T>::new(name.clone(), newest_of(&order), told))));
        let versions_port = PortInfo { label: "versions".to_string(), mode: ChangeMode::Changelog };
        let ports = vec![PortInfo::main(ChangeMode::Changelog), versions_port];
        // A join that held the table would have no place for the row of the key null, which matches nothing there.
        let plain = !T::Key::may_be_null();
        let op = Op::Table { key: T::key_name().to_string(), plain, whole_rows };
        let table = normalized(keyed, (op, ports), StateShape::Rows, build, place);
        Table { out: table, versions, rows: PhantomData }
    }

    /// Says which of two rows of a key is newer: the one with the greater version, whatever came first. An older row never
    /// wins, also after a delete; so a row that was deleted is remembered. Of equal versions the change that comes later
    /// wins, be it a row or a delete.
    ///
    /// A delete has the version of the row that it tells, where it tells one: a change `-D` with all columns, an event of
    /// Debezium with all of `before`. One that is older than the row that stands deletes nothing. A delete of a key
    /// alone has the version of the row that stands.
    pub fn ordered_by<V: Ord, F: Fn(&T) -> V + Send + Sync + 'static>(self, version: F) -> Self {
        let compare: Versions<T> = Arc::new(move |a, b| -> Ordering { version(a).cmp(&version(b)) });
        *self.versions.lock().unwrap_or_else(PoisonError::into_inner) = Some(compare);
        self.out.flow.is_no_plain_table(self.out.from);
        self
    }

    /// The table as a keyed stream: an input of joins, with a time-to-live of its own if that is wanted.
    pub fn keyed(&self) -> KeyedStream<T::Key, T, Changelog> {
        let keyed = KeyMark::of::<T::Key>(T::key_name(), Standing::One);
        KeyedStream::arranged(Output { keyed, ..self.out.clone() }, Arc::new(T::key), Some(unique::<T>(true)))
    }

    /// Arranges the rows by another key, of which many may have the same: orders by the user who placed them. An update
    /// that changes that key takes the row from one and gives it to the other.
    #[track_caller]
    pub fn key_by<K: Key, F: Fn(&T) -> K + Send + Sync + 'static>(&self, key: F) -> KeyedStream<K, T, Changelog> {
        self.at_place(Location::caller()).key_by(key).unique(unique::<T>(false))
    }

    /// In a join on its key, the table need not have a row: it then comes out with `None` for it.
    pub fn optional(&self) -> Optional<KeyedStream<T::Key, T, Changelog>> {
        self.keyed().optional()
    }

    /// Joins the table with another input on its key, as [`KeyedStream::join`].
    #[track_caller]
    pub fn join<R: JoinsOn<T::Key>>(&self, right: R) -> NeedsTtl<MultiJoin<(KeyedStream<T::Key, T, Changelog>, R)>> {
        self.keyed().join(right)
    }

    /// The rows whose key some row of the other input has, as [`KeyedStream::where_exists`].
    #[track_caller]
    pub fn where_exists<R: JoinsOn<T::Key>>(
        &self,
        right: R,
    ) -> NeedsTtl<MultiJoin<(KeyedStream<T::Key, T, Changelog>, Exists<R>)>> {
        self.keyed().where_exists(right)
    }

    /// The rows whose key no row of the other input has, as [`KeyedStream::where_not_exists`].
    #[track_caller]
    pub fn where_not_exists<R: JoinsOn<T::Key>>(
        &self,
        right: R,
    ) -> NeedsTtl<MultiJoin<(KeyedStream<T::Key, T, Changelog>, NotExists<R>)>> {
        self.keyed().where_not_exists(right)
    }

    /// The changes of the table, as a stream: `+I`, `-U` and `+U` side by side, `-D`.
    #[track_caller]
    pub fn changes(&self) -> Stream<T, Changelog> {
        self.at_place(Location::caller())
    }

    /// Makes a row of each row, as [`Stream::map`].
    #[track_caller]
    pub fn map<O: Data, F: Fn(T) -> O + Send + Sync + 'static>(&self, f: F) -> Stream<O, Changelog> {
        self.at_place(Location::caller()).map(f)
    }

    /// Keeps the rows that the test holds for, as [`Stream::filter`].
    #[track_caller]
    pub fn filter<F: Fn(&T) -> bool + Send + Sync + 'static>(&self, f: F) -> Stream<T, Changelog> {
        self.at_place(Location::caller()).filter(f)
    }

    /// Sends the changes of the table to a sink.
    #[track_caller]
    pub fn sink_to<S: Sink<T>>(&self, sink: S)
    where
        S::Takes: Accepts<Changelog>,
    {
        self.at_place(Location::caller()).co_keyed().sink_to(sink);
    }

    /// Names the table: the identity of its state and its figures.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.out.flow.rename(self.out.from, name.clone());
        self.out.label = name;
        self
    }

    fn at_place(&self, place: &'static Location<'static>) -> Stream<T, Changelog> {
        Stream::at(apply(self.out.clone(), "changes", Arc::new(changes::<T::Key, T>), place))
    }
}

impl<T: Data> Stream<T, Append> {
    /// The newest row of each key, as a table: each fact replaces the one before with its key.
    #[track_caller]
    pub fn latest_by_key<K: Key>(self) -> Table<K, T>
    where
        T: Keyed<Key = K>,
    {
        let place = Location::caller();
        let function: Arc<BatchFn> = Arc::new(|batch: AnyBatch| {
            let (rows, times, _) = batch.take::<Batch<T>>()?.into_parts();
            let puts = rows.into_iter().map(WholeChange::Put).collect();
            Ok(AnyBatch::new(Batch::from_rows(puts, times)))
        });
        let changes = apply(self.out, "latest_by_key", function, place);
        Table::of_changes(changes, Told::WholeRows, Arc::default(), place)
    }
}

impl<T: Data> Stream<T, Changelog> {
    /// The changelog as a table: of the rows that stand under a key the newest counts, and when that is taken back, the
    /// one before does again. So it does not matter in which order the changes of different rows of a key arrive, as
    /// when an upstream key gives its row to another. All standing rows are kept.
    #[track_caller]
    pub fn to_table<K: Key>(self) -> Table<K, T>
    where
        T: Keyed<Key = K>,
    {
        Table::of_history(self, None, Location::caller())
    }

    /// As [`to_table`](Self::to_table), where rows have an upstream key of their own: a row replaces, in its place, the
    /// one with the same upstream key, and is taken back whatever its other fields are.
    #[track_caller]
    pub fn to_table_by<K: Key, U: Hash + Eq, F>(self, upstream: F) -> Table<K, T>
    where
        T: Keyed<Key = K>,
        F: Fn(&T) -> U + Send + Sync + 'static,
    {
        Table::of_history(self, Some(Identity::by(upstream)), Location::caller())
    }

    /// The changelog as a table as of the watermark: changes wait until it has passed them, are made in the order of
    /// their times, and give one net change a key. Disorder between upstream keys is never seen, at the price of waiting.
    /// Where two rows stand under a key then, it is for [`Conflict`] to say what counts.
    #[track_caller]
    pub fn to_settled_table(self, conflict: Conflict) -> Table<T::Key, T>
    where
        T: Keyed,
    {
        Table::of_settled(self, None, conflict, Location::caller())
    }

    /// As [`to_settled_table`](Self::to_settled_table), where rows have an upstream key of their own: a row replaces, in
    /// its place, the one with the same upstream key. It is taken back by an equal row alone. The changes of an upstream
    /// key are made in the order in which they come: one whose time goes back is made with the one before it.
    #[track_caller]
    pub fn to_settled_table_by<U, F>(self, upstream: F, conflict: Conflict) -> Table<T::Key, T>
    where
        T: Keyed,
        U: Hash + Eq,
        F: Fn(&T) -> U + Send + Sync + 'static,
    {
        Table::of_settled(self, Some(Identity::by(upstream)), conflict, Location::caller())
    }
}

impl<T: Keyed> Table<T::Key, T> {
    pub(super) fn of_history(
        changes: Stream<T, Changelog>,
        identity: Option<Identity<T>>,
        place: &'static Location<'static>,
    ) -> Self {
        let build = Build::Operator(Arc::new(move |_| Box::new(History::<T::Key, T>::new(identity.clone()))));
        Table::of_changelog(changes, build, place)
    }

    fn of_settled(
        changes: Stream<T, Changelog>,
        identity: Option<Identity<T>>,
        conflict: Conflict,
        place: &'static Location<'static>,
    ) -> Self {
        let build = Build::Operator(Arc::new(move |_| Box::new(Settled::<T::Key, T>::new(identity.clone(), conflict))));
        Table::of_changelog(changes, build, place)
    }

    fn of_changelog(changes: Stream<T, Changelog>, build: Build, place: &'static Location<'static>) -> Self {
        let key = T::key_name().to_string();
        let keyed = exchange(changes.out, key, place, |cx| {
            Box::new(KeyBy::<T::Key, T>::before_table(Arc::new(T::key), cx.batching, cx.tasks))
        });
        let table = normalized(keyed, folded(T::key_name()), StateShape::KeyedRows, build, place);
        Table { out: table, versions: Arc::default(), rows: PhantomData }
    }
}

/// Puts the changes of each key of a sink in order. The table for that has a name of its own: the stream may come from a
/// table, and go to several sinks.
pub(super) fn in_order<T: Data>(
    from: Output,
    by_key: &ByKey<T>,
    sink: &str,
    place: &'static Location<'static>,
) -> Output {
    let &ByKey { exchange: deal, table, changes, name, .. } = by_key;
    let mut keyed = exchange(from, name.to_string(), place, move |cx| deal(cx.batching, cx.tasks));
    keyed.label = format!("sink {sink}");
    let build = Build::Operator(Arc::new(move |_| table()));
    let table = normalized(keyed, folded(name), StateShape::KeyedRows, build, place);
    apply(table, "changes", Arc::new(changes), place)
}

fn unique<T: Keyed>(whole: bool) -> Unique<T> {
    Unique { same: Identity::by(T::key), name: T::key_name().to_string(), whole }
}

fn exchange(
    from: Output,
    key: String,
    place: &'static Location<'static>,
    build: impl Fn(&crate::plan::BuildCx) -> Box<dyn crate::op::Operator> + Send + Sync + 'static,
) -> Output {
    let flow = from.flow.clone();
    flow.add(NewNode {
        name: "key_by".to_string(),
        op: Op::KeyBy { key },
        inputs: &[from],
        ports: vec![PortInfo::main(ChangeMode::Changelog)],
        build: Build::Operator(Arc::new(build)),
        place,
    })
}

// A table whose changes are folded by key, so that its versions are not known one by one.
fn folded(key: &str) -> (Op, Vec<PortInfo>) {
    let op = Op::Table { key: key.to_string(), plain: false, whole_rows: false };
    (op, vec![PortInfo::main(ChangeMode::Changelog)])
}

fn normalized(
    from: Output,
    (op, ports): (Op, Vec<PortInfo>),
    shape: StateShape,
    build: Build,
    place: &'static Location<'static>,
) -> Output {
    let flow = from.flow.clone();
    let name = from.label.clone();
    let state = StateSpec { input: name.clone(), shape, keeps: Keeps::Standing };
    let node = flow.add(NewNode { name, op, inputs: &[from], ports, build, place });
    flow.keeps(node.from, vec![state]);
    Output { port: Port::MAIN, ..node }
}

fn apply(from: Output, verb: &'static str, function: Arc<BatchFn>, place: &'static Location<'static>) -> Output {
    let flow = from.flow.clone();
    flow.add(NewNode {
        name: verb.to_string(),
        op: Op::Apply { verb },
        inputs: &[from],
        ports: vec![PortInfo::main(ChangeMode::Changelog)],
        build: Build::Operator(Arc::new(move |_| Box::new(Apply::new(function.clone())))),
        place,
    })
}

impl<T: Keyed> JoinInput for Table<T::Key, T> {
    type Key = T::Key;
    type Row = T;
    type Mode = Changelog;
    type Padding = Changelog;
    type Ref<'a> = &'a T;
    type Owned = T;

    #[inline]
    fn view(row: Option<&T>) -> &T {
        KeyedStream::<T::Key, T, Changelog>::view(row)
    }

    fn own(view: &T) -> T {
        view.clone()
    }

    fn lower(self) -> Input {
        self.keyed().lower()
    }
}

impl<T: Keyed<Key = K>, K: Key> JoinsOn<K> for Table<K, T> {}

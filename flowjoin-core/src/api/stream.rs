//! A stream of rows, and what can be done with one without joining it.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::flow::{KeyMark, NewNode, Output, Standing};
use super::keyed::KeyedStream;
use super::mode::{Accepts, Append, Changelog, MergeMode, Mode};
use super::table::in_order;
use crate::batch::{AnyBatch, Batch, Kinds};
use crate::change::{Change, RowKind};
use crate::io::Sink;
use crate::io::erased::erase_sink;
use crate::key::{Key, NullSafe};
use crate::op::chain::{Apply, BatchFn, Pass};
use crate::plan::{Build, ChangeMode, Op, PortInfo};
use crate::record::{Data, Keyed};
use crate::state::Equality;

/// Rows of type `T`, each with an event time; facts ([`Append`]) unless it says [`Changelog`].
///
/// A clone is a second reader of the same rows, which are then cloned for it.
pub struct Stream<T, M = Append> {
    pub(super) out: Output,
    rows: PhantomData<fn() -> (T, M)>,
}

impl<T, M> Clone for Stream<T, M> {
    fn clone(&self) -> Self {
        Stream { out: self.out.clone(), rows: PhantomData }
    }
}

impl<T: Data, M: Mode> Stream<T, M> {
    pub(super) fn at(out: Output) -> Self {
        Stream { out, rows: PhantomData }
    }

    // The stream is known to be arranged by the key of the sink that it goes to.
    pub(super) fn co_keyed(mut self) -> Self
    where
        T: Keyed,
    {
        self.out.keyed = KeyMark::of::<T::Key>(T::key_name(), Standing::One);
        self
    }

    fn apply<O: Data>(
        self,
        verb: &'static str,
        place: &'static Location<'static>,
        f: impl Fn(T, &mut dyn FnMut(O)) + Send + Sync + 'static,
    ) -> Stream<O, M> {
        let function: Arc<BatchFn> = Arc::new(move |batch: AnyBatch| {
            let batch: Batch<T> = batch.take()?;
            let mut out = Batch::with_capacity(batch.len());
            match batch.kinds() {
                Kinds::AllInsert => {
                    for Change { row, time, kind } in batch.into_changes() {
                        f(row, &mut |made| out.push(made, time, kind));
                    }
                }
                Kinds::Each(_) => apply_changes(batch, &f, &mut out),
            }
            Ok(AnyBatch::new(out))
        });
        self.step(verb, place, function)
    }

    // As `apply`, for a function that also says the kind of what it makes.
    fn recast<O: Data, N: Mode>(
        self,
        verb: &'static str,
        place: &'static Location<'static>,
        f: impl Fn(RowKind, T, &mut dyn FnMut(RowKind, O)) + Send + Sync + 'static,
    ) -> Stream<O, N> {
        let function: Arc<BatchFn> = Arc::new(move |batch: AnyBatch| {
            let batch: Batch<T> = batch.take()?;
            let mut out = Batch::with_capacity(batch.len());
            for change in batch.into_changes() {
                f(change.kind, change.row, &mut |kind, made| out.push(made, change.time, kind));
            }
            Ok(AnyBatch::new(out))
        });
        self.step(verb, place, function)
    }

    fn step<O: Data, N: Mode>(
        self,
        verb: &'static str,
        place: &'static Location<'static>,
        function: Arc<BatchFn>,
    ) -> Stream<O, N> {
        let flow = self.out.flow.clone();
        Stream::at(flow.add(NewNode {
            name: verb.to_string(),
            op: Op::Apply { verb },
            inputs: &[self.out],
            ports: vec![PortInfo::main(N::MODE)],
            build: Build::Operator(Arc::new(move |_| Box::new(Apply::new(function.clone())))),
            place,
        }))
    }
}

// The halves of an update stand side by side. What they are made into is compared: where nothing is left of one, the
// other is a change of its own (a row that crosses a filter), and where both are equal nothing has changed.
fn apply_changes<T: Data, O: Data>(batch: Batch<T>, f: &impl Fn(T, &mut dyn FnMut(O)), out: &mut Batch<O>) {
    let mut equality = Equality::default();
    let mut changes = batch.into_changes().peekable();
    while let Some(Change { row, time, kind }) = changes.next() {
        let after = changes.next_if(|next| kind == RowKind::UpdateBefore && next.kind == RowKind::UpdateAfter);
        let Some(after) = after else {
            let kind = if kind == RowKind::UpdateBefore { RowKind::Delete } else { kind };
            f(row, &mut |made| out.push(made, time, kind));
            continue;
        };
        let (mut olds, mut news) = (Vec::new(), Vec::new());
        f(row, &mut |made| olds.push(made));
        f(after.row, &mut |made| news.push(made));
        let mut news = news.into_iter();
        for old in olds {
            match news.next() {
                Some(new) if equality.holds(&old, &new) => {}
                Some(new) => {
                    out.push(old, time, RowKind::UpdateBefore);
                    out.push(new, after.time, RowKind::UpdateAfter);
                }
                None => out.push(old, time, RowKind::Delete),
            }
        }
        news.for_each(|new| out.push(new, after.time, RowKind::Insert));
    }
}

// The bounds stand on the methods, so that a stream of something that is no row is told why.
impl<T, M> Stream<T, M> {
    /// Makes a row of each row. The function must give the same for the same row: in a changelog a row is taken back by
    /// what it was mapped to. An update whose two versions are mapped to equal rows is none.
    #[track_caller]
    pub fn map<O: Data, F: Fn(T) -> O + Send + Sync + 'static>(self, f: F) -> Stream<O, M>
    where
        T: Data,
        M: Mode,
    {
        self.apply("map", Location::caller(), move |row, out| out(f(row)))
    }

    /// Keeps the rows that the test holds for. An update that crosses it becomes an insert or a delete.
    #[track_caller]
    pub fn filter<F: Fn(&T) -> bool + Send + Sync + 'static>(self, f: F) -> Stream<T, M>
    where
        T: Data,
        M: Mode,
    {
        // Of several rows of a key the one that was kept may be taken back last.
        let several = |mark: KeyMark| match mark.standing {
            Standing::One => mark,
            Standing::Newest | Standing::Several => KeyMark { standing: Standing::Several, ..mark },
        };
        let keyed = self.out.keyed.clone().map(several);
        let mut kept = self.apply("filter", Location::caller(), move |row, out| {
            if f(&row) {
                out(row);
            }
        });
        kept.out.keyed = keyed;
        kept
    }

    /// Makes any number of rows of each row; each has its time and kind.
    #[track_caller]
    pub fn flat_map<O, I, F>(self, f: F) -> Stream<O, M>
    where
        T: Data,
        M: Mode,
        O: Data,
        I: IntoIterator<Item = O>,
        F: Fn(T) -> I + Send + Sync + 'static,
    {
        self.apply("flat_map", Location::caller(), move |row, out| f(row).into_iter().for_each(out))
    }

    /// Puts two streams together; rows keep their order within each, and the watermark is the lesser of the two.
    #[track_caller]
    pub fn union<N: Mode>(self, other: Stream<T, N>) -> Stream<T, M::Out>
    where
        T: Data,
        M: MergeMode<N>,
    {
        let flow = self.out.flow.clone();
        let label = format!("{}+{}", self.out.label, other.out.label);
        let output = flow.add(NewNode {
            name: "union".to_string(),
            op: Op::Union,
            inputs: &[self.out, other.out],
            ports: vec![PortInfo::main(<M::Out as Mode>::MODE)],
            build: Build::Operator(Arc::new(|_| Box::new(Pass::new(2)))),
            place: Location::caller(),
        });
        Stream::at(Output { label, ..output })
    }

    /// Keys the rows by a function of each: `.key_by(|p| p.order_id)`, `.key_by(Order::key)`. Rows of one key meet in one
    /// task; the key is taken once a row.
    ///
    /// A key of `Option` that is `None` matches nothing.
    #[track_caller]
    pub fn key_by<K: Key, F: Fn(&T) -> K + Send + Sync + 'static>(self, key: F) -> KeyedStream<K, T, M>
    where
        T: Data,
        M: Mode,
    {
        let label = function_name::<F>();
        KeyedStream::by(self.out, label, Arc::new(key), Location::caller())
    }

    /// As [`key_by`](Self::key_by), for a key that may be null where nulls are to match each other: all inputs of the join
    /// have to be keyed so. All rows with a null key then meet in one task.
    #[track_caller]
    pub fn key_by_null_safe<K: Key, F>(self, key: F) -> KeyedStream<NullSafe<K>, T, M>
    where
        T: Data,
        M: Mode,
        F: Fn(&T) -> K + Send + Sync + 'static,
    {
        let label = function_name::<F>();
        KeyedStream::by(self.out, label, Arc::new(move |row: &T| NullSafe(key(row))), Location::caller())
    }

    /// Keys the rows by the key of their [`Keyed`].
    #[track_caller]
    pub fn keyed<K: Key>(self) -> KeyedStream<K, T, M>
    where
        T: Keyed<Key = K>,
        M: Mode,
    {
        KeyedStream::by(self.out, T::key_name().to_string(), Arc::new(T::key), Location::caller())
    }

    /// Sends the rows to a sink.
    ///
    /// A sink that keeps the newest row of each key needs all changes of a key in order, from one task, and the last of them
    /// from a row that stands. A changelog that is not arranged by that key, or of which several rows of a key can stand
    /// and one of them be taken back, is therefore made a table on the way, as by [`to_table`](Stream::to_table); explain
    /// shows it. A join arranges its results by its key, and that of a row is taken for the same by its type and name: a
    /// `select` that puts another value under that name stops the flow, and has to go through `to_table` by itself.
    #[track_caller]
    pub fn sink_to<S: Sink<T>>(self, sink: S)
    where
        T: Data,
        M: Mode,
        S::Takes: Accepts<M>,
    {
        let place = Location::caller();
        let from = match sink.by_key() {
            Some(by_key) if M::MODE == ChangeMode::Changelog => {
                let name = sink.endpoint().name;
                if self.out.is_arranged_by(&by_key) {
                    self.out.is_taken_by(&by_key, &name);
                    self.out
                } else {
                    in_order(self.out, &by_key, &name, place)
                }
            }
            _ => self.out,
        };
        let sink = erase_sink(sink);
        let flow = from.flow.clone();
        flow.add(NewNode {
            name: sink.endpoint().name,
            op: Op::Sink,
            inputs: &[from],
            ports: vec![PortInfo::main(M::MODE)],
            build: Build::Sink(sink),
            place,
        });
    }

    /// Names the step that the stream comes from; sources, sinks and joins are found by their names.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.out.flow.rename(self.out.from, name.clone());
        self.out.label = name;
        self
    }
}

impl<T: Data> Stream<T, Append> {
    /// Reads facts as changes: the function says of each what it does, and to which row. For feeds whose records are
    /// inserts, updates and deletes of rows. A row is taken back by being equal to one that came.
    ///
    /// ```
    /// # use flowjoin_core::{*, io::*};
    /// # #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// # struct Fact { deleted: bool, id: u64 }
    /// # impl Event for Fact {
    /// #     fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> { Ok(arrival) }
    /// #     fn watermarks() -> Watermarks { Watermarks::ingestion() }
    /// # }
    /// # fn changes<S: StreamSource<Fact>>(flow: &Flow, source: S) -> Stream<u64, Changelog> {
    /// flow.stream::<Fact>(source).as_changelog(|fact| match fact.deleted {
    ///     true => (RowKind::Delete, fact.id),
    ///     false => (RowKind::Insert, fact.id),
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn as_changelog<O, F>(self, change: F) -> Stream<O, Changelog>
    where
        O: Data,
        F: Fn(T) -> (RowKind, O) + Send + Sync + 'static,
    {
        self.recast("as_changelog", Location::caller(), move |_, row, out| {
            let (kind, row) = change(row);
            out(kind, row);
        })
    }
}

impl<T: Data> Stream<T, Changelog> {
    /// Keeps the `+I` rows and drops updates and deletes, which are then lost.
    #[track_caller]
    pub fn only_inserts(self) -> Stream<T, Append> {
        self.recast("only_inserts", Location::caller(), |kind, row, out| {
            if kind == RowKind::Insert {
                out(kind, row);
            }
        })
    }
}

// Good enough for a label, and never an identity; a closure has no name that helps.
pub(super) fn function_name<F>() -> String {
    let name = std::any::type_name::<F>();
    if name.contains("{{closure}}") {
        return String::new();
    }
    let method = name.rsplit("::").next().unwrap_or(name);
    match name.split(" as ").next() {
        Some(owner) if name.starts_with('<') => {
            format!("{}::{method}", owner.rsplit("::").next().unwrap_or(owner).trim_start_matches('<'))
        }
        _ => method.to_string(),
    }
}

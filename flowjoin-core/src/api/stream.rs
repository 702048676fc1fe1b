//! A stream of rows, and what can be done with one without joining it.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::flow::{NewNode, Output};
use super::keyed::KeyedStream;
use super::mode::{Accepts, Append, Changelog, MergeMode, Mode};
use crate::batch::{AnyBatch, Batch};
use crate::change::RowKind;
use crate::io::Sink;
use crate::io::erased::erase_sink;
use crate::key::Key;
use crate::op::chain::{Apply, BatchFn, Pass};
use crate::plan::{Build, Op, PortInfo};
use crate::record::{Data, Keyed};

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

    fn apply<O: Data>(
        self,
        verb: &'static str,
        place: &'static Location<'static>,
        f: impl Fn(T, &mut dyn FnMut(O)) + Send + Sync + 'static,
    ) -> Stream<O, M> {
        self.apply_changes(verb, place, move |kind, row, out| f(row, &mut |made| out(kind, made)))
    }

    fn apply_changes<O: Data, N: Mode>(
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

// The bounds stand on the methods, so that a stream of something that is no row is told why.
impl<T, M> Stream<T, M> {
    /// Makes a row of each row. The function must give the same for the same row: in a changelog a row is taken back by
    /// what it was mapped to.
    #[track_caller]
    pub fn map<O: Data, F: Fn(T) -> O + Send + Sync + 'static>(self, f: F) -> Stream<O, M>
    where
        T: Data,
        M: Mode,
    {
        self.apply("map", Location::caller(), move |row, out| out(f(row)))
    }

    /// Keeps the rows that the test holds for.
    #[track_caller]
    pub fn filter<F: Fn(&T) -> bool + Send + Sync + 'static>(self, f: F) -> Stream<T, M>
    where
        T: Data,
        M: Mode,
    {
        self.apply("filter", Location::caller(), move |row, out| {
            if f(&row) {
                out(row);
            }
        })
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
    #[track_caller]
    pub fn sink_to<S: Sink<T>>(self, sink: S)
    where
        T: Data,
        M: Mode,
        S::Takes: Accepts<M>,
    {
        let sink = erase_sink(sink);
        let flow = self.out.flow.clone();
        flow.add(NewNode {
            name: sink.endpoint().name,
            op: Op::Sink,
            inputs: &[self.out],
            ports: vec![PortInfo::main(M::MODE)],
            build: Build::Sink(sink),
            place: Location::caller(),
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

impl<T: Data> Stream<T, Changelog> {
    /// Keeps the `+I` rows and drops updates and deletes, which are then lost.
    #[track_caller]
    pub fn only_inserts(self) -> Stream<T, Append> {
        self.apply_changes("only_inserts", Location::caller(), |kind, row, out| {
            if kind == RowKind::Insert {
                out(kind, row);
            }
        })
    }
}

// Good enough for a label, and never an identity; a closure has no name that helps.
fn function_name<F>() -> String {
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

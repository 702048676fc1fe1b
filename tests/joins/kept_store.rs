//! A store that lets a test see what it is told.

use std::sync::{Arc, Mutex};

use flowjoin::io::TableChange;
use flowjoin::prelude::*;
use flowjoin_core::state::{Changes, Epoch, MemStore, Owner, Sealed, StateStore, StoreError, StoreStats};
use flowjoin_testkit::TestFlow;

use super::script::Row;

/// What others see of a store: its last commit, and what was put and deleted by it.
#[derive(Clone, Default)]
pub struct Seen {
    pub store: MemStore,
    // By step and part of its state.
    pub changes: Vec<(u16, u8, bool)>,
}

/// A store that lets others see it.
#[derive(Clone, Default)]
pub struct Open {
    pub store: MemStore,
    pub seen: Arc<Mutex<Seen>>,
}

impl StateStore for Open {
    fn epoch(&self) -> Option<Epoch> {
        self.store.epoch()
    }

    fn record(&self) -> &[u8] {
        self.store.record()
    }

    fn commit(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) -> Result<(), StoreError> {
        self.store.commit(epoch, changes, record)?;
        let of_keys = changes.iter().filter_map(|(key, value)| {
            let sealed = Sealed::of(key, &[]).expect("all is sealed as state is");
            matches!(sealed.owner, Owner::Group(_)).then_some((sealed.step, sealed.part, value.is_some()))
        });
        let mut seen = self.seen.lock().expect("no test fails while it looks");
        *seen = Seen { store: self.store.clone(), changes: of_keys.collect() };
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    fn scan(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.store.scan(prefix, each)
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}

/// A flow that keeps its state there.
pub struct Kept {
    pub flow: TestFlow,
    pub seen: Arc<Mutex<Seen>>,
}

impl Kept {
    pub fn new(build: impl Fn(&Flow) + 'static) -> Kept {
        Kept::on(TestFlow::new(build), MemStore::default())
    }

    pub fn on(flow: TestFlow, store: MemStore) -> Kept {
        let store = Open { store, ..Open::default() };
        let seen = store.seen.clone();
        Kept { flow: flow.keep_in(store), seen }
    }

    pub fn row(&mut self, source: &str, key: u64, at: i64) -> &mut Kept {
        self.flow.send(source, row(source, key, at));
        self
    }

    pub fn put(&mut self, key: u64, at: i64) -> &mut Kept {
        self.flow.change_all::<Row>("t", vec![TableChange::Put(row("t", key, at))]);
        self
    }

    pub fn time(&mut self, source: &str, at: i64) -> &mut Kept {
        self.flow.watermark(source, EventTime::from_millis(at));
        self
    }

    pub fn clock(&mut self, span: Span) -> &mut Kept {
        self.flow.advance_processing(span);
        self
    }

    // What has come out since it was last asked.
    pub fn out(&mut self) -> String {
        let rows = self.flow.take("out");
        rows.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    // How many of the keys of `j` got a value in this commit and how many lost theirs, a part of its state after the
    // other. What comes out after a crash is the same.
    pub fn commit(&mut self) -> String {
        self.flow.commit().crash();
        told(&self.flow, "j", &self.seen)
    }
}

fn row(source: &str, key: u64, at: i64) -> Row {
    Row { key: Some(key), name: format!("{source}{at}"), at: EventTime::from_millis(at) }
}

// How many of the keys of a step got a value in the last commit and how many lost theirs, a part of its state after the
// other.
fn told(flow: &TestFlow, step: &str, seen: &Mutex<Seen>) -> String {
    let step = flow.plan().nodes().iter().position(|node| node.name == step).expect("there is such a step");
    let seen = seen.lock().expect("no test fails while it looks");
    let of_part = |part: u8| {
        let count = |puts: bool| seen.changes.iter().filter(|&&it| it == (step as u16, part, puts)).count();
        match (count(true), count(false)) {
            (0, 0) => None,
            (puts, deletes) => Some(format!("{part}: +{puts} -{deletes}")),
        }
    };
    (0..=u8::MAX).filter_map(of_part).collect::<Vec<_>>().join(", ")
}

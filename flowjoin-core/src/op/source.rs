//! The head of a flow: rows as a reader hands them over become a batch with times, and watermarks are made.
//!
//! Each partition has its own generator; the watermark of the source is the merge over its partitions here. A row
//! whose time cannot be read, or lies too far ahead of the clock, is a bad record and does not move the watermark.

mod standing;
mod table;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::account::{Account, OpFigures};
use crate::batch::{AnyBatch, Batch};
use crate::error::{OpError, RecordError, TimeError};
use crate::io::{Page, PassedOver, Raws};
use crate::record::{Data, Event};
use crate::state::{Sealed, Sealing, decode, encode};
use crate::time::{EventTime, ProcTime, Watermark};
use crate::watermark::{
    Generator, GeneratorRecord, Hold, InputState, Merge, Merged, Progress, Rejoin, TimeFigures, Watermarks,
};

pub use standing::Standing;
pub use table::TableStamp;

/// A page whose row type is known only to its reader and its source operator.
pub struct AnyPage(Box<dyn Any + Send>);

impl AnyPage {
    /// Erases a page.
    pub fn new<T: Send + 'static>(page: Page<T>) -> AnyPage {
        AnyPage(Box::new(page))
    }
}

/// What a page has become.
#[derive(Debug, Default)]
pub struct Taken {
    /// Its rows, if it had any.
    pub batch: Option<AnyBatch>,
    /// Records that could not become rows.
    pub bad: Vec<RecordError>,
    /// Records that its reader was told to pass over.
    pub passed_over: PassedOver,
}

/// Makes a batch of a page; the only typed part of a source.
pub trait Stamp: Send {
    /// Takes a page of one partition, and tells the generator of its times.
    fn stamp(&mut self, page: AnyPage, now: ProcTime, generator: &mut Generator) -> Taken;

    /// The first bad record stops the flow: a page is taken up to there, and no further.
    fn stop_at_bad(&mut self);

    /// What it holds, to make rows whole that are told in part.
    fn holds(&self) -> Holdings {
        Holdings::default()
    }

    /// Notes from now on what changes of that.
    fn keep(&mut self) {}

    /// Tells what has changed of it.
    ///
    /// # Errors
    /// If a row cannot be kept.
    fn seal(&mut self, _into: &mut Sealing<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// Takes a piece of it back.
    ///
    /// # Errors
    /// If it is none of its own.
    fn take_back(&mut self, _sealed: Sealed<'_>) -> Result<(), OpError> {
        Err(OpError::unreadable("what a source holds", &"it holds nothing"))
    }
}

/// Rows that are held, and the bytes that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Stamps rows by their [`Event`] time.
pub struct EventStamp<T> {
    strategy: Watermarks,
    origin: String,
    stops_at_bad: bool,
    rows: std::marker::PhantomData<fn() -> T>,
}

impl<T: Event> EventStamp<T> {
    /// The stamp of a source of this name.
    pub fn new(origin: String) -> Self {
        EventStamp { strategy: T::watermarks(), origin, stops_at_bad: false, rows: std::marker::PhantomData }
    }

    #[cold]
    fn bad(&self, Refused { reason, raw }: Refused, index: usize, read: ReadFrom<'_>) -> RecordError {
        let origin = read.origins.get(index);
        let position = origin.map(|&(_, line)| line);
        let origin = origin.map_or_else(|| self.origin.clone(), |(file, _)| file.to_string());
        let raw = read.raws.get(index).map_or(raw, <[u8]>::to_vec);
        RecordError { reason, raw, origin, position }
    }
}

// What the rows of a page were read from, as far as their reader tells.
#[derive(Clone, Copy)]
struct ReadFrom<'a> {
    origins: &'a [(Arc<str>, u64)],
    raws: &'a Raws,
}

// Why a record can be no row, and what is known of the record where its reader does not have it any more.
struct Refused {
    reason: String,
    raw: Vec<u8>,
}

impl Refused {
    #[cold]
    fn time<T: Data>(row: &T, error: &TimeError) -> Refused {
        Refused { reason: error.to_string(), raw: serde_json::to_vec(row).unwrap_or_default() }
    }
}

impl<T: Event> EventStamp<T> {
    // The time of a row, unless it lies too far ahead of the clock.
    #[inline]
    fn time_of(&self, row: &T, arrival: EventTime, now: ProcTime) -> Result<EventTime, TimeError> {
        let time = row.event_time(arrival)?;
        if self.strategy.beyond_future(time, now) {
            let field = self.strategy.field().unwrap_or_default();
            return Err(TimeError::in_the_future(field, time, arrival));
        }
        Ok(time)
    }

    fn open<R: 'static>(&self, page: AnyPage) -> Page<R> {
        let Ok(page) = page.0.downcast::<Page<R>>() else {
            let takes = std::any::type_name::<R>();
            panic!("source `{}` takes rows of type `{takes}`, and was sent rows of another type", self.origin)
        };
        *page
    }

    // What is read of the bad records of a page, whose rows came before those that the reader found, as far as any of them
    // was looked at.
    fn bad_of(&self, by_reader: Vec<RecordError>, mut by_time: Vec<RecordError>) -> Vec<RecordError> {
        by_time.extend(by_reader);
        if self.stops_at_bad {
            by_time.truncate(1);
        }
        // All are of one partition; they are told in its order.
        by_time.sort_by_key(|record| record.position);
        by_time
    }
}

impl<T: Event> Stamp for EventStamp<T> {
    fn stamp(&mut self, page: AnyPage, now: ProcTime, generator: &mut Generator) -> Taken {
        let Page { mut rows, bad: by_reader, origins, raws, passed_over } = self.open::<T>(page);
        let read = ReadFrom { origins: &origins, raws: &raws };
        let arrival = now.as_event_time();
        let mut times = Vec::with_capacity(rows.len());
        let (mut bad, mut wrong) = (Vec::new(), Vec::new());
        for (index, row) in rows.iter().enumerate() {
            match self.time_of(row, arrival, now) {
                Ok(time) => {
                    generator.on_row(time);
                    times.push(time);
                }
                Err(error) => {
                    bad.push(self.bad(Refused::time(row, &error), index, read));
                    wrong.push(index);
                    if self.stops_at_bad {
                        break;
                    }
                }
            }
        }
        if self.stops_at_bad {
            rows.truncate(times.len());
        }
        let rows = without(rows, &wrong);
        let bad = self.bad_of(by_reader, bad);
        let batch = (!rows.is_empty()).then(|| AnyBatch::new(Batch::from_rows(rows, times)));
        Taken { batch, bad, passed_over }
    }

    fn stop_at_bad(&mut self) {
        self.stops_at_bad = true;
    }
}

fn without<T>(rows: Vec<T>, wrong: &[usize]) -> Vec<T> {
    if wrong.is_empty() {
        return rows;
    }
    let mut wrong = wrong.iter().peekable();
    let keep = |&(index, _): &(usize, T)| wrong.next_if(|&&w| w == index).is_none();
    rows.into_iter().enumerate().filter(keep).map(|(_, row)| row).collect()
}

/// The partitions of a source that one task reads.
pub struct SourceState {
    stamp: Box<dyn Stamp>,
    generators: Vec<Generator>,
    merge: Merge,
    account: Account,
    passed_over: PassedOver,
    ticked: ProcTime,
    hold: Hold,
    stops_at_bad: bool,
    // Partitions that were read up to a bad record that stops the flow.
    cut: Vec<bool>,
    // What each partition has said, where somebody wants to know it.
    news: Option<Vec<(usize, Progress)>>,
}

// What has to be known of a source besides the rows that it holds.
#[derive(Serialize, Deserialize)]
struct SourceRecord {
    generators: Vec<GeneratorRecord>,
    merge: Merge,
    account: Account,
    passed_over: BTreeSet<String>,
    ticked: ProcTime,
    hold: Hold,
    cut: Vec<bool>,
}

impl SourceState {
    /// Notes from now on what changes of the rows that it holds.
    pub fn keep(&mut self) {
        self.stamp.keep();
    }

    /// Tells what it is, and what has changed of the rows that it holds.
    ///
    /// # Errors
    /// If a row cannot be kept.
    pub fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let generators = self.generators.iter().map(|generator| generator.record(into.now)).collect();
        let (account, ticked, cut) = (self.account, self.ticked, self.cut.clone());
        let (merge, hold, passed_over) = (self.merge.clone(), self.hold.clone(), self.passed_over.of.clone());
        let record = SourceRecord { generators, merge, account, passed_over, ticked, hold, cut };
        into.put_own(RECORD, &[], &encode(&record));
        self.stamp.seal(into)
    }

    /// Takes a piece back that was sealed.
    ///
    /// # Errors
    /// If it is none of its own.
    pub fn take_back(&mut self, sealed: Sealed<'_>, now: ProcTime) -> Result<(), OpError> {
        if sealed.part != RECORD {
            return self.stamp.take_back(sealed);
        }
        let record: SourceRecord = decode(sealed.value)?;
        for (generator, record) in self.generators.iter_mut().zip(record.generators) {
            generator.go_on(record, now);
        }
        self.passed_over.of = record.passed_over;
        (self.merge, self.account, self.ticked) = (record.merge, record.account, record.ticked);
        (self.hold, self.cut) = (record.hold, record.cut);
        Ok(())
    }

    /// All pieces have been taken back: tells how far each partition is, where somebody wants to know it.
    pub fn tell_again(&mut self) {
        let Some(news) = &mut self.news else { return };
        for (partition, (state, watermark)) in self.merge.inputs().enumerate() {
            let status = match state {
                InputState::Active => None,
                InputState::Idle => Some(Progress::Idle),
                InputState::Stopped => Some(Progress::Stopped),
                InputState::Finished => Some(Progress::End),
            };
            let moved = (watermark > Watermark::NONE && state != InputState::Finished).then_some(watermark);
            news.extend(moved.map(Progress::At).into_iter().chain(status).map(|progress| (partition, progress)));
        }
    }

    /// The partitions that have ended, or that were stopped.
    pub fn ended(&self) -> impl Iterator<Item = usize> {
        let inputs = self.merge.inputs().enumerate();
        let has_ended = |state| matches!(state, InputState::Finished | InputState::Stopped);
        inputs.filter(move |(_, (state, _))| has_ended(*state)).map(|(partition, _)| partition)
    }

    /// A source of which this task reads so many partitions.
    pub fn new(stamp: Box<dyn Stamp>, strategy: &Watermarks, partitions: usize, now: ProcTime) -> SourceState {
        let generators = vec![Generator::new(strategy.clone(), now); partitions];
        SourceState {
            stamp,
            generators,
            merge: Merge::new(partitions, Rejoin::AtOnce),
            account: Account::default(),
            passed_over: PassedOver::default(),
            ticked: now,
            hold: Hold::default(),
            stops_at_bad: false,
            cut: vec![false; partitions],
            news: None,
        }
    }

    /// The same, of which the host wants to know how far each partition is.
    pub fn telling(mut self) -> SourceState {
        self.news = Some(Vec::new());
        self
    }

    /// The first bad record stops the flow.
    pub fn stop_at_bad(&mut self) {
        self.stops_at_bad = true;
        self.stamp.stop_at_bad();
    }

    /// What each partition has said since last asked, if that was wanted.
    pub fn take_news(&mut self) -> Vec<(usize, Progress)> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A partition is not read for now, because it is ahead of others.
    pub fn pause(&mut self, partition: usize) {
        self.generators[partition].pause();
    }

    /// A partition is read again.
    pub fn resume(&mut self, partition: usize, now: ProcTime) {
        self.generators[partition].resume(now);
    }

    fn hear(&mut self, partition: usize, progress: Progress, now: ProcTime) -> Merged {
        if let Some(news) = &mut self.news {
            news.push((partition, progress));
        }
        let merged = self.merge.update(partition, progress);
        self.hold.note(&self.merge, now);
        merged
    }

    /// How many partitions of it this task reads.
    pub fn partitions(&self) -> usize {
        self.generators.len()
    }

    /// A page has come; returns what it has become, and the progress before its rows and after them.
    pub fn on_page(&mut self, partition: usize, page: AnyPage, now: ProcTime) -> (Taken, Merged, Merged) {
        let generator = &mut self.generators[partition];
        let mut taken = self.stamp.stamp(page, now, generator);
        let rows = taken.batch.as_ref().map_or(0, AnyBatch::len) as u64;
        let passed_over = std::mem::take(&mut taken.passed_over);
        self.account.rows += rows + taken.bad.len() as u64 + passed_over.records;
        self.account.passed_over += passed_over.records;
        self.passed_over.add(passed_over);
        self.account.matched += rows;
        self.account.bad += taken.bad.len() as u64;
        self.cut[partition] |= self.stops_at_bad && !taken.bad.is_empty();
        let woken = if rows > 0 { generator.on_rows(now) } else { None };
        let moved = generator.advance(now);
        let before = woken.map_or_else(Merged::default, |progress| self.hear(partition, progress, now));
        let after = moved.map_or_else(Merged::default, |w| self.hear(partition, Progress::At(w), now));
        (taken, before, after)
    }

    /// The host knows better than the generator: the end of a partition, or a test that sets the watermark by hand. A
    /// partition that was read up to a bad record has not ended there, though its reader has nothing more: who knows what
    /// the record was to say.
    pub fn on_progress(&mut self, partition: usize, progress: Progress, now: ProcTime) -> Merged {
        self.generators[partition].on_progress(progress, now);
        let cut = self.cut[partition] && progress == Progress::End;
        self.hear(partition, if cut { Progress::Stopped } else { progress }, now)
    }

    /// The clock has moved.
    pub fn on_clock(&mut self, now: ProcTime) -> Vec<Merged> {
        self.ticked = now;
        let mut said = Vec::new();
        for (partition, generator) in self.generators.iter_mut().enumerate() {
            // Arrival time moves with the clock, so such a partition is never behind by being quiet.
            let by_arrival = generator.by_arrival().then(|| generator.advance(now)).flatten().map(Progress::At);
            said.extend(by_arrival.into_iter().chain(generator.on_clock(now)).map(|progress| (partition, progress)));
        }
        said.into_iter().map(|(partition, progress)| self.hear(partition, progress, now)).collect()
    }

    /// When to call [`on_clock`](Self::on_clock) at the latest.
    pub fn deadline(&self) -> Option<ProcTime> {
        let idle = self.generators.iter().filter_map(Generator::idle_at).min();
        let arrival = self.generators.iter().any(Generator::by_arrival).then(|| self.ticked.plus(ARRIVAL_TICK));
        idle.into_iter().chain(arrival).min()
    }

    /// How far its partitions are.
    pub fn time(&self) -> TimeFigures {
        self.hold.figures(&self.merge, self.merge.watermark())
    }

    /// What has come in.
    pub fn figures(&self) -> OpFigures {
        let Holdings { rows, bytes } = self.stamp.holds();
        OpFigures {
            accounts: vec![self.account],
            state_rows: vec![rows],
            state_bytes: bytes,
            emitted: self.account.matched,
            passed_over_of: self.passed_over.of.clone(),
        }
    }
}

// The part of a state that tells what a source is.
const RECORD: u8 = 0;

/// How often the watermark of a source by arrival time moves while nothing comes.
const ARRIVAL_TICK: crate::time::Span = crate::time::millis(100);

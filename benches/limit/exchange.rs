//! Runs a query on one or more threads, each of which does everything from source to sink for its share of the keys.
//!
//! Thread `t` makes the rows whose index is `t` modulo the number of threads, keeps those whose key it owns and sends
//! the others over in blocks. There is no thread for an operator. Blocks go through bounded channels, and a thread
//! joins whatever has come over between two blocks of its own. The lead rule keeps the threads side by side: no source
//! makes a block while it is more than [`LEAD`] blocks ahead of what has come over of the same input. Without it the
//! watermark of the slower thread stays behind, and state that should be small grows out of the cache.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use crate::table;

/// A row as the exchange sees it.
pub trait Hashed: Copy + Send {
    /// The hash of the row's key, computed once when the row is made.
    fn hash(&self) -> u64;
}

/// A join as one thread runs it on its share of the keys.
pub trait Query {
    /// The rows of all inputs, cut down to what the join reads.
    type Row: Hashed;
    /// What the thread has to say at the end.
    type Outcome: Send;

    /// How many inputs there are.
    const INPUTS: usize;

    /// How many rows an input has, over all threads.
    fn rows_in(&self) -> u64;

    /// Makes the rows of an input at the given indexes, in their order.
    fn make(&mut self, input: usize, indexes: impl Iterator<Item = u64>, take: impl FnMut(Self::Row));

    /// The watermark of this thread's source of an input after the rows it has made.
    fn watermark(&self, input: usize) -> i64;

    /// Joins rows of an input.
    fn join(&mut self, input: usize, rows: &[Self::Row]);

    /// Hears that all rows of an input up to a watermark have come from a source.
    fn advance(&mut self, source: usize, input: usize, watermark: i64);

    /// Hears that all rows of all inputs have come.
    fn end(&mut self) {}

    /// Ends the thread's share.
    fn finish(&self) -> Self::Outcome;
}

/// Runs a query on `threads` threads. Returns the seconds from the first row made to the last one joined, and what
/// each thread has to say.
pub fn run<Q: Query>(threads: usize, query: impl Fn(usize) -> Q + Sync) -> (f64, Vec<Q::Outcome>) {
    let depth = threads * Q::INPUTS * (LEAD + 2);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(depth)).unzip();
    let start = Instant::now();
    let ended = thread::scope(|scope| {
        let query = &query;
        let workers = receivers.into_iter().enumerate().map(|(this, receiver)| {
            let peers = peers(this, &senders);
            scope.spawn(move || {
                let mut worker = Worker::new(this, threads, query(this), peers, receiver);
                worker.run();
                // Taken before the state is dropped: giving memory back is not part of the join.
                (Instant::now(), worker.query.finish())
            })
        });
        let workers: Vec<_> = workers.collect();
        drop(senders);
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect::<Vec<_>>()
    });
    let end = ended.iter().map(|(end, _)| *end).max().unwrap_or(start);
    (end.duration_since(start).as_secs_f64(), ended.into_iter().map(|(_, outcome)| outcome).collect())
}

/// A sender to each other thread, and none to the thread itself: its channel must close when the others are done.
fn peers<R>(this: usize, senders: &[SyncSender<Block<R>>]) -> Vec<Option<SyncSender<Block<R>>>> {
    let all = senders.iter().enumerate();
    all.map(|(peer, sender)| (peer != this).then(|| sender.clone())).collect()
}

/// Rows of one input that one thread made for another, and the source's watermark after them.
struct Block<R> {
    source: usize,
    input: usize,
    rows: Vec<R>,
    watermark: i64,
}

/// One thread.
struct Worker<Q: Query> {
    this: usize,
    threads: usize,
    query: Q,
    peers: Vec<Option<SyncSender<Block<Q::Row>>>>,
    receiver: Receiver<Block<Q::Row>>,
    /// Rows made and not yet joined or sent, by the thread that owns them.
    outgoing: Vec<Vec<Q::Row>>,
    /// Emptied blocks of other threads, which become the next blocks of this one.
    spare: Vec<Vec<Q::Row>>,
    /// How many blocks of each input this thread has made.
    made: Vec<usize>,
    /// How many blocks have come over, by source and then input.
    come: Vec<Vec<usize>>,
}

impl<Q: Query> Worker<Q> {
    fn new(
        this: usize,
        threads: usize,
        query: Q,
        peers: Vec<Option<SyncSender<Block<Q::Row>>>>,
        receiver: Receiver<Block<Q::Row>>,
    ) -> Self {
        Worker {
            this,
            threads,
            query,
            peers,
            receiver,
            outgoing: (0..threads).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            made: vec![0; Q::INPUTS],
            come: vec![vec![0; Q::INPUTS]; threads],
        }
    }

    fn run(&mut self) {
        let rows_in = self.query.rows_in();
        // A thread that has nobody to send to has no use for blocks larger than what it joins at a time.
        let stride = self.threads * if self.threads == 1 { BATCH } else { BLOCK };
        for start in (0..rows_in).step_by(stride) {
            for input in 0..Q::INPUTS {
                self.wait_for_others(input);
                self.make_block(input, start, rows_in.min(start + stride as u64));
                self.take_what_came();
            }
        }
        self.peers.clear();
        while let Ok(block) = self.receiver.recv() {
            self.take(block);
        }
        self.query.end();
    }

    /// Makes this thread's rows of an input from `start` to `end`, joins its own and sends the others' over.
    fn make_block(&mut self, input: usize, start: u64, end: u64) {
        let batch = (BATCH * self.threads) as u64;
        for from in (start..end).step_by(BATCH * self.threads) {
            let indexes = (from + self.this as u64..end.min(from + batch)).step_by(self.threads);
            let (threads, outgoing) = (self.threads, &mut self.outgoing);
            if threads == 1 {
                self.query.make(input, indexes, |row| outgoing[0].push(row));
            } else {
                self.query.make(input, indexes, |row| outgoing[table::owner(row.hash(), threads)].push(row));
            }
            self.query.join(input, &self.outgoing[self.this]);
            self.outgoing[self.this].clear();
        }
        self.made[input] += 1;
        let watermark = self.query.watermark(input);
        self.send(input, watermark);
        self.query.advance(self.this, input, watermark);
    }

    fn send(&mut self, input: usize, watermark: i64) {
        for (peer, sender) in self.peers.iter().enumerate() {
            let Some(sender) = sender else { continue };
            let rows = std::mem::replace(&mut self.outgoing[peer], self.spare.pop().unwrap_or_default());
            let block = Block { source: self.this, input, rows, watermark };
            sender.send(block).expect("a thread listens until all others are done");
        }
    }

    /// The lead rule.
    fn wait_for_others(&mut self, input: usize) {
        while self.is_ahead(input) {
            match self.receiver.recv() {
                Ok(block) => self.take(block),
                Err(_) => return,
            }
        }
    }

    fn is_ahead(&self, input: usize) -> bool {
        let others = self.come.iter().enumerate().filter(|&(source, _)| source != self.this);
        others.map(|(_, come)| come[input]).min().is_some_and(|come| self.made[input] > come + LEAD)
    }

    fn take_what_came(&mut self) {
        while let Ok(block) = self.receiver.try_recv() {
            self.take(block);
        }
    }

    fn take(&mut self, block: Block<Q::Row>) {
        let Block { source, input, mut rows, watermark } = block;
        self.query.join(input, &rows);
        self.come[source][input] += 1;
        self.query.advance(source, input, watermark);
        rows.clear();
        self.spare.push(rows);
    }
}

/// Rows of one input that a source makes before it sends: at two threads a thousand rows a message. Twice as many cost
/// more in the cache than they save in the channel.
const BLOCK: usize = 2048;
/// Rows that a thread makes before it joins its own.
const BATCH: usize = 256;
/// How many blocks a source may be ahead of what has come over.
const LEAD: usize = 1;

//! Reading segments in the order of their keys: one of them, or several as one, where the newest word on a key counts.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use flowjoin_core::state::StoreError;

use super::bytes::Unread;
use super::segment::Segment;

/// A place in a segment, on an entry. It holds one block at a time and reads them one after the other.
#[derive(Debug)]
pub struct Cursor {
    segment: Arc<Segment>,
    file: File,
    // The block after the one that is held.
    next: usize,
    block: Vec<u8>,
    key: Range<usize>,
    value: Option<Range<usize>>,
    // Where the entry ends.
    end: usize,
}

impl Cursor {
    /// Stands on the first entry whose key is this one or behind it; none if there is none.
    pub fn begin(segment: &Arc<Segment>, from: &[u8]) -> Result<Option<Cursor>, StoreError> {
        // Keys from there on may begin within the block before the first one that begins behind it.
        let next = segment.blocks().partition_point(|block| *block.first <= *from).saturating_sub(1);
        let Some(first) = segment.blocks().get(next) else { return Ok(None) };
        let name = segment.named().file();
        let failed = |error| segment.disk().failed(&name, "be read", &error);
        let mut file = File::open(segment.disk().path(&name)).map_err(failed)?;
        file.seek(SeekFrom::Start(first.at)).map_err(failed)?;
        let (block, key, value) = (Vec::new(), 0..0, None);
        let mut cursor = Cursor { segment: Arc::clone(segment), file, next, block, key, value, end: 0 };
        while cursor.advance()? {
            if cursor.key() >= from {
                return Ok(Some(cursor));
            }
        }
        Ok(None)
    }

    /// The key it stands on.
    pub fn key(&self) -> &[u8] {
        &self.block[self.key.clone()]
    }

    /// The value there; none if the key was deleted.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.clone().map(|value| &self.block[value])
    }

    /// Goes on to the next entry; says whether there is one.
    pub fn advance(&mut self) -> Result<bool, StoreError> {
        if self.end == self.block.len() && !self.next_block()? {
            return Ok(false);
        }
        let entry = entry(&self.block, self.end).ok_or_else(|| self.damaged("holds what is no entry"))?;
        (self.key, self.value, self.end) = entry;
        Ok(true)
    }

    fn next_block(&mut self) -> Result<bool, StoreError> {
        let segment = Arc::clone(&self.segment);
        let Some(next) = segment.blocks().get(self.next) else { return Ok(false) };
        self.next += 1;
        self.end = 0;
        self.block.resize(next.len as usize, 0);
        self.file.read_exact(&mut self.block).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged("is cut off"),
            _ => segment.disk().failed(&segment.named().file(), "be read", &error),
        })?;
        match crc32fast::hash(&self.block) == next.checksum {
            true => Ok(true),
            false => Err(self.damaged("has another checksum than when it was written")),
        }
    }

    fn damaged(&self, what: &str) -> StoreError {
        let at = self.segment.blocks()[self.next - 1].at;
        self.segment.disk().damaged(&self.segment.named().file(), &format!("the block at byte {at} {what}"))
    }
}

type Entry = (Range<usize>, Option<Range<usize>>, usize);

fn entry(block: &[u8], at: usize) -> Option<Entry> {
    let mut unread = Unread(block.get(at..)?);
    let (key_len, value_len) = (unread.varint()?, unread.varint()?);
    let key_at = block.len() - unread.0.len();
    let value_at = key_at + unread.take(key_len)?.len();
    let end = value_at + unread.take(value_len.saturating_sub(1))?.len();
    Some((key_at..value_at, (value_len > 0).then_some(value_at..end), end))
}

/// Several segments read as one: each key once, with the newest word on it.
#[derive(Debug)]
pub struct Merged {
    // Oldest first; those that have ended stay, and are in the heap no more.
    cursors: Vec<Cursor>,
    // A heap: the cursor that comes first stands at the front.
    heap: Vec<usize>,
    // The key that was given last, if one was.
    key: Vec<u8>,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    New,
    Given,
}

/// A key, and its value or none where it was deleted.
pub type Newest<'a> = (&'a [u8], Option<&'a [u8]>);

impl Merged {
    /// Begins with the first key that is this one or behind it; the segments are given oldest first.
    pub fn begin(segments: &[Arc<Segment>], from: &[u8]) -> Result<Merged, StoreError> {
        let mut cursors = Vec::with_capacity(segments.len());
        for segment in segments {
            cursors.extend(Cursor::begin(segment, from)?);
        }
        let heap = (0..cursors.len()).collect();
        let mut merged = Merged { cursors, heap, key: Vec::new(), state: State::New };
        (0..merged.heap.len() / 2).rev().for_each(|place| merged.sink(place));
        Ok(merged)
    }

    /// The next key.
    pub fn next(&mut self) -> Result<Option<Newest<'_>>, StoreError> {
        if self.state == State::Given {
            self.leave_key()?;
        }
        self.state = State::Given;
        let first = self.heap.first().map(|&first| &self.cursors[first]);
        Ok(first.map(|cursor| (cursor.key(), cursor.value())))
    }

    // All cursors on the key that was given go on: older words on it do not count.
    fn leave_key(&mut self) -> Result<(), StoreError> {
        let Some(&first) = self.heap.first() else { return Ok(()) };
        self.key.clear();
        self.key.extend_from_slice(self.cursors[first].key());
        while let Some(&first) = self.heap.first().filter(|&&first| self.cursors[first].key() == self.key) {
            if !self.cursors[first].advance()? {
                self.heap.swap_remove(0);
            }
            self.sink(0);
        }
        Ok(())
    }

    // Of two on the same key the newer comes first.
    fn comes_before(&self, one: usize, other: usize) -> bool {
        (self.cursors[one].key(), other) < (self.cursors[other].key(), one)
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let below = (2 * place + 1..self.heap.len().min(2 * place + 3))
                .reduce(|one, other| if self.comes_before(self.heap[one], self.heap[other]) { one } else { other });
            match below {
                Some(below) if self.comes_before(self.heap[below], self.heap[place]) => self.heap.swap(place, below),
                _ => return,
            }
            place = below.unwrap_or(place);
        }
    }
}

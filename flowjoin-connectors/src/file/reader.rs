//! Pages of rows from a file, whatever its format.
//!
//! A page is full after so many records or so many bytes. An error waits until the rows before it have been handed
//! over; where only the rest of a file is damaged, that is a bad record, and the file ends there. A file on a disk is read
//! where it is asked for; what may keep its reader waiting, as a pipe, on a thread of its own (`waiting`), and a page then is
//! what has come. Nothing waits that holds a row, so dropping a read loses nothing.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use flowjoin_core::io::{Page, ReadStatus, Reader};
use flowjoin_core::{IoError, RecordError};

use super::waiting::Waiting;
use super::{OnBad, open};

/// Turns the bytes of a file into rows, one record at a time.
pub(super) trait Decode<T>: Send {
    /// The next record, or nothing at the end of the file.
    fn next(&mut self) -> Result<Option<Decoded<T>>, Failure>;

    /// The record that came last, if a row was made of it, as it came.
    fn raw(&self) -> &[u8];

    /// Bytes read, and the size of the file.
    fn done(&self) -> (u64, u64);
}

/// Why there is no next record.
pub(super) enum Failure {
    /// The file cannot be read on.
    Io(IoError),
    /// What is left of the file is none of it.
    Damaged {
        reason: String,
        /// The line that was not whole, from 1, and as much of it as there is.
        line: u64,
        raw: Vec<u8>,
    },
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Failure {
        Failure::Io(error)
    }
}

impl From<Failure> for IoError {
    fn from(failure: Failure) -> IoError {
        match failure {
            Failure::Io(error) => error,
            Failure::Damaged { reason, .. } => IoError::new(reason),
        }
    }
}

/// One record of a file.
pub(super) struct Decoded<T> {
    pub(super) outcome: Outcome<T>,
    /// The line that it begins on, from 1.
    pub(super) line: u64,
    pub(super) bytes: usize,
}

pub(super) enum Outcome<T> {
    Row(T),
    Bad {
        reason: String,
        raw: Vec<u8>,
    },
    /// A record that the source was told to pass over, and of what it is.
    PassedOver {
        of: String,
    },
    /// An empty line.
    Blank,
}

/// A reader of one file.
pub(super) struct FileReader<T, D> {
    records: Records<T, D>,
    origin: Arc<str>,
    stops_at_bad: bool,
    state: State,
    /// The bytes of the rows of the page before: those of the next are likely to be about as many.
    raw_bytes: usize,
}

enum Records<T, D> {
    /// Of a file on a disk.
    Here(D),
    /// Of what may keep its reader waiting.
    Waited(Waiting<T>),
}

impl<T: Send + 'static, D: Decode<T>> Records<T, D> {
    /// The record that came last, if a row was made of it, as it came.
    fn raw(&self) -> &[u8] {
        match self {
            Records::Here(decode) => decode.raw(),
            Records::Waited(waiting) => waiting.raw(),
        }
    }
}

enum State {
    Reading,
    /// The rows before the error have been handed over; it is next.
    Failing(IoError),
    Failed,
}

impl<T: Send + 'static, D: Decode<T> + 'static> FileReader<T, D> {
    /// Of this file; where the first bad record stops the flow, a page ends with it.
    pub(super) fn new(decode: D, path: &Path, on_bad: &OnBad) -> Result<FileReader<T, D>, IoError> {
        let origin = path.display().to_string().into();
        let records = match open::may_wait(path) {
            true => Records::Waited(Waiting::begin(decode, path)?),
            false => Records::Here(decode),
        };
        Ok(FileReader { records, origin, stops_at_bad: *on_bad == OnBad::Fail, state: State::Reading, raw_bytes: 0 })
    }

    fn fill(&mut self, page: &mut Page<T>, records_max: usize) -> Result<ReadStatus, IoError> {
        let mut bytes = 0;
        page.raws.reserve(self.raw_bytes + self.raw_bytes / 8);
        while page.rows.len() + page.bad.len() < records_max && bytes < PAGE_BYTES {
            let next = match &mut self.records {
                Records::Here(decode) => decode.next(),
                Records::Waited(waiting) => match waiting.ready() {
                    Some(next) => next,
                    None => break,
                },
            };
            let decoded = match next {
                Ok(Some(decoded)) => decoded,
                Ok(None) => return Ok(ReadStatus::End),
                Err(Failure::Io(error)) => return Err(error),
                Err(Failure::Damaged { reason, line, raw }) => {
                    let (origin, position) = (self.origin.to_string(), Some(line));
                    page.bad.push(RecordError { reason, raw, origin, position });
                    return Ok(ReadStatus::End);
                }
            };
            bytes += decoded.bytes;
            match decoded.outcome {
                Outcome::Row(row) => {
                    page.rows.push(row);
                    page.raws.push(self.records.raw());
                    page.origins.push((self.origin.clone(), decoded.line));
                }
                Outcome::Bad { reason, raw } => {
                    let position = Some(decoded.line);
                    page.bad.push(RecordError { reason, raw, origin: self.origin.to_string(), position });
                    if self.stops_at_bad {
                        break;
                    }
                }
                Outcome::PassedOver { of } => page.passed_over.note(of),
                Outcome::Blank => {}
            }
        }
        Ok(ReadStatus::More)
    }
}

#[async_trait]
impl<T: Send + 'static, D: Decode<T> + 'static> Reader<T> for FileReader<T, D> {
    async fn read(&mut self, page: &mut Page<T>, max_rows: usize) -> Result<ReadStatus, IoError> {
        if !matches!(self.state, State::Reading) {
            let failed = std::mem::replace(&mut self.state, State::Failed);
            return Err(match failed {
                State::Failing(error) => error,
                State::Reading | State::Failed => IoError::new(format!("`{}` has failed before", self.origin)),
            });
        }
        loop {
            let empty = |page: &Page<T>| page.rows.is_empty() && page.bad.is_empty() && page.passed_over.records == 0;
            if let Records::Waited(waiting) = &mut self.records {
                waiting.wait().await;
            }
            match self.fill(page, max_rows.max(1)) {
                Ok(ReadStatus::More) if empty(page) => tokio::task::yield_now().await,
                Ok(status) => {
                    self.raw_bytes = page.raws.bytes();
                    return Ok(status);
                }
                Err(error) if empty(page) => {
                    self.state = State::Failed;
                    return Err(error);
                }
                Err(error) => {
                    self.state = State::Failing(error);
                    return Ok(ReadStatus::More);
                }
            }
        }
    }

    fn done(&self) -> Option<(u64, u64)> {
        match &self.records {
            Records::Here(decode) => Some(decode.done()),
            Records::Waited(_) => None,
        }
    }
}

/// A page is handed over after so many bytes of records, however few they are.
const PAGE_BYTES: usize = 4 << 20;

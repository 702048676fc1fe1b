//! Records of what may keep its reader waiting, as a pipe that nobody writes to: read on a thread of their own.
//!
//! Nobody can end a read that waits. So the thread waits, and whoever wants its records can turn away; it ends with the next
//! record, or with the process.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread;

use flowjoin_core::IoError;
use tokio::sync::mpsc;

use super::reader::{Decode, Decoded, Failure, Outcome};

/// Records that are read elsewhere, as they come.
pub(super) struct Waiting<T> {
    records: mpsc::Receiver<Next<T>>,
    /// One that has come, and has not been taken.
    come: Option<Next<T>>,
    /// The bytes of the one that was taken last, if it is a row.
    raw: Vec<u8>,
}

/// What there is next; or what the thread has panicked with.
type Next<T> = thread::Result<Result<Option<Come<T>>, Failure>>;

/// A record that has come, and its bytes if it is a row.
struct Come<T> {
    decoded: Decoded<T>,
    raw: Vec<u8>,
}

fn next<T>(decode: &mut impl Decode<T>) -> Result<Option<Come<T>>, Failure> {
    let Some(decoded) = decode.next()? else { return Ok(None) };
    let raw = match decoded.outcome {
        Outcome::Row(_) => decode.raw().to_vec(),
        Outcome::Bad { .. } | Outcome::PassedOver { .. } | Outcome::Blank => Vec::new(),
    };
    Ok(Some(Come { decoded, raw }))
}

impl<T: Send + 'static> Waiting<T> {
    /// Begins to read.
    pub(super) fn begin(mut decode: impl Decode<T> + 'static, path: &Path) -> Result<Waiting<T>, IoError> {
        let (sender, records) = mpsc::channel(AHEAD_MAX);
        let read = move || {
            loop {
                let next = catch_unwind(AssertUnwindSafe(|| next(&mut decode)));
                let last = !matches!(next, Ok(Ok(Some(_))));
                if sender.blocking_send(next).is_err() || last {
                    return;
                }
            }
        };
        let begun = thread::Builder::new().name("flowjoin-pipe".to_string()).spawn(read);
        begun.map_err(|cause| IoError::caused(format!("cannot begin to read `{}`", path.display()), cause))?;
        Ok(Waiting { records, come: None, raw: Vec::new() })
    }

    /// Waits until there is a next record, or a reason why there is none. Nothing is lost if that is dropped.
    pub(super) async fn wait(&mut self) {
        if self.come.is_none() {
            // The thread has said all that it had to say, and the last of it was taken.
            self.come = Some(self.records.recv().await.unwrap_or(Ok(Ok(None))));
        }
    }

    /// What has come; nothing if that would have to be waited for.
    pub(super) fn ready(&mut self) -> Option<Result<Option<Decoded<T>>, Failure>> {
        let next = self.come.take().or_else(|| self.records.try_recv().ok())?;
        let next = next.unwrap_or_else(|panic| resume_unwind(panic));
        Some(next.map(|come| {
            let Come { decoded, raw } = come?;
            self.raw = raw;
            Some(decoded)
        }))
    }

    /// The record that was taken last, if it is a row, as it came.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }
}

/// So many records are read before they are asked for.
const AHEAD_MAX: usize = 256;

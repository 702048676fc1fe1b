//! One file that the writers of all tasks share.
//!
//! The file is created when the first writer of a run opens and finished when the last one closes. Bytes are written
//! a whole batch under one lock, so no line is ever cut by another task's.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use flate2::Compression;
use flate2::write::GzEncoder;
use flowjoin_core::io::Endpoint;
use flowjoin_core::{Batch, IoError, RowKind};

use super::open;

/// The path and name of a sink, and its file while a run goes on.
#[derive(Debug)]
pub(super) struct SharedFile {
    path: PathBuf,
    pub(super) name: String,
    run: Mutex<Weak<Mutex<Output>>>,
}

impl SharedFile {
    pub(super) fn new(path: PathBuf) -> SharedFile {
        let name = open::stem(&path);
        SharedFile { path, name, run: Mutex::new(Weak::new()) }
    }

    pub(super) fn endpoint(&self, kind: &str) -> Endpoint {
        Endpoint::new(kind, &self.name).with_detail(self.path.display().to_string()).writing([self.path.clone()])
    }

    /// A writer for one more task; the first of a run creates the file, or empties it.
    pub(super) fn open(&self) -> Result<SharedWriter, IoError> {
        let mut run = locked(&self.run);
        if let Some(output) = run.upgrade() {
            let mut inside = locked(&output);
            if inside.open_writers > 0 {
                inside.open_writers += 1;
                drop(inside);
                return Ok(SharedWriter { output });
            }
        }
        let output = Arc::new(Mutex::new(Output::create(&self.path)?));
        *run = Arc::downgrade(&output);
        Ok(SharedWriter { output })
    }
}

/// One task's hold on the file.
pub(super) struct SharedWriter {
    output: Arc<Mutex<Output>>,
}

impl SharedWriter {
    /// Writes whole lines; before the first of the file, the header.
    pub(super) fn write(&self, header: &[u8], lines: &[u8]) -> Result<(), IoError> {
        locked(&self.output).attempt(|output| {
            if !output.begun {
                output.file.write_all(header)?;
                output.begun = true;
            }
            output.file.write_all(lines)
        })
    }

    /// Makes visible what has been written.
    pub(super) fn flush(&self) -> Result<(), IoError> {
        locked(&self.output).attempt(|output| output.file.flush())
    }

    /// Nothing more comes from this task; the last one finishes the file. Called once.
    pub(super) fn close(&self) -> Result<(), IoError> {
        let mut output = locked(&self.output);
        assert!(output.open_writers > 0, "a writer closes once");
        output.open_writers -= 1;
        let last = output.open_writers == 0;
        output.attempt(|output| match last {
            true => output.file.finish(),
            false => output.file.flush(),
        })
    }
}

#[derive(Debug)]
struct Output {
    file: Encoder,
    path: PathBuf,
    open_writers: usize,
    /// Whether the header, or anything, has been written.
    begun: bool,
}

impl Output {
    fn create(path: &Path) -> Result<Output, IoError> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, open::create(path)?);
        let file = match open::is_gzip(path) {
            true => Encoder::Gzip(GzEncoder::new(file, Compression::default())),
            false => Encoder::Plain(file),
        };
        Ok(Output { file, path: path.to_path_buf(), open_writers: 1, begun: false })
    }

    fn attempt(&mut self, act: impl FnOnce(&mut Output) -> io::Result<()>) -> Result<(), IoError> {
        act(self).map_err(|cause| IoError::caused(format!("cannot write `{}`", self.path.display()), cause))
    }
}

#[derive(Debug)]
enum Encoder {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Encoder {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Encoder::Plain(file) => file.write_all(bytes),
            Encoder::Gzip(file) => file.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Plain(file) => file.flush(),
            Encoder::Gzip(file) => file.flush(),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Encoder::Plain(file) => file.flush(),
            Encoder::Gzip(file) => {
                file.try_finish()?;
                file.get_mut().flush()
            }
        }
    }
}

/// A sink of rows gets only inserts; the plan has seen to that.
pub(super) fn only_inserts<T>(batch: &Batch<T>) -> Result<(), IoError> {
    match batch.iter().find(|(kind, _, _)| *kind != RowKind::Insert) {
        None => Ok(()),
        Some((kind, _, _)) => Err(IoError::new(format!("a sink of rows was handed a {kind}; please report this"))),
    }
}

/// A panic while the lock was held is reported by its own task; what was written before still stands.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const BUFFER_BYTES: usize = 64 << 10;

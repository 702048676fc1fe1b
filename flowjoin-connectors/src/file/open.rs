//! Opening files, to read and to write, with errors that say what, where and what to do.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;
use flowjoin_core::IoError;

use super::reader::Failure;

/// The decompressed bytes of a file, and how far the file itself has been read.
pub(super) struct Opened {
    pub(super) bytes: Box<dyn Read + Send>,
    pub(super) meter: Meter,
}

/// How much of a file has been read; both are bytes as they lie on the disk.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    read: Arc<AtomicU64>,
    size: u64,
}

impl Meter {
    /// Read so far, and the size: that at opening, or more if the file has grown since.
    pub(super) fn done(&self) -> (u64, u64) {
        let read = self.read.load(Ordering::Relaxed);
        (read, self.size.max(read))
    }
}

struct Metered {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Opens a file to be read.
pub(super) fn open(path: &Path) -> Result<Opened, IoError> {
    let metadata = fs::metadata(path).map_err(|cause| unreadable(path, cause))?;
    if metadata.is_dir() {
        return Err(IoError::new(format!("cannot read `{}`: it is a directory; name the files in it", path.display())));
    }
    let file = File::open(path).map_err(|cause| unreadable(path, cause))?;
    let read = Arc::new(AtomicU64::new(0));
    let meter = Meter { read: read.clone(), size: metadata.len() };
    let metered = Metered { file, read };
    let bytes: Box<dyn Read + Send> = match is_gzip(path) {
        true => Box::new(Members { decoder: Some(GzDecoder::new(BufReader::with_capacity(BLOCK_BYTES, metered))) }),
        false => Box::new(metered),
    };
    Ok(Opened { bytes, meter })
}

/// Whether a read may wait for somebody: anything but a file on a disk, such as a pipe or a terminal.
pub(super) fn may_wait(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// The members of a gzip file, one after the other, as far as there are any.
struct Members<R> {
    /// That of the member that is being read; nothing at the end.
    decoder: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let count = decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut rest) = self.decoder.take().map(GzDecoder::into_inner) else { break };
            let next = rest.fill_buf()?;
            if next.is_empty() {
                break;
            }
            if !next.starts_with(&GZIP_MAGIC[..next.len().min(GZIP_MAGIC.len())]) {
                let shown = String::from_utf8_lossy(&next[..next.len().min(SHOWN_BYTES)]).into_owned();
                return Err(io::Error::new(ErrorKind::InvalidData, BehindTheEnd(shown)));
            }
            self.decoder = Some(GzDecoder::new(rest));
        }
        Ok(0)
    }
}

/// What stands behind the end of the data of a gzip file, and is none: its first bytes.
#[derive(Debug)]
struct BehindTheEnd(String);

impl fmt::Display for BehindTheEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "behind the end of what is gzip stands what is not: {:?}", self.0)
    }
}

impl std::error::Error for BehindTheEnd {}

fn unreadable(path: &Path, cause: io::Error) -> IoError {
    let what = format!("cannot read `{}`", path.display());
    match cause.kind() {
        ErrorKind::NotFound => {
            let from = match std::env::current_dir() {
                Ok(directory) if path.is_relative() => format!(" (looked for from {})", directory.display()),
                _ => String::new(),
            };
            IoError::caused(format!("{what}{from}; check the path"), cause)
        }
        ErrorKind::PermissionDenied => IoError::caused(format!("{what}; check who may read it"), cause),
        _ => IoError::caused(what, cause),
    }
}

/// Why a file that broke off while being read, after so many whole lines, is read no further. Of a gzip file that is
/// damaged, what came before is good.
pub(super) fn broken(path: &Path, line: u64, raw: &[u8], meter: &Meter, cause: io::Error) -> Failure {
    let what = format!("cannot read `{}` beyond line {line}", path.display());
    let remedy = match cause.kind() {
        _ if cause.get_ref().is_some_and(|cause| cause.is::<BehindTheEnd>()) => {
            "cut that off, if all rows are there without it"
        }
        ErrorKind::UnexpectedEof if is_gzip(path) => {
            "the gzip file ends in the middle: was it copied whole, and is it gzip?"
        }
        ErrorKind::InvalidInput | ErrorKind::InvalidData if is_gzip(path) => {
            "its name says gzip: is it gzip, and undamaged?"
        }
        _ => return Failure::Io(IoError::caused(what, cause)),
    };
    let reason = format!("{what}, at or before byte {} of the file; {remedy}: {cause}", meter.done().0);
    Failure::Damaged { reason, line: line + 1, raw: raw.to_vec() }
}

/// Refuses a file whose first bytes are those of gzip though its name does not say so.
pub(super) fn refuse_gzip(path: &Path, first: &[u8]) -> Result<(), IoError> {
    if first.starts_with(GZIP_MAGIC) {
        let what = format!("`{}` is gzip; give it a name that ends in `.gz`", path.display());
        return Err(IoError::new(what));
    }
    Ok(())
}

/// Creates a file and the directories above it; one that is there is emptied. What is the output of the process itself is
/// written on where that is, as others write to it too.
pub(super) fn create(path: &Path) -> Result<File, IoError> {
    let what = || format!("cannot write `{}`", path.display());
    if let Some(output) = own_output(path) {
        return output.map(File::from).map_err(|cause| IoError::caused(what(), cause));
    }
    if path.is_dir() {
        return Err(IoError::new(format!("{}: it is a directory; name a file in it", what())));
    }
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => fs::create_dir_all(above)
            .map_err(|cause| IoError::caused(format!("{}, as its directory cannot be created", what()), cause))?,
        _ => {}
    }
    // Appending makes whole lines of several writers stand one after the other, also if two sinks share the file.
    let file = File::options().append(true).create(true).open(path).map_err(|cause| IoError::caused(what(), cause))?;
    // A device or a pipe has no length; what is written to it cannot be taken back anyway.
    let metadata = file.metadata().map_err(|cause| IoError::caused(what(), cause))?;
    if metadata.is_file() {
        file.set_len(0).map_err(|cause| IoError::caused(what(), cause))?;
    }
    Ok(file)
}

// The output that a path means, if it is one of the process. To open it anew would begin at its first byte.
#[cfg(unix)]
fn own_output(path: &Path) -> Option<io::Result<OwnedFd>> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(io::stdout().as_fd().try_clone_to_owned()),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(io::stderr().as_fd().try_clone_to_owned()),
        _ => None,
    }
}

#[cfg(not(unix))]
fn own_output(_: &Path) -> Option<io::Result<File>> {
    None
}

/// Whether the name says that the file is gzip.
pub(super) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("gz"))
}

/// The name of a file without directories and suffix: `orders` for `data/orders.jsonl.gz`.
pub(super) fn stem(path: &Path) -> String {
    let unzipped = match is_gzip(path) {
        true => path.with_extension(""),
        false => path.to_path_buf(),
    };
    unzipped.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What is read from the disk at once.
pub(super) const BLOCK_BYTES: usize = 128 << 10;
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// How much of what stands behind the end of a file is shown.
const SHOWN_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stem_has_no_directories_and_no_suffix() {
        for (path, name) in [
            ("data/orders.jsonl.gz", "orders"),
            ("orders.jsonl", "orders"),
            ("/tmp/orders.2013.csv.GZ", "orders.2013"),
            ("orders", "orders"),
            (".hidden", ".hidden"),
        ] {
            assert_eq!(stem(Path::new(path)), name, "{path}");
        }
    }
}

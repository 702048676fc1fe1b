//! The folder of a store: all that is done to it, and what is said where that does not work.
//!
//! A file is written under a name of its own for what is not ready, brought to the disk, and only then given the name
//! under which it counts. That a name has changed is on the disk once the folder was brought there too.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flowjoin_core::state::StoreError;

/// A folder.
#[derive(Clone, Debug)]
pub struct Disk {
    folder: PathBuf,
    #[cfg(test)]
    pub journal: super::tests::Journal,
}

impl Disk {
    /// This folder, which is made if it is not there.
    pub fn open(folder: &Path) -> Result<Disk, StoreError> {
        let disk = Disk {
            folder: folder.to_path_buf(),
            #[cfg(test)]
            journal: super::tests::Journal::default(),
        };
        if !folder.is_dir() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, "be made", &error))?;
            // That the folder is in its own parent must be on the disk too.
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            sync_folder(parent).map_err(|error| failed(parent, "be brought to the disk", &error))?;
        }
        Ok(disk)
    }

    /// Keeps everyone else out, in this process and in others, for as long as the file lives.
    pub fn lock(&self) -> Result<File, StoreError> {
        let path = self.path(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| failed(&path, "be opened", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(StoreError::new(format!(
                "the store in `{}` is already open, here or in another process; end that one, or give this one another \
                 folder",
                self.folder.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed(&path, "be locked", &error)),
        }
    }

    /// Where a file of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The names of all files.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let list = || -> io::Result<Vec<String>> {
            fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        };
        list().map_err(|error| failed(&self.folder, "be listed", &error))
    }

    /// Begins a file that will have this name once it is [whole](Unfinished::finish).
    pub fn create(&self, name: &str) -> Result<Unfinished, StoreError> {
        let temporary = format!("{name}{TEMPORARY}");
        let path = self.path(&temporary);
        let file = File::create(&path).map_err(|error| failed(&path, "be made", &error))?;
        #[cfg(test)]
        self.journal.note(super::tests::Step::Create(temporary.clone()));
        Ok(Unfinished { disk: self.clone(), name: name.to_string(), temporary, file: Some(file) })
    }

    /// Brings to the disk which names there are.
    pub fn sync(&self) -> Result<(), StoreError> {
        sync_folder(&self.folder).map_err(|error| failed(&self.folder, "be brought to the disk", &error))?;
        #[cfg(test)]
        self.journal.note(super::tests::Step::SyncFolder);
        Ok(())
    }

    /// Removes a file that does not count any more. One that stays does no harm, and goes when the store is opened.
    pub fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
        #[cfg(test)]
        self.journal.note(super::tests::Step::Remove(name.to_string()));
    }

    /// A file that counts is not what was written.
    pub fn damaged(&self, name: &str, what: &str) -> StoreError {
        StoreError::new(format!(
            "`{}` is damaged: {what}; put the whole folder back from a copy, or remove it to begin without its state",
            self.path(name).display()
        ))
    }

    /// Something cannot be done to a file of this name.
    pub fn failed(&self, name: &str, what: &str, error: &io::Error) -> StoreError {
        failed(&self.path(name), what, error)
    }
}

/// A file that is being written, and goes if it does not become whole.
#[derive(Debug)]
pub struct Unfinished {
    disk: Disk,
    name: String,
    temporary: String,
    // None once it is whole.
    file: Option<File>,
}

impl Unfinished {
    /// Puts bytes behind those that are there.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(|error| self.disk.failed(&self.temporary, "be written", &error))?;
        #[cfg(test)]
        self.disk.journal.note(super::tests::Step::Write(self.temporary.clone(), bytes.to_vec()));
        Ok(())
    }

    /// Brings it to the disk, under the name by which it is not read.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_all().map_err(|error| self.disk.failed(&self.temporary, "be brought to the disk", &error))?;
        #[cfg(test)]
        self.disk.journal.note(super::tests::Step::Sync(self.temporary.clone()));
        Ok(())
    }

    /// Gives it its name. It is to be brought to the disk before, and the folder after.
    pub fn finish(mut self) -> Result<(), StoreError> {
        let (from, to) = (self.disk.path(&self.temporary), self.disk.path(&self.name));
        fs::rename(&from, &to).map_err(|error| failed(&to, "be put in its place", &error))?;
        self.file = None;
        #[cfg(test)]
        self.disk.journal.note(super::tests::Step::Rename(self.temporary.clone(), self.name.clone()));
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.disk.remove(&self.temporary);
        }
    }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> StoreError {
    StoreError::new(format!(
        "`{}` cannot {what}: {error}; see that there is room and that it may be read and written, then start again",
        path.display()
    ))
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

// Elsewhere a folder cannot be opened as a file, and the system orders changes of names itself.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The file that is locked.
const LOCK: &str = "lock";
/// How the name of a file ends that is not whole.
pub const TEMPORARY: &str = ".tmp";

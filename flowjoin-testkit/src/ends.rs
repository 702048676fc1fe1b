//! A source and a sink that exist only under test: they have a name and cannot be opened.

use flowjoin_core::error::IoError;
use flowjoin_core::io::{Endpoint, Reader, Sink, StreamSource, TableChange, TableSource, TakesChanges, Writer};
use flowjoin_core::{Data, Keyed};

/// A source that the test driver feeds.
#[derive(Clone, Debug)]
pub struct TestSource {
    name: String,
    patches: bool,
}

impl TestSource {
    /// A source of this name.
    pub fn new(name: impl Into<String>) -> TestSource {
        TestSource { name: name.into(), patches: false }
    }

    /// The same, of a table whose rows may be told in part, as those of Debezium are.
    pub fn with_patches(mut self) -> TestSource {
        self.patches = true;
        self
    }
}

impl<T: Keyed> TableSource<T> for TestSource {
    fn tells_patches(&self) -> bool {
        self.patches
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("test", self.name.clone())
    }

    fn partitions(&self) -> Result<usize, IoError> {
        Ok(1)
    }

    fn open(&self, _: usize) -> Result<Box<dyn Reader<TableChange<T>>>, IoError> {
        Err(IoError::new(format!("`{}` is a test source: only a test driver feeds it", self.name)))
    }
}

impl<T: Data> StreamSource<T> for TestSource {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("test", self.name.clone())
    }

    fn partitions(&self) -> Result<usize, IoError> {
        Ok(1)
    }

    fn open(&self, _: usize) -> Result<Box<dyn Reader<T>>, IoError> {
        Err(IoError::new(format!("`{}` is a test source: only a test driver feeds it", self.name)))
    }
}

/// A sink that the test driver reads.
#[derive(Clone, Debug)]
pub struct TestSink {
    name: String,
}

impl TestSink {
    /// A sink of this name.
    pub fn new(name: impl Into<String>) -> TestSink {
        TestSink { name: name.into() }
    }
}

impl<T: Data> Sink<T> for TestSink {
    type Takes = TakesChanges;

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("test", self.name.clone())
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Err(IoError::new(format!("`{}` is a test sink: only a test driver reads it", self.name)))
    }
}

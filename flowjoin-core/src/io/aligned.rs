//! A source that is read in step with others.

use std::sync::Arc;

use super::erased::{AnyReader, AnySource};
use super::{BadRecords, Endpoint};
use crate::error::IoError;
use crate::op::source::{AnyPage, Stamp};
use crate::time::EventTime;
use crate::watermark::{Align, Watermarks};

/// A source and the group that it is read in step with; all else is as the source has it.
pub struct Aligned {
    source: Arc<dyn AnySource>,
    align: Align,
}

impl Aligned {
    /// Puts a source into a group.
    pub fn new(source: Arc<dyn AnySource>, align: Align) -> Aligned {
        Aligned { source, align }
    }
}

impl AnySource for Aligned {
    fn endpoint(&self) -> Endpoint {
        self.source.endpoint()
    }
    fn strategy(&self) -> Watermarks {
        self.source.strategy()
    }
    fn align(&self) -> Option<&Align> {
        Some(&self.align)
    }
    fn partitions(&self) -> Result<usize, IoError> {
        self.source.partitions()
    }
    fn open(&self, partition: usize) -> Result<Box<dyn AnyReader>, IoError> {
        self.source.open(partition)
    }
    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.source.bad_records()
    }
    fn stamp(&self) -> Box<dyn Stamp> {
        self.source.stamp()
    }
    fn field_names(&self) -> Option<&'static [&'static str]> {
        self.source.field_names()
    }
    fn page_of(
        &self,
        rows: Vec<serde_json::Value>,
        arrival: EventTime,
    ) -> Result<(AnyPage, Option<EventTime>), serde_json::Error> {
        self.source.page_of(rows, arrival)
    }
}

//! State: what an operator keeps between rows.
//!
//! Rows live in a [`Slab`] and are known elsewhere by [`RowId`]; keyed views hold lists of ids. A view is sharded by
//! key group, which is the unit to grow, expire and move. Nothing is encoded while it only lives in memory, and no
//! view exposes an order of iteration that is not defined.

mod agenda;
mod ahead;
mod bits;
mod changes;
mod chunks;
mod codec;
mod equal;
mod expired;
mod expiry;
mod fields;
mod grouping;
mod journal;
mod marks;
mod met;
mod numbered;
mod panes;
mod queue;
mod rows;
mod sample;
mod sessions;
mod slab;
mod slots;
mod store;
mod table;
mod timeline;
mod told;
mod versions;

pub use agenda::Agenda;
pub use ahead::Ahead;
pub use bits::Bits;
pub use changes::{Changes, Owner, Sealed, Sealing};
pub use chunks::Chunks;
pub use codec::{decode, encode, read_row, write_row};
pub use equal::{Equality, equal_rows};
pub use expired::Expired;
pub use expiry::{Due, Expiry};
pub use fields::{Fields, ReadFields};
pub use grouping::Grouping;
pub use met::Met;
pub use numbered::{Numbered, number_of};
pub use panes::{Logged, Panes, Standing};
pub use rows::{Hushed, KeyedRows, Lists, Runs, Spill};
pub use sample::Sample;
pub use sessions::{Member, Session, Sessions};
pub use slab::{Held, Slab};
pub use slots::Slots;
pub use store::{Epoch, MemStore, StateStore, StoreError, StoreStats};
pub use table::{Guess, Place, Table, prefetch, prefetch_all};
pub use timeline::{Side, Timeline};
pub use told::{Extent, FirstStretches, Told};
pub use versions::{Found, Inserted, Version, Versions};

use crate::time::Span;

/// The number of a row of one input of one task, and where it stands: in the [`Slab`] of its input, or in the [`Slots`]
/// beside the rows of other inputs with its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowId(u32);

impl RowId {
    /// No row: the place of an optional input that is empty.
    pub const MISSING: RowId = RowId(u32::MAX);

    /// How many rows one slab can number.
    pub const LIMIT: usize = (1 << 29) - 1;

    /// The id with this index.
    pub const fn new(index: u32) -> RowId {
        RowId(index)
    }

    /// The id of a row in the slab of its input.
    pub const fn in_slab(number: u32) -> RowId {
        RowId(number << 1)
    }

    /// The id of a row in the slot of this number.
    pub const fn in_slot(number: u32) -> RowId {
        RowId(number << 1 | 1)
    }

    /// The slot that the row stands in, if it stands in one.
    #[inline]
    pub const fn slot(self) -> Option<u32> {
        if self.0 & 1 == 1 && !self.is_missing() { Some(self.0 >> 1) } else { None }
    }

    /// Its index: no other row of its input has it, and indexes are small while rows are few.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether it stands for no row.
    pub const fn is_missing(self) -> bool {
        self.0 == u32::MAX
    }
}

/// The clock that a time-to-live runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// The clock of the machine.
    Processing,
    /// The watermark.
    Event,
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Clock::Processing => "processing time",
            Clock::Event => "event time",
        })
    }
}

/// How long a row is kept after it was written. There is no default: for ever must be spelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ttl {
    /// A row has expired when its last write + this span is at or before now, on this clock.
    For(Span, Clock),
    /// Rows are never dropped; state grows with the input.
    Forever,
}

impl Ttl {
    /// The span and the clock, if rows expire at all.
    pub const fn span(self) -> Option<(Span, Clock)> {
        match self {
            Ttl::For(span, clock) => Some((span, clock)),
            Ttl::Forever => None,
        }
    }
}

/// What says how long rows are kept: a [`Span`], which is one of processing time, or a [`Ttl`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no time-to-live",
    label = "of what unit is this, if it is a number?",
    note = "say the unit: `.ttl(hours(24))`, `.ttl(secs(3_600))`; on event time, `.ttl(hours(24).on(Clock::Event))`"
)]
pub trait TimeToLive {
    /// How long that is, and on which clock.
    fn to_ttl(self) -> Ttl;
}

impl TimeToLive for Span {
    fn to_ttl(self) -> Ttl {
        self.into()
    }
}

impl TimeToLive for Ttl {
    fn to_ttl(self) -> Ttl {
        self
    }
}

impl From<Span> for Ttl {
    /// A span alone is one of processing time.
    fn from(span: Span) -> Ttl {
        Ttl::For(span, Clock::Processing)
    }
}

impl Span {
    /// A time-to-live of this length on a clock: `hours(24).on(Clock::Event)`.
    pub const fn on(self, clock: Clock) -> Ttl {
        Ttl::For(self, clock)
    }
}

impl std::fmt::Display for Ttl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ttl::For(span, clock) => write!(f, "ttl {span} ({clock})"),
            Ttl::Forever => f.write_str("kept for ever"),
        }
    }
}

/// The shape of a state view, for explain and for finding it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateShape {
    /// Lists of rows by key, one list an input.
    KeyedRows,
    /// Rows by key and time, one line an input.
    Timeline,
    /// The rows of a table by their key.
    Rows,
    /// Rows by the windows of time that they are in.
    Panes,
    /// Rows by key and session.
    Sessions,
}

/// What an operator keeps for one of its inputs; known before anything runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateSpec {
    /// The name of the input.
    pub input: String,
    /// The view.
    pub shape: StateShape,
    /// How long a row stays.
    pub keeps: Keeps,
}

/// How long a state view keeps a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// For a time-to-live.
    Ttl(Ttl),
    /// Until the watermark is so far past the row's time.
    PastTime(Span),
    /// For as long as it is the row of its key.
    Standing,
    /// Until the other input has been loaded.
    Passing,
    /// Not at all.
    Nothing,
    /// While it may hold for a time that is still asked for: until a newer version of its key is so far behind the
    /// watermark, or it has been held for a time.
    Newest {
        /// How far behind the watermark rows are still looked up.
        behind: Span,
        /// How long a version holds at the most.
        hold: Option<Span>,
    },
    /// Until the watermark passes the end of its last window by so much.
    PastWindow(Span),
}

impl std::fmt::Display for Keeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Keeps::Ttl(ttl) => write!(f, "{ttl}"),
            Keeps::Standing => f.write_str("as long as they stand"),
            Keeps::Passing => f.write_str("until the table is loaded"),
            Keeps::Nothing => f.write_str("not kept"),
            Keeps::Newest { behind, hold } => {
                f.write_str("the newest at or before the watermark")?;
                if *behind > Span::ZERO {
                    write!(f, " − {behind}")?;
                }
                f.write_str(", and those after it")?;
                hold.map_or(Ok(()), |hold| write!(f, ", each for {hold}"))
            }
            Keeps::PastTime(Span::ZERO) => f.write_str("until the watermark passes its time"),
            Keeps::PastWindow(Span::ZERO) => f.write_str("until the watermark reaches their window's end"),
            Keeps::PastWindow(lateness) => write!(f, "until the watermark reaches their window's end + {lateness}"),
            Keeps::PastTime(span) if span.is_negative() => {
                write!(f, "until the watermark passes its time − {}", -*span)
            }
            Keeps::PastTime(span) => write!(f, "until the watermark passes its time + {span}"),
        }
    }
}

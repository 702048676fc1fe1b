//! What a join is told when it is built.

use super::super::conditional::Steps;
use super::super::kernel::Kind;
use crate::state::Ttl;
use crate::time::Span;

/// What a join of N inputs is to do.
#[derive(Clone, Debug)]
pub struct Spec<const N: usize> {
    /// What each input does to the result.
    pub kinds: [Kind; N],
    /// A bit for each input with a condition between it and those on its left.
    pub conditions: u16,
    /// Which inputs update and take back their rows.
    pub changes: [bool; N],
    /// Which inputs have at most one row a key.
    pub one_a_key: [bool; N],
    /// How long the rows of each input are kept.
    pub ttls: [Ttl; N],
    /// What the expiry of a row does to what it gave.
    pub on_expiry: OnExpiry,
    /// When a gap of each input is told.
    pub emit: [Emit; N],
    /// A bit for each input that takes the changes of a table as its source tells them. Such an input has at most one row
    /// a key, and they do not expire.
    pub tables: u16,
    /// The name of each input.
    pub names: [String; N],
}

/// What the expiry of a row does to what it gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnExpiry {
    /// What it gave stands.
    Silent,
    /// Its partners come out without it, where they can; what required it stands.
    Unmatch,
    /// What it gave is taken back, as if it had been deleted.
    Retract,
}

/// When the gap of an optional input is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// At once; it is taken back when it is filled.
    Eager,
    /// After a delay on the processing clock, unless it was filled before; it is taken back when it is filled later.
    EagerAfter(Span),
    /// When it can no longer be filled: a row beside it has left, or the input has ended.
    Final,
}

impl<const N: usize> Spec<N> {
    /// The steps of the conditional kernel, if any input has a condition.
    pub(super) fn steps(&self) -> Option<Steps<N>> {
        let with = (1..N).filter(|input| self.conditions >> input & 1 == 1);
        (self.conditions != 0).then(|| with.fold(Steps::of(self.kinds), Steps::on))
    }

    /// Whether the rows of an input leave in silence, and a gap of it may then be one that was never told.
    pub(super) fn hushes(&self, input: usize) -> bool {
        self.kinds[input] != Kind::Required && self.ttls[input] != Ttl::Forever && self.on_expiry == OnExpiry::Silent
    }

    /// Whether the expiry of a row of an input counts as its deletion.
    pub(super) fn expiry_retracts(&self, input: usize) -> bool {
        match self.on_expiry {
            OnExpiry::Silent => false,
            OnExpiry::Unmatch => self.kinds[input] != Kind::Required,
            OnExpiry::Retract => true,
        }
    }

    /// Whether an input takes the changes of a table as its source tells them.
    pub(super) fn is_table(&self, input: usize) -> bool {
        self.tables >> input & 1 == 1
    }

    /// Whether some gaps are not told at once.
    pub(super) fn waits(&self) -> bool {
        self.emit.iter().any(|&emit| emit != Emit::Eager)
    }

    /// Whether each row of an input is in the result the moment it comes, whatever the other inputs hold.
    pub(super) fn stands_alone(&self, input: usize) -> bool {
        let empty = |other: usize| other == input || self.kinds[other].may_be_empty();
        self.kinds[input].shows() && (0..N).all(empty)
    }
}

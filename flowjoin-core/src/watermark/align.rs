//! Alignment: a partition that is too far ahead of the slowest one of its group is not read.
//!
//! The limit is the least watermark over the members that are active, plus the drift. One that is active and has not
//! said anything yet is at the beginning of time. An idle or a finished one is left out, so that it never stops the
//! others.

use super::Progress;
use crate::time::{Span, Watermark};

/// The group that a source is read in step with, and how far its partitions may be apart in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Align {
    /// The name of the group.
    pub group: String,
    /// How far ahead of the slowest one a partition may be.
    pub max_drift: Span,
}

impl std::fmt::Display for Align {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "aligned in {} within {}", self.group, self.max_drift)
    }
}

/// A group of partitions that may drift apart by a bounded span of event time.
#[derive(Clone, Debug)]
pub struct Alignment {
    max_drift: Span,
    members: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    watermark: Watermark,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Active,
    Idle,
    Finished,
}

impl Alignment {
    /// A group without members.
    pub fn new(max_drift: Span) -> Alignment {
        Alignment { max_drift, members: Vec::new() }
    }

    /// Takes in one more, which is active and at the beginning of time; returns its number.
    pub fn join(&mut self) -> usize {
        self.members.push(Member { watermark: Watermark::NONE, state: State::Active });
        self.members.len() - 1
    }

    /// A member says how far it is; returns whether that moves the limit.
    pub fn update(&mut self, member: usize, progress: Progress) -> bool {
        let before = self.limit();
        let member = &mut self.members[member];
        match (progress, member.state) {
            (_, State::Finished) => {}
            (Progress::At(watermark), State::Active | State::Idle) => {
                member.watermark = member.watermark.max(watermark);
                member.state = State::Active;
            }
            (Progress::Active, State::Active | State::Idle) => member.state = State::Active,
            (Progress::Idle, State::Active | State::Idle) => member.state = State::Idle,
            (Progress::End | Progress::Stopped, State::Active | State::Idle) => {
                *member = Member { watermark: Watermark::END, state: State::Finished };
            }
        }
        before != self.limit()
    }

    /// How far a member may be; none while nobody is active.
    pub fn limit(&self) -> Option<Watermark> {
        let active = self.members.iter().filter(|member| member.state == State::Active);
        let least = active.map(|member| member.watermark).min()?;
        Some(Watermark::at(least.time().plus(self.max_drift)))
    }

    /// Whether this member is beyond the limit and must not be read now.
    pub fn is_paused(&self, member: usize) -> bool {
        self.limit().is_some_and(|limit| self.members[member].watermark > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{EventTime, millis};

    fn group(members: usize) -> Alignment {
        let mut group = Alignment::new(millis(100));
        for _ in 0..members {
            group.join();
        }
        group
    }

    fn at(t: i64) -> Progress {
        Progress::At(Watermark::at(EventTime::from_millis(t)))
    }

    #[test]
    fn the_one_ahead_waits_until_the_slowest_has_come() {
        let mut group = group(2);
        group.update(1, at(10));
        group.update(0, at(500));
        assert!(group.is_paused(0) && !group.is_paused(1));
        assert!(group.update(1, Progress::Idle));
        assert!(!group.is_paused(0));
        group.update(1, Progress::Active);
        assert!(group.is_paused(0));
        group.update(1, at(399));
        assert!(group.is_paused(0));
        assert!(group.update(1, at(400)));
        assert!(!group.is_paused(0));
    }

    #[test]
    fn one_that_has_said_nothing_holds_the_others_until_it_is_idle_or_ends() {
        for gone in [Progress::Idle, Progress::End, Progress::Stopped] {
            let mut group = group(2);
            assert!(!group.is_paused(0));
            assert!(!group.update(0, at(500)));
            assert!(group.is_paused(0) && !group.is_paused(1));
            assert!(group.update(1, gone));
            assert!(!group.is_paused(0));
        }
    }

    #[test]
    fn one_that_has_ended_does_not_come_back() {
        let mut group = group(2);
        group.update(1, Progress::End);
        group.update(1, at(0));
        group.update(0, at(500));
        assert!(!group.is_paused(0));
    }

    #[test]
    fn where_nobody_is_active_nothing_is_forbidden() {
        let mut group = group(2);
        for member in [0, 1] {
            group.update(member, Progress::Idle);
        }
        assert_eq!(group.limit(), None);
        assert!(!group.is_paused(0) && !group.is_paused(1));
    }
}

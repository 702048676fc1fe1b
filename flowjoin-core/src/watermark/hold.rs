//! Which input holds a watermark back, and since when.

use serde::{Deserialize, Serialize};

use super::merge::{InputState, Merge};
use crate::time::{ProcTime, Watermark};

/// How far event time has come at one step, and what keeps it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeFigures {
    /// The watermark over its inputs.
    pub watermark: Watermark,
    /// The watermark that it has told those downstream: behind its own while it holds rows that may still come out.
    pub told: Watermark,
    /// Each input; of a source, each partition.
    pub inputs: Vec<InputTime>,
    /// The input that holds the watermark back, if one does.
    pub holding: Option<Holding>,
}

/// How far one input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputTime {
    /// Whether it is waited for.
    pub state: InputState,
    /// Its watermark.
    pub watermark: Watermark,
}

/// An input without which the watermark would be further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// Which input; of a source, which partition.
    pub input: usize,
    /// Since when the watermark stands where it does because of it.
    pub since: ProcTime,
}

impl Default for InputTime {
    /// Nothing has been heard of it, and it is waited for.
    fn default() -> Self {
        InputTime { state: InputState::Active, watermark: Watermark::NONE }
    }
}

/// Watches a merge for the input that holds it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Hold {
    holding: Option<Holding>,
    at: Watermark,
}

impl Hold {
    /// To be called after each change of the merge.
    pub fn note(&mut self, merge: &Merge, now: ProcTime) {
        let input = merge.holding();
        if input == self.holding.map(|holding| holding.input) && merge.watermark() == self.at {
            return;
        }
        self.at = merge.watermark();
        self.holding = input.map(|input| Holding { input, since: now });
    }

    /// What a step has to tell whose inputs are merged here.
    pub fn figures(&self, merge: &Merge, told: Watermark) -> TimeFigures {
        let inputs = merge.inputs().map(|(state, watermark)| InputTime { state, watermark }).collect();
        TimeFigures { watermark: merge.watermark(), told, inputs, holding: self.holding }
    }
}

impl TimeFigures {
    /// Adds the figures of another task of the same step: an input is in the most awake of its states, the watermark is
    /// the least of the tasks that are waited for, and what holds is what holds the one furthest behind.
    pub fn add(&mut self, other: &TimeFigures) {
        match (self.state(), other.state()) {
            (InputState::Idle, InputState::Idle) => {
                self.watermark = self.watermark.max(other.watermark);
                self.told = self.told.max(other.told);
            }
            (mine, theirs) if mine == theirs => {
                if (other.watermark, Self::since(&other.holding)) < (self.watermark, Self::since(&self.holding)) {
                    self.holding = other.holding;
                }
                self.watermark = self.watermark.min(other.watermark);
                self.told = self.told.min(other.told);
            }
            (mine, theirs) if theirs < mine => {
                self.watermark = other.watermark;
                self.told = other.told;
                self.holding = other.holding;
            }
            _ => {}
        }
        self.inputs.resize(self.inputs.len().max(other.inputs.len()), InputTime::default());
        for (mine, theirs) in self.inputs.iter_mut().zip(&other.inputs) {
            mine.state = mine.state.min(theirs.state);
            mine.watermark = mine.watermark.min(theirs.watermark);
        }
    }

    /// Whether the step is waited for: as its most awake input.
    pub fn state(&self) -> InputState {
        self.inputs.iter().map(|input| input.state).min().unwrap_or(InputState::Active)
    }

    // Of two that are as far behind, the one that is held counts, and of those the one held longer.
    fn since(holding: &Option<Holding>) -> (bool, ProcTime) {
        (holding.is_none(), holding.map_or(ProcTime::default(), |it| it.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::EventTime;
    use crate::watermark::{Progress, Rejoin};

    // Plays what three inputs say, at 1 ms, 2 ms and so on; returns which holds, and since when.
    fn played(said: &[(usize, Progress)]) -> Option<(usize, i64)> {
        let mut merge = Merge::new(3, Rejoin::AtOnce);
        let mut hold = Hold::default();
        for (clock, &(input, progress)) in (1..).zip(said) {
            merge.update(input, progress);
            hold.note(&merge, ProcTime::from_millis(clock));
        }
        hold.figures(&merge, Watermark::NONE).holding.map(|it| (it.input, it.since.as_millis()))
    }

    fn at(t: i64) -> Progress {
        Progress::At(Watermark::at(EventTime::from_millis(t)))
    }

    #[test]
    fn the_one_furthest_behind_holds_from_when_the_watermark_came_to_stand_there() {
        assert_eq!(played(&[(0, at(5)), (1, at(6))]), Some((2, 2)));
        assert_eq!(played(&[(0, at(5)), (1, at(6)), (2, at(4)), (0, at(9)), (1, at(9))]), Some((2, 3)));
        assert_eq!(played(&[(0, at(5)), (1, at(6)), (2, at(7))]), Some((0, 3)));
    }

    #[test]
    fn where_two_are_equally_far_behind_neither_alone_holds() {
        assert_eq!(played(&[]), None);
        assert_eq!(played(&[(0, at(5))]), None);
        assert_eq!(played(&[(0, at(5)), (1, at(5)), (2, at(6))]), None);
    }

    #[test]
    fn idle_and_finished_inputs_hold_nothing_and_the_last_active_one_holds_idle_ones_only() {
        assert_eq!(played(&[(0, at(5)), (1, at(6)), (2, Progress::Idle)]), Some((0, 3)));
        assert_eq!(played(&[(0, at(5)), (1, Progress::End), (2, Progress::End)]), None);
        assert_eq!(played(&[(0, at(5)), (1, at(9)), (1, Progress::Idle), (2, Progress::End)]), Some((0, 4)));
        assert_eq!(played(&[(0, Progress::Idle), (1, Progress::Idle), (2, Progress::Idle)]), None);
    }
}

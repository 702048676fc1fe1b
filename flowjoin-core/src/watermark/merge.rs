//! One watermark from several inputs.
//!
//! W is the least over the active inputs; a finished input counts as the end of time. When all that are left are
//! idle, W is the greatest of theirs, and the merge itself is idle. Once reading an input was stopped, W stays where it is,
//! whatever the others say: rows that were not read are still to come, in another run. W never goes back: an input that wakes behind it
//! either holds W where it is ([`Rejoin::AtOnce`], between the inputs of an operator) or is left out until it has
//! caught up ([`Rejoin::AfterCatchUp`], between the channels of one exchange, where one slow sender among many must
//! not stop the rest).

use serde::{Deserialize, Serialize};

use super::Progress;
use crate::time::Watermark;

/// When an input that was idle counts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejoin {
    /// From its first sign of life: W stands still until it has caught up.
    AtOnce,
    /// Once it has reached W: until then the others move W alone, and its rows behind W are late.
    AfterCatchUp,
}

/// What the merge has to say after a change: first a new watermark, then a new status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The watermark, if it moved.
    pub watermark: Option<Watermark>,
    /// `Idle`, `Active`, `End` or `Stopped`, if that changed.
    pub status: Option<Progress>,
}

/// Whether an input is waited for. The more awake states come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum InputState {
    /// It is: the watermark is not beyond its own.
    Active,
    /// Nothing has come for a while, so it is not; it may wake.
    Idle,
    /// Reading it was stopped before its end.
    Stopped,
    /// Nothing will come any more.
    Finished,
}

impl std::fmt::Display for InputState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            InputState::Active => "active",
            InputState::Idle => "idle",
            InputState::Stopped => "stopped",
            InputState::Finished => "finished",
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Input {
    watermark: Watermark,
    state: InputState,
    counts: bool,
}

/// The watermark of a task, an operator or an input over what feeds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Merge {
    rejoin: Rejoin,
    inputs: Vec<Input>,
    out: Watermark,
    status: InputState,
}

impl Merge {
    /// A merge over so many inputs, all active and without a watermark.
    pub fn new(inputs: usize, rejoin: Rejoin) -> Merge {
        let input = Input { watermark: Watermark::NONE, state: InputState::Active, counts: true };
        Merge { rejoin, inputs: vec![input; inputs], out: Watermark::NONE, status: InputState::Active }
    }

    /// The watermark so far.
    pub fn watermark(&self) -> Watermark {
        self.out
    }

    /// An input says something; returns what has changed for those downstream.
    pub fn update(&mut self, input: usize, progress: Progress) -> Merged {
        match progress {
            Progress::At(watermark) => self.on_watermark(input, watermark),
            Progress::Idle => self.on_state(input, InputState::Idle),
            Progress::Active => self.on_state(input, InputState::Active),
            Progress::End => self.on_state(input, InputState::Finished),
            Progress::Stopped => self.on_state(input, InputState::Stopped),
        }
    }

    /// The inputs: whether each is waited for, and how far it is.
    pub fn inputs(&self) -> impl Iterator<Item = (InputState, Watermark)> {
        let at = |input: &Input| match input.state {
            InputState::Finished => Watermark::END,
            InputState::Active | InputState::Idle | InputState::Stopped => input.watermark,
        };
        self.inputs.iter().map(move |input| (input.state, at(input)))
    }

    /// The input that holds the watermark back: the active one behind all others, without which it would be further.
    /// None if several are equally far behind, or nothing but it is left.
    pub fn holding(&self) -> Option<usize> {
        let active = || self.inputs.iter().enumerate().filter(|(_, input)| input.counts);
        let (index, least) = active().min_by_key(|(_, input)| input.watermark)?;
        let others = active().filter(|&(other, _)| other != index).map(|(_, input)| input.watermark).min();
        let idle =
            self.inputs.iter().filter(|input| input.state == InputState::Idle).map(|input| input.watermark).max();
        others.or(idle).filter(|&others| others > least.watermark).map(|_| index)
    }

    fn on_watermark(&mut self, index: usize, watermark: Watermark) -> Merged {
        let out = self.out;
        let rejoin = self.rejoin;
        let input = &mut self.inputs[index];
        match (input.state, rejoin) {
            (InputState::Finished | InputState::Stopped, _) | (InputState::Idle, Rejoin::AfterCatchUp) => {
                return Merged::default();
            }
            (InputState::Idle, Rejoin::AtOnce) => {
                input.state = InputState::Active;
                input.counts = true;
            }
            (InputState::Active, _) => {}
        }
        if watermark > input.watermark {
            input.watermark = watermark;
            input.counts |= watermark >= out;
        }
        self.settle()
    }

    fn on_state(&mut self, index: usize, state: InputState) -> Merged {
        let out = self.out;
        let input = &mut self.inputs[index];
        if input.state == state || matches!(input.state, InputState::Finished | InputState::Stopped) {
            return Merged::default();
        }
        input.state = state;
        input.counts = match (state, self.rejoin) {
            (InputState::Active, Rejoin::AtOnce) => true,
            (InputState::Active, Rejoin::AfterCatchUp) => input.watermark >= out,
            (InputState::Idle | InputState::Finished | InputState::Stopped, _) => false,
        };
        self.settle()
    }

    fn settle(&mut self) -> Merged {
        let status = self.joint_state();
        let frontier = match status {
            InputState::Active => self.inputs.iter().filter(|i| i.counts).map(|i| i.watermark).min(),
            InputState::Idle => self.inputs.iter().filter(|i| i.state == InputState::Idle).map(|i| i.watermark).max(),
            InputState::Finished => Some(Watermark::END),
            InputState::Stopped => None,
        };
        let moved = frontier.filter(|&frontier| frontier > self.out && !self.is_stopped());
        self.out = moved.unwrap_or(self.out);
        let changed = (status != self.status).then_some(match status {
            InputState::Active => Progress::Active,
            InputState::Idle => Progress::Idle,
            InputState::Finished => Progress::End,
            InputState::Stopped => Progress::Stopped,
        });
        self.status = status;
        Merged { watermark: moved, status: changed }
    }

    // What a stopped input still had to give may lie anywhere after the watermark: that the others go on tells nothing.
    fn is_stopped(&self) -> bool {
        self.inputs.iter().any(|input| input.state == InputState::Stopped)
    }

    // Active if any input is; else idle if any is; a stop anywhere keeps the end from being announced.
    fn joint_state(&self) -> InputState {
        let any = |state| self.inputs.iter().any(|input| input.state == state);
        if any(InputState::Active) {
            InputState::Active
        } else if any(InputState::Idle) {
            InputState::Idle
        } else if any(InputState::Stopped) {
            InputState::Stopped
        } else {
            InputState::Finished
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::EventTime;

    fn at(t: i64) -> Progress {
        Progress::At(Watermark::at(EventTime::from_millis(t)))
    }

    fn moved(merged: Merged) -> Option<i64> {
        merged.watermark.map(|w| w.time().as_millis())
    }

    #[test]
    fn a_finished_input_holds_nothing_back_and_all_finished_is_the_end() {
        let mut merge = Merge::new(2, Rejoin::AtOnce);
        assert_eq!(merge.update(0, Progress::End), Merged::default());
        assert_eq!(moved(merge.update(1, at(5))), Some(5));
        let end = merge.update(1, Progress::End);
        assert_eq!(end, Merged { watermark: Some(Watermark::END), status: Some(Progress::End) });
    }

    #[test]
    fn an_idle_input_beside_a_finished_one_does_not_end_time() {
        let mut merge = Merge::new(2, Rejoin::AtOnce);
        merge.update(0, at(3));
        merge.update(1, Progress::End);
        let idle = merge.update(0, Progress::Idle);
        assert_eq!(idle, Merged { watermark: None, status: Some(Progress::Idle) });
        assert_eq!(merge.watermark(), Watermark::at(EventTime::from_millis(3)));
    }

    #[test]
    fn an_input_that_wakes_behind_never_moves_time_back() {
        for rejoin in [Rejoin::AtOnce, Rejoin::AfterCatchUp] {
            let mut merge = Merge::new(2, rejoin);
            merge.update(1, Progress::Idle);
            assert_eq!(moved(merge.update(0, at(20))), Some(20));
            merge.update(1, Progress::Active);
            assert_eq!(moved(merge.update(1, at(12))), None);
            let expected = if rejoin == Rejoin::AtOnce { None } else { Some(30) };
            assert_eq!(moved(merge.update(0, at(30))), expected);
        }
    }

    #[test]
    fn a_stop_leaves_the_watermark_where_it_is() {
        let mut merge = Merge::new(2, Rejoin::AtOnce);
        merge.update(0, at(3));
        merge.update(1, at(4));
        merge.update(0, Progress::End);
        assert_eq!(merge.update(1, Progress::Stopped).status, Some(Progress::Stopped));
        assert_eq!(merge.watermark(), Watermark::at(EventTime::from_millis(4)));
    }

    #[test]
    fn beside_a_stopped_input_no_other_moves_the_watermark() {
        for rejoin in [Rejoin::AtOnce, Rejoin::AfterCatchUp] {
            for was_idle in [false, true] {
                let mut merge = Merge::new(3, rejoin);
                (0..3).for_each(|input| {
                    merge.update(input, at(3));
                });
                if was_idle {
                    merge.update(0, Progress::Idle);
                }
                merge.update(0, Progress::Stopped);
                for (input, progress) in [(1, at(7)), (2, at(9)), (1, Progress::Idle), (2, Progress::Idle)] {
                    assert_eq!(moved(merge.update(input, progress)), None, "{input} {progress:?}");
                }
                merge.update(1, Progress::End);
                let last = merge.update(2, Progress::End);
                assert_eq!(last, Merged { watermark: None, status: Some(Progress::Stopped) });
                assert_eq!(merge.watermark(), Watermark::at(EventTime::from_millis(3)));
            }
        }
    }
}

//! One watermark from several inputs.
//!
//! W is the least over the active inputs; a finished input counts as the end of time. When all that are left are
//! idle, W is the greatest of theirs, and the merge itself is idle. W never goes back: an input that wakes behind it
//! either holds W where it is ([`Rejoin::AtOnce`], between the inputs of an operator) or is left out until it has
//! caught up ([`Rejoin::AfterCatchUp`], between the channels of one exchange, where one slow sender among many must
//! not stop the rest).

use super::Progress;
use crate::time::Watermark;

/// When an input that was idle counts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Idle,
    Finished,
    Stopped,
}

#[derive(Clone, Debug)]
struct Input {
    watermark: Watermark,
    state: State,
    counts: bool,
}

/// The watermark of a task, an operator or an input over what feeds it.
#[derive(Clone, Debug)]
pub struct Merge {
    rejoin: Rejoin,
    inputs: Vec<Input>,
    out: Watermark,
    status: State,
}

impl Merge {
    /// A merge over so many inputs, all active and without a watermark.
    pub fn new(inputs: usize, rejoin: Rejoin) -> Merge {
        let input = Input { watermark: Watermark::NONE, state: State::Active, counts: true };
        Merge { rejoin, inputs: vec![input; inputs], out: Watermark::NONE, status: State::Active }
    }

    /// The watermark so far.
    pub fn watermark(&self) -> Watermark {
        self.out
    }

    /// An input says something; returns what has changed for those downstream.
    pub fn update(&mut self, input: usize, progress: Progress) -> Merged {
        match progress {
            Progress::At(watermark) => self.on_watermark(input, watermark),
            Progress::Idle => self.on_state(input, State::Idle),
            Progress::Active => self.on_state(input, State::Active),
            Progress::End => self.on_state(input, State::Finished),
            Progress::Stopped => self.on_state(input, State::Stopped),
        }
    }

    /// The input that holds the watermark: the active one that is furthest behind.
    pub fn holding(&self) -> Option<usize> {
        let active = self.inputs.iter().enumerate().filter(|(_, input)| input.state == State::Active);
        active.min_by_key(|(_, input)| input.watermark).map(|(index, _)| index)
    }

    fn on_watermark(&mut self, index: usize, watermark: Watermark) -> Merged {
        let out = self.out;
        let rejoin = self.rejoin;
        let input = &mut self.inputs[index];
        match (input.state, rejoin) {
            (State::Finished | State::Stopped, _) | (State::Idle, Rejoin::AfterCatchUp) => return Merged::default(),
            (State::Idle, Rejoin::AtOnce) => {
                input.state = State::Active;
                input.counts = true;
            }
            (State::Active, _) => {}
        }
        if watermark > input.watermark {
            input.watermark = watermark;
            input.counts |= watermark >= out;
        }
        self.settle()
    }

    fn on_state(&mut self, index: usize, state: State) -> Merged {
        let out = self.out;
        let input = &mut self.inputs[index];
        if input.state == state || matches!(input.state, State::Finished | State::Stopped) {
            return Merged::default();
        }
        input.state = state;
        input.counts = match (state, self.rejoin) {
            (State::Active, Rejoin::AtOnce) => true,
            (State::Active, Rejoin::AfterCatchUp) => input.watermark >= out,
            (State::Idle | State::Finished | State::Stopped, _) => false,
        };
        self.settle()
    }

    fn settle(&mut self) -> Merged {
        let status = self.joint_state();
        let frontier = match status {
            State::Active => self.inputs.iter().filter(|i| i.counts).map(|i| i.watermark).min(),
            State::Idle => self.inputs.iter().filter(|i| i.state == State::Idle).map(|i| i.watermark).max(),
            State::Finished => Some(Watermark::END),
            State::Stopped => None,
        };
        let moved = frontier.filter(|&frontier| frontier > self.out);
        self.out = moved.unwrap_or(self.out);
        let changed = (status != self.status).then_some(match status {
            State::Active => Progress::Active,
            State::Idle => Progress::Idle,
            State::Finished => Progress::End,
            State::Stopped => Progress::Stopped,
        });
        self.status = status;
        Merged { watermark: moved, status: changed }
    }

    // Active if any input is; else idle if any is; a stop anywhere keeps the end from being announced.
    fn joint_state(&self) -> State {
        let any = |state| self.inputs.iter().any(|input| input.state == state);
        if any(State::Active) {
            State::Active
        } else if any(State::Idle) {
            State::Idle
        } else if any(State::Stopped) {
            State::Stopped
        } else {
            State::Finished
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
}

//! How far event time has come at the steps of a flow, over all its tasks.

use serde::{Deserialize, Serialize};

use super::{Reading, TaskId};
use crate::plan::NodeId;
use crate::time::EventTime;
use crate::watermark::{Holding, InputState, InputTime, TimeFigures};

/// The first and the last time of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// That of the oldest.
    pub first: EventTime,
    /// That of the newest.
    pub last: EventTime,
}

impl TimeRange {
    /// That of rows with these times, if there are any: a change that tells no time, and comes before all that do, does
    /// not count.
    pub fn of(times: &[EventTime]) -> Option<TimeRange> {
        let (mut first, mut last) = (EventTime::MAX, EventTime::MIN);
        for &time in times {
            first = if time > EventTime::MIN { first.min(time) } else { first };
            last = last.max(time);
        }
        (first <= last).then_some(TimeRange { first, last })
    }

    /// Takes in another one.
    pub fn add(&mut self, other: TimeRange) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// The times of so many steps, out of those that the tasks tell. The inputs of a source are its partitions.
///
/// A step of which nothing has been told is at the beginning of time.
pub fn times_of(
    steps: usize,
    readings: &[Reading],
    told: impl Iterator<Item = (TaskId, NodeId, TimeFigures)>,
) -> Vec<TimeFigures> {
    let mut times: Vec<Option<TimeFigures>> = vec![None; steps];
    for (task, node, figures) in told {
        let figures = by_partition(readings, (task, node), figures);
        match (&mut times[node.0], figures) {
            (Some(times), Some(figures)) => times.add(&figures),
            (times, figures) => *times = times.take().or(figures),
        }
    }
    times.into_iter().map(Option::unwrap_or_default).collect()
}

// What a task tells of a source is by its own count of the partitions that it reads; a task that reads none has nothing
// to tell.
fn by_partition(readings: &[Reading], place: (TaskId, NodeId), figures: TimeFigures) -> Option<TimeFigures> {
    let of_source = || readings.iter().filter(|reading| reading.source == place.1);
    let Some(last) = of_source().map(|reading| reading.partition).max() else { return Some(figures) };
    let mut mine = of_source().filter(|reading| reading.task == place.0).peekable();
    mine.peek()?;
    // Those of other tasks do not count here.
    let absent = InputTime { state: InputState::Finished, watermark: crate::time::Watermark::END };
    let mut inputs = vec![absent; last + 1];
    let mut holding = None;
    for reading in mine {
        inputs[reading.partition] = figures.inputs[reading.slot];
        let held = figures.holding.filter(|holding| holding.input == reading.slot);
        holding = holding.or(held.map(|held| Holding { input: reading.partition, ..held }));
    }
    Some(TimeFigures { inputs, holding, ..figures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{ProcTime, Watermark};

    fn at(t: i64) -> Watermark {
        Watermark::at(EventTime::from_millis(t))
    }

    fn told(inputs: &[(InputState, i64)], holding: Option<(usize, i64)>) -> TimeFigures {
        let inputs: Vec<_> = inputs.iter().map(|&(state, t)| InputTime { state, watermark: at(t) }).collect();
        let watermark = inputs.iter().map(|input| input.watermark).min().unwrap();
        let holding = holding.map(|(input, since)| Holding { input, since: ProcTime::from_millis(since) });
        TimeFigures { watermark, told: watermark, inputs, holding }
    }

    #[test]
    fn a_range_is_that_of_the_rows_that_have_a_time() {
        let range = |times: &[i64]| {
            let times: Vec<EventTime> = times.iter().map(|&t| EventTime::from_millis(t)).collect();
            TimeRange::of(&times).map(|range| (range.first.as_millis(), range.last.as_millis()))
        };
        assert_eq!(range(&[3, i64::MIN, -7, 5]), Some((-7, 5)));
        assert_eq!(range(&[i64::MAX]), Some((i64::MAX, i64::MAX)));
        assert_eq!((range(&[]), range(&[i64::MIN])), (None, None));
    }

    #[test]
    fn what_holds_a_step_is_what_holds_the_task_furthest_behind() {
        use InputState::{Active, Idle};
        let figures = [told(&[(Active, 5), (Idle, 9)], Some((0, 7))), told(&[(Active, 8), (Active, 4)], Some((1, 3)))];
        let told_by = figures.into_iter().enumerate().map(|(task, figures)| (TaskId(task), NodeId(0), figures));
        let times = times_of(1, &[], told_by);
        assert_eq!(times, [told(&[(Active, 5), (Active, 4)], Some((1, 3)))]);
    }

    #[test]
    fn the_partitions_of_a_source_are_told_by_its_own_count() {
        use InputState::{Active, Finished, Idle};
        // Three partitions over two tasks: 0 and 2 are read by the first.
        let reading = |task, partition, slot| Reading { task: TaskId(task), source: NodeId(0), partition, slot };
        let readings = [reading(0, 0, 0), reading(0, 2, 1), reading(1, 1, 0)];
        let figures =
            [told(&[(Idle, 9), (Active, 2)], Some((1, 7))), told(&[(Active, 5)], None), told(&[(Finished, 5)], None)];
        let told_by = figures.into_iter().enumerate().map(|(task, figures)| (TaskId(task), NodeId(0), figures));
        let times = times_of(2, &readings, told_by);
        assert_eq!(times[0], told(&[(Idle, 9), (Active, 5), (Active, 2)], Some((2, 7))));
        assert_eq!(times[1], TimeFigures::default());
    }
}

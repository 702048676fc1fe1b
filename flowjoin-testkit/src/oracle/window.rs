//! The window join: rows of one key that are in the same window.

use flowjoin_core::api::Truth;
use flowjoin_core::{EventTime, Span, Watermark};

use super::left_deep::{Role, left_deep};
use super::relation::Relation;

/// How time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Windows of a size, of which one begins every slide, one of them at the offset. Tumbling: the slide is the size.
    Every {
        /// How long each is.
        size: Span,
        /// From one to the next.
        slide: Span,
        /// When one begins.
        offset: Span,
    },
    /// For each key, rows of all inputs with less than a gap between one and the next.
    Session {
        /// The gap.
        gap: Span,
    },
}

/// A row, in the order in which it arrives among those of all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRow<K> {
    /// Its input.
    pub input: usize,
    /// Its key.
    pub key: Option<K>,
    /// Its time.
    pub time: EventTime,
    /// The watermark of the join when it arrives.
    pub watermark: Watermark,
}

/// A join over windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowJoin {
    /// The windows.
    pub windows: Windows,
    /// How long a window takes rows after it has ended.
    pub lateness: Span,
    /// What each input is to those before it.
    pub roles: Vec<Role>,
}

/// What a window join has to say about rows, in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowResult {
    /// The results: the last time of the window, which can lie beyond what a row can have, and the places of the rows
    /// among all that arrived, one an input, none where it is missing; sorted.
    pub results: Vec<(i128, Vec<Option<usize>>)>,
    /// For each row the last times of the windows that have taken it, ascending; none if it was late.
    pub windows: Vec<Vec<i128>>,
    /// Which rows have a partner in a window: a row of another input in one result with it, or that it exists for.
    pub met: Vec<bool>,
}

impl WindowJoin {
    /// The join of rows in the order of their arrival; `on` gets the rows so far and that of the next input.
    ///
    /// A window takes a row if it is not over: if the watermark has not passed its last time by the lateness. A row that no
    /// window takes is late.
    ///
    /// ```
    /// use flowjoin_core::{EventTime, Span, Watermark, millis};
    /// use flowjoin_testkit::oracle::{Role, WindowJoin, WindowRow, Windows};
    ///
    /// let row = |input, time| {
    ///     WindowRow { input, key: Some('k'), time: EventTime::from_millis(time), watermark: Watermark::NONE }
    /// };
    /// let windows = Windows::Every { size: millis(10), slide: millis(10), offset: Span::ZERO };
    /// let join = WindowJoin { windows, lateness: Span::ZERO, roles: vec![Role::Required, Role::Optional] };
    /// let result = join.join(&[row(0, 1), row(1, 9), row(0, 10)], |_, _| true);
    /// assert_eq!(result.results, [(9, vec![Some(0), Some(1)]), (19, vec![Some(2), None])]);
    /// ```
    pub fn join<K: PartialEq + Clone, C: Truth>(
        &self,
        rows: &[WindowRow<K>],
        on: impl Fn(&[Option<usize>], usize) -> C,
    ) -> WindowResult {
        let windows: Vec<Vec<i128>> = match self.windows {
            Windows::Every { size, slide, offset } => {
                rows.iter().map(|row| self.taken(row, &grid(row.time, size, slide, offset))).collect()
            }
            Windows::Session { gap } => self.sessions(rows, gap),
        };
        // Each row once for each of its windows, under its key and the window.
        let copies = |input: usize| {
            let own = (0..rows.len()).filter(move |&place| rows[place].input == input);
            own.flat_map(|place| windows[place].iter().map(move |&last| (last, place))).collect::<Vec<_>>()
        };
        let key = |&(last, place): &(i128, usize)| Some((rows[place].key.clone()?, last));
        let roles = self.roles.iter().enumerate();
        let inputs: Vec<_> = roles.map(|(input, &role)| (role, Relation::of(&copies(input), key))).collect();
        let on = |so_far: &[Option<(i128, usize)>], next: &(i128, usize)| {
            let so_far: Vec<Option<usize>> = so_far.iter().map(|row| row.map(|(_, place)| place)).collect();
            on(&so_far, next.1).is_true()
        };
        let results = left_deep(&inputs, on).into_iter().map(|row| {
            let last = row.iter().flatten().map(|&(last, _)| last).next().expect("no result is empty");
            (last, row.iter().map(|row| row.map(|(_, place)| place)).collect::<Vec<_>>())
        });
        let mut results: Vec<_> = results.collect();
        results.sort();
        let mut met = vec![false; rows.len()];
        for (_, row) in results.iter().filter(|(_, row)| row.iter().flatten().count() > 1) {
            row.iter().flatten().for_each(|&place| met[place] = true);
        }
        if let [(_, left), (Role::Exists | Role::NotExists, right)] = &inputs[..] {
            let pairs = left.join(right, |one, other| on(&[Some(*one)], other)).select(|pair| pair);
            pairs.into_iter().for_each(|((_, one), (_, other))| (met[one], met[other]) = (true, true));
        }
        WindowResult { results, windows, met }
    }

    // Those of some windows that take a row.
    fn taken<K>(&self, row: &WindowRow<K>, windows: &[i128]) -> Vec<i128> {
        windows.iter().copied().filter(|&last| !self.is_over(last, row.watermark)).collect()
    }

    /// Whether a window with this last time is over.
    pub fn is_over(&self, last: i128, watermark: Watermark) -> bool {
        let reached = i128::from(watermark.time().as_millis());
        watermark == Watermark::END || last + i128::from(self.lateness.as_millis()) < reached
    }

    // The session of each row, in the end.
    fn sessions<K: PartialEq>(&self, rows: &[WindowRow<K>], gap: Span) -> Vec<Vec<i128>> {
        let gap = i128::from(gap.as_millis());
        let time = |place: usize| i128::from(rows[place].time.as_millis());
        let last = |session: &[usize]| session.iter().map(|&place| time(place)).max().unwrap_or(0) + gap - 1;
        let touches =
            |session: &[usize], row: usize| session.iter().any(|&other| (time(other) - time(row)).abs() < gap);
        let mut sessions: Vec<Vec<usize>> = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            let belongs = |session: &Vec<usize>| {
                let is_open = !self.is_over(last(session), row.watermark);
                row.key.is_some() && rows[session[0]].key == row.key && is_open && touches(session, place)
            };
            let (together, apart): (Vec<_>, Vec<_>) = sessions.into_iter().partition(belongs);
            sessions = apart;
            let session = [together.concat(), vec![place]].concat();
            if session.len() > 1 || !self.is_over(last(&session), row.watermark) {
                sessions.push(session);
            }
        }
        let of = |row: usize| sessions.iter().filter(move |session| session.contains(&row));
        (0..rows.len()).map(|row| of(row).map(|session| last(session)).collect()).collect()
    }
}

// The windows that a time is in: they begin at the offset plus any number of slides.
fn grid(time: EventTime, size: Span, slide: Span, offset: Span) -> Vec<i128> {
    let [time, size, slide, offset] =
        [time.as_millis(), size.as_millis(), slide.as_millis(), offset.as_millis()].map(i128::from);
    let number = (time - offset).div_euclid(slide);
    let begins = (number - size / slide - 1..=number + 1).map(|number| offset + number * slide);
    begins.filter(|begin| (*begin..begin + size).contains(&time)).map(|begin| begin + size - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowjoin_core::millis;

    fn row(input: usize, time: i64, watermark: i64) -> WindowRow<char> {
        let (time, watermark) = (EventTime::from_millis(time), Watermark::at(EventTime::from_millis(watermark)));
        WindowRow { input, key: Some('k'), time, watermark }
    }

    fn result(windows: Windows, lateness: i64, rows: &[WindowRow<char>]) -> WindowResult {
        let roles = vec![Role::Required; 2];
        WindowJoin { windows, lateness: millis(lateness), roles }.join(rows, |_, _| true)
    }

    fn every(size: i64, slide: i64, offset: i64) -> Windows {
        Windows::Every { size: millis(size), slide: millis(slide), offset: millis(offset) }
    }

    #[test]
    fn a_pair_comes_once_for_each_common_window() {
        let rows = [row(0, 7, 0), row(1, 11, 0)];
        assert_eq!(result(every(10, 5, 0), 0, &rows).results, [(14, vec![Some(0), Some(1)])]);
        assert_eq!(result(every(10, 3, 1), 0, &rows).results.len(), 2);
        assert_eq!(result(every(10, 10, 0), 0, &rows).results, []);
    }

    #[test]
    fn times_before_the_epoch_are_rounded_down() {
        let windows = |time| result(every(10, 10, 3), 0, &[row(0, time, i64::MIN)]).windows[0].clone();
        assert_eq!([-8, -7, 2, 3].map(windows), [[-8], [2], [2], [12]]);
    }

    #[test]
    fn a_window_that_is_over_takes_no_row() {
        let rows = [row(0, 7, 0), row(1, 6, 10), row(1, 6, 15)];
        assert_eq!(result(every(10, 5, 0), 0, &rows).windows, [vec![9, 14], vec![14], vec![]]);
        assert_eq!(result(every(10, 5, 0), 1, &rows).windows, [vec![9, 14], vec![9, 14], vec![14]]);
    }

    #[test]
    fn a_row_bridges_sessions_that_are_less_than_a_gap_away() {
        let session = Windows::Session { gap: millis(5) };
        let rows = [row(0, 0, 0), row(1, 8, 0), row(0, 4, 0)];
        assert_eq!(result(session, 0, &rows).results, [(12, vec![Some(0), Some(1)]), (12, vec![Some(2), Some(1)])]);
        assert_eq!(result(session, 0, &[row(0, 0, 0), row(1, 5, 0)]).results, []);
        // The first one is over when the bridge comes.
        assert_eq!(result(session, 0, &[row(0, 0, 0), row(1, 8, 0), row(0, 4, 5)]).results.len(), 1);
    }
}

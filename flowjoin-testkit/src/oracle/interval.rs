//! The interval join: rows of one key whose times are close enough.

use flowjoin_core::{EventTime, Span};

/// `right.time in [left.time + lower, left.time + upper]`, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// How far the right row may lie from the left one at the least.
    pub lower: Span,
    /// How far it may lie at the most.
    pub upper: Span,
    /// Which side, left and right, may be missing in the result: `[false, true]` is a LEFT join.
    pub optional: [bool; 2],
}

/// What an interval join has to say about complete inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalResult {
    /// Pairs by the places of their rows, and rows padded where the other side is optional; sorted.
    pub pairs: Vec<(Option<usize>, Option<usize>)>,
    /// Left rows without a partner, whether they are padded or not.
    pub unmatched_left: Vec<usize>,
    /// Right rows without a partner, whether they are padded or not.
    pub unmatched_right: Vec<usize>,
}

impl Interval {
    /// Whether two times belong together. Computed without a limit: times at the ends of the range are exact.
    pub fn holds(&self, left: EventTime, right: EventTime) -> bool {
        let distance = i128::from(right.as_millis()) - i128::from(left.as_millis());
        i128::from(self.lower.as_millis()) <= distance && distance <= i128::from(self.upper.as_millis())
    }

    /// The join of rows given by their keys and times.
    ///
    /// ```
    /// use flowjoin_core::{EventTime, secs};
    /// use flowjoin_testkit::oracle::Interval;
    ///
    /// let at = |seconds: i64| EventTime::from_millis(seconds * 1_000);
    /// let orders = [(Some("a"), at(0)), (Some("b"), at(0))];
    /// let payments = [(Some("a"), at(30)), (Some("b"), at(31))];
    /// let paid = Interval { lower: -secs(5), upper: secs(30), optional: [false, true] };
    /// let result = paid.join(&orders, &payments);
    /// assert_eq!(result.pairs, [(Some(0), Some(0)), (Some(1), None)]);
    /// assert_eq!(result.unmatched_right, [1]);
    /// ```
    pub fn join<K: PartialEq>(
        &self,
        left: &[(Option<K>, EventTime)],
        right: &[(Option<K>, EventTime)],
    ) -> IntervalResult {
        let mut result = IntervalResult::default();
        for (i, (left_key, left_time)) in left.iter().enumerate() {
            for (j, (right_key, right_time)) in right.iter().enumerate() {
                if left_key.is_some() && left_key == right_key && self.holds(*left_time, *right_time) {
                    result.pairs.push((Some(i), Some(j)));
                }
            }
        }
        let met_left: Vec<_> = result.pairs.iter().map(|pair| pair.0).collect();
        let met_right: Vec<_> = result.pairs.iter().map(|pair| pair.1).collect();
        result.unmatched_left = (0..left.len()).filter(|&row| !met_left.contains(&Some(row))).collect();
        result.unmatched_right = (0..right.len()).filter(|&row| !met_right.contains(&Some(row))).collect();
        if self.optional[1] {
            result.pairs.extend(result.unmatched_left.iter().map(|&row| (Some(row), None)));
        }
        if self.optional[0] {
            result.pairs.extend(result.unmatched_right.iter().map(|&row| (None, Some(row))));
        }
        result.pairs.sort();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowjoin_core::millis;

    fn rows(times: &[i64]) -> Vec<(Option<char>, EventTime)> {
        times.iter().map(|&t| (Some('k'), EventTime::from_millis(t))).collect()
    }

    fn interval(lower: i64, upper: i64) -> Interval {
        Interval { lower: millis(lower), upper: millis(upper), optional: [false, false] }
    }

    #[test]
    fn both_ends_are_included() {
        let result = interval(1, 2).join(&rows(&[1, 2, 3, 4]), &rows(&[1, 2, 3, 4]));
        let pairs = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)];
        assert_eq!(result.pairs, pairs.map(|(left, right)| (Some(left), Some(right))));
        assert_eq!((result.unmatched_left, result.unmatched_right), (vec![3], vec![0]));
    }

    #[test]
    fn a_null_key_and_another_key_match_nothing() {
        let mut left = rows(&[0, 0]);
        left[0].0 = None;
        left[1].0 = Some('j');
        let mut right = rows(&[0, 0]);
        right[1].0 = None;
        let full = Interval { optional: [true, true], ..interval(0, 0) };
        let result = full.join(&left, &right);
        assert_eq!(result.pairs, [(None, Some(0)), (None, Some(1)), (Some(0), None), (Some(1), None)]);
    }

    #[test]
    fn times_at_the_ends_of_the_range_are_exact() {
        let ends = rows(&[i64::MIN, i64::MAX]);
        assert_eq!(interval(1, i64::MAX).join(&ends, &ends).pairs, []);
        assert_eq!(interval(i64::MIN, 0).join(&ends, &ends).pairs, [(Some(0), Some(0)), (Some(1), Some(1))]);
        assert_eq!(interval(5, 10).join(&rows(&[i64::MAX - 1]), &rows(&[i64::MAX])).pairs, []);
    }
}

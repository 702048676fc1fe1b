//! Joins of two sides by the definition that SQL gives, over the rows that are there: nested loops and nothing else.

use flowjoin_core::api::Truth;

/// Rows, each with the key that it is joined by; a key of none is null, and matches nothing.
///
/// A join of two relations is a relation again, under the same key, so that queries are built as in SQL, from the left:
/// `a.left_join(&b, ..).join(&c, ..)`. Every join takes a condition beyond the key; where there is none, `|_, _| true`.
///
/// ```
/// use flowjoin_testkit::oracle::Relation;
///
/// let orders = [(1, 100), (2, 200)];
/// let payments = [(1, 60), (1, 40), (2, 500)];
/// let orders = Relation::of(&orders, |order| Some(order.0));
/// let payments = Relation::of(&payments, |payment| Some(payment.0));
/// let paid = orders.left_join(&payments, |order, payment| payment.1 <= order.1);
/// let paid = paid.select(|(order, payment)| (order.0, payment.map(|payment| payment.1)));
/// assert_eq!(paid, [(1, Some(40)), (1, Some(60)), (2, None)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation<K, R> {
    rows: Vec<(Option<K>, R)>,
}

// The rows of two sides that match, and on each side those that match nothing.
struct Met<'a, K, L, R> {
    pairs: Vec<(&'a Option<K>, &'a L, &'a R)>,
    left_only: Vec<(&'a Option<K>, &'a L)>,
    right_only: Vec<(&'a Option<K>, &'a R)>,
}

impl<K, L> Relation<K, L> {
    /// These rows, each with its key.
    pub fn of(rows: &[L], key: impl Fn(&L) -> Option<K>) -> Relation<K, L>
    where
        L: Clone,
    {
        Relation { rows: rows.iter().map(|row| (key(row), row.clone())).collect() }
    }

    /// The same rows as another shape, under the same key.
    pub fn map<O>(self, shape: impl Fn(L) -> O) -> Relation<K, O> {
        Relation { rows: self.rows.into_iter().map(|(key, row)| (key, shape(row))).collect() }
    }

    /// The same rows under another key, for a join by that.
    pub fn key_by<J>(self, key: impl Fn(&L) -> Option<J>) -> Relation<J, L> {
        Relation { rows: self.rows.into_iter().map(|(_, row)| (key(&row), row)).collect() }
    }

    /// What `select` makes of each row, sorted: to be compared with what a sink has been left with.
    pub fn select<O: Ord>(self, shape: impl Fn(L) -> O) -> Vec<O> {
        let mut rows: Vec<O> = self.rows.into_iter().map(|(_, row)| shape(row)).collect();
        rows.sort();
        rows
    }
}

impl<K: PartialEq + Clone, L: Clone> Relation<K, L> {
    /// `INNER JOIN`: all pairs that match.
    pub fn join<R: Clone, C: Truth>(&self, right: &Relation<K, R>, on: impl Fn(&L, &R) -> C) -> Relation<K, (L, R)> {
        let met = self.meet(right, on);
        let pairs = met.pairs.into_iter().map(|(key, left, right)| (key.clone(), (left.clone(), right.clone())));
        Relation { rows: pairs.collect() }
    }

    /// `LEFT JOIN`: besides, each left row that matches nothing.
    pub fn left_join<R: Clone, C: Truth>(
        &self,
        right: &Relation<K, R>,
        on: impl Fn(&L, &R) -> C,
    ) -> Relation<K, (L, Option<R>)> {
        let met = self.meet(right, on);
        let pairs = met.pairs.into_iter().map(|(key, left, right)| (key.clone(), (left.clone(), Some(right.clone()))));
        let padded = met.left_only.into_iter().map(|(key, left)| (key.clone(), (left.clone(), None)));
        Relation { rows: pairs.chain(padded).collect() }
    }

    /// `RIGHT JOIN`: all pairs that match, and each right row that matches nothing.
    pub fn right_join<R: Clone, C: Truth>(
        &self,
        right: &Relation<K, R>,
        on: impl Fn(&L, &R) -> C,
    ) -> Relation<K, (Option<L>, R)> {
        let met = self.meet(right, on);
        let pairs = met.pairs.into_iter().map(|(key, left, right)| (key.clone(), (Some(left.clone()), right.clone())));
        let padded = met.right_only.into_iter().map(|(key, right)| (key.clone(), (None, right.clone())));
        Relation { rows: pairs.chain(padded).collect() }
    }

    /// `FULL JOIN`: all pairs that match, and on either side each row that matches nothing.
    pub fn full_join<R: Clone, C: Truth>(
        &self,
        right: &Relation<K, R>,
        on: impl Fn(&L, &R) -> C,
    ) -> Relation<K, (Option<L>, Option<R>)> {
        let met = self.meet(right, on);
        let pair = |(key, left, right): (&Option<K>, &L, &R)| (key.clone(), (Some(left.clone()), Some(right.clone())));
        let left = met.left_only.into_iter().map(|(key, left)| (key.clone(), (Some(left.clone()), None)));
        let right = met.right_only.into_iter().map(|(key, right)| (key.clone(), (None, Some(right.clone()))));
        Relation { rows: met.pairs.into_iter().map(pair).chain(left).chain(right).collect() }
    }

    /// `WHERE EXISTS`: each left row that matches something, once.
    pub fn where_exists<R, C: Truth>(&self, right: &Relation<K, R>, on: impl Fn(&L, &R) -> C) -> Relation<K, L> {
        let exists = |left: &&(Option<K>, L)| right.rows.iter().any(|row| matches(left, row, &on));
        Relation { rows: self.rows.iter().filter(exists).cloned().collect() }
    }

    /// `WHERE NOT EXISTS`: each left row that matches nothing.
    pub fn where_not_exists<R, C: Truth>(&self, right: &Relation<K, R>, on: impl Fn(&L, &R) -> C) -> Relation<K, L> {
        let exists_not = |left: &&(Option<K>, L)| !right.rows.iter().any(|row| matches(left, row, &on));
        Relation { rows: self.rows.iter().filter(exists_not).cloned().collect() }
    }

    fn meet<'a, R, C: Truth>(&'a self, right: &'a Relation<K, R>, on: impl Fn(&L, &R) -> C) -> Met<'a, K, L, R> {
        let mut met = Met { pairs: Vec::new(), left_only: Vec::new(), right_only: Vec::new() };
        for left in &self.rows {
            let partners: Vec<_> = right.rows.iter().filter(|row| matches(left, row, &on)).collect();
            if partners.is_empty() {
                met.left_only.push((&left.0, &left.1));
            }
            met.pairs.extend(partners.into_iter().map(|row| (&left.0, &left.1, &row.1)));
        }
        for row in &right.rows {
            if !self.rows.iter().any(|left| matches(left, row, &on)) {
                met.right_only.push((&row.0, &row.1));
            }
        }
        met
    }
}

fn matches<K: PartialEq, L, R, C: Truth>(
    left: &(Option<K>, L),
    right: &(Option<K>, R),
    on: impl Fn(&L, &R) -> C,
) -> bool {
    left.0.is_some() && left.0 == right.0 && on(&left.1, &right.1).is_true()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rows `a1` are of the key `a`; those of `-` have none.
    fn relation(text: &'static str) -> Relation<char, &'static str> {
        let rows: Vec<&str> = text.split_whitespace().collect();
        Relation::of(&rows, |row| row.chars().next().filter(|&key| key != '-'))
    }

    fn always(_: &&str, _: &&str) -> bool {
        true
    }

    #[test]
    fn the_joins_differ_in_what_matches_nothing() {
        let (left, right) = (relation("a1 b1 -1"), relation("b1 b2 c1 -1"));
        assert_eq!(left.join(&right, always).select(|row| row), [("b1", "b1"), ("b1", "b2")]);
        let rows = left.left_join(&right, always).select(|row| row);
        assert_eq!(rows, [("-1", None), ("a1", None), ("b1", Some("b1")), ("b1", Some("b2"))]);
        let rows = left.right_join(&right, always).select(|row| row);
        assert_eq!(rows, [(None, "-1"), (None, "c1"), (Some("b1"), "b1"), (Some("b1"), "b2")]);
        assert_eq!(left.full_join(&right, always).select(|row| row).len(), 6);
        assert_eq!(left.where_exists(&right, always).select(|row| row), ["b1"]);
        assert_eq!(left.where_not_exists(&right, always).select(|row| row), ["-1", "a1"]);
    }

    #[test]
    fn only_what_is_true_is_a_match() {
        let (left, right) = (relation("a1 a2 a3"), relation("a1 a2"));
        let on = |left: &&str, right: &&str| (*left != "a3").then_some(left == right);
        assert_eq!(left.join(&right, on).select(|row| row), [("a1", "a1"), ("a2", "a2")]);
        assert_eq!(left.left_join(&right, on).select(|row| row).len(), 3);
        assert_eq!(left.where_not_exists(&right, on).select(|row| row), ["a3"]);
    }

    #[test]
    fn a_join_is_joined_again_under_its_key_or_another() {
        let both = relation("a1 b1").full_join(&relation("b2 c2"), always);
        let third = relation("a3 b3 c3");
        assert_eq!(both.clone().join(&third, |_, _| true).select(|row| row.1), ["a3", "b3", "c3"]);
        let by_right = both.key_by(|(_, right)| right.and_then(|row| row.chars().next()));
        assert_eq!(by_right.join(&third, |_, _| true).map(|(_, row)| row).select(|row| row), ["b3", "c3"]);
    }
}

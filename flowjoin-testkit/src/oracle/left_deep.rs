//! The N-way join with inputs of any role, left-deep as SQL reads it: one join after the other, from the left.

use flowjoin_core::api::Truth;

use super::relation::Relation;

/// What an input is to the inputs before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// No row without a row of it.
    Required,
    /// It may be missing in the result.
    Optional,
    /// Rows before it stay if one of its rows matches; it is never in the result.
    Exists,
    /// Rows before it stay if none of its rows matches; it is never in the result.
    NotExists,
}

/// The rows of the join of `inputs`, one entry an input, none where it is missing; sorted.
///
/// For each prefix of a result and each row of the next input, the two match if their keys are equal (null equals
/// nothing) and `on` is true; `on` gets the rows so far and the row of the next input, so that the length of the
/// former says which input that is.
///
/// | role of the next input | all inputs before it are required | all of them optional |
/// |---|---|---|
/// | `Required` | the matches | and its rows that match nothing (`RIGHT`) |
/// | `Optional` | the matches, and the prefixes that match nothing (`LEFT`) | and its rows that match nothing (`FULL`) |
/// | `Exists` | the prefixes that match something | the same |
/// | `NotExists` | the prefixes that match nothing | the same |
///
/// Inputs that only filter count neither as required nor as optional. Without conditions and filters this is the
/// product of one list a key, [`regular`](super::regular()).
///
/// ```
/// use flowjoin_testkit::oracle::{Relation, Role, left_deep};
///
/// let rows = |rows: &[(char, i32)]| Relation::of(rows, |row| Some(row.0));
/// let [orders, payments, refunds] = [rows(&[('a', 5), ('b', 5)]), rows(&[('a', 3), ('a', 9)]), rows(&[('b', 1)])];
/// let inputs = [(Role::Required, orders), (Role::Optional, payments), (Role::NotExists, refunds)];
/// let enough = |so_far: &[Option<(char, i32)>], next: &(char, i32)| match so_far {
///     [order] => order.map(|order| next.1 >= order.1),
///     _ => Some(true),
/// };
/// assert_eq!(left_deep(&inputs, enough), [[Some(('a', 5)), Some(('a', 9)), None]]);
/// ```
///
/// # Panics
/// If there is no input, or the first one is neither required nor optional.
pub fn left_deep<K, T, C>(inputs: &[(Role, Relation<K, T>)], on: impl Fn(&[Option<T>], &T) -> C) -> Vec<Vec<Option<T>>>
where
    K: PartialEq + Clone,
    T: Clone + Ord,
    C: Truth,
{
    let ((first, relation), rest) = inputs.split_first().expect("a join has inputs");
    assert!(matches!(first, Role::Required | Role::Optional), "the first input of a join has nothing to filter");
    let mut all_optional = *first == Role::Optional;
    let mut prefixes: Relation<K, Vec<Option<T>>> = relation.clone().map(|row| vec![Some(row)]);
    for (step, (role, next)) in rest.iter().enumerate() {
        let on = |so_far: &Vec<Option<T>>, row: &T| on(so_far, row);
        let padded = |row: Option<Vec<Option<T>>>| row.unwrap_or_else(|| vec![None; step + 1]);
        prefixes = match (role, all_optional) {
            (Role::Required, false) => prefixes.join(next, on).map(|(row, it)| longer(row, Some(it))),
            (Role::Required, true) => prefixes.right_join(next, on).map(|(row, it)| longer(padded(row), Some(it))),
            (Role::Optional, false) => prefixes.left_join(next, on).map(|(row, it)| longer(row, it)),
            (Role::Optional, true) => prefixes.full_join(next, on).map(|(row, it)| longer(padded(row), it)),
            (Role::Exists, _) => prefixes.where_exists(next, on).map(|row| longer(row, None)),
            (Role::NotExists, _) => prefixes.where_not_exists(next, on).map(|row| longer(row, None)),
        };
        all_optional &= *role != Role::Required;
    }
    prefixes.select(|row| row)
}

fn longer<T>(mut row: Vec<Option<T>>, next: Option<T>) -> Vec<Option<T>> {
    row.push(next);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::regular;
    use Role::{Exists, NotExists, Optional, Required};
    use proptest::prelude::*;

    type Row = (usize, Option<u8>);

    // Rows by their place, each with its key.
    fn relation(keys: &[Option<u8>]) -> Relation<u8, Row> {
        let rows: Vec<Row> = keys.iter().copied().enumerate().collect();
        Relation::of(&rows, |row| row.1)
    }

    fn join(inputs: &[(Role, &[Option<u8>])], on: impl Fn(&[Option<Row>], &Row) -> bool) -> Vec<String> {
        let inputs: Vec<_> = inputs.iter().map(|(role, keys)| (*role, relation(keys))).collect();
        let text = |row: &Option<Row>| row.map_or("-".to_string(), |row| row.0.to_string());
        left_deep(&inputs, on).iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join("·")).collect()
    }

    #[test]
    fn a_filter_neither_pads_nor_multiplies() {
        let (a, b): (&[_], &[_]) = (&[Some(1), Some(2), None], &[Some(1), Some(1), None]);
        assert_eq!(join(&[(Required, a), (Exists, b)], |_, _| true), ["0·-"]);
        assert_eq!(join(&[(Required, a), (NotExists, b)], |_, _| true), ["1·-", "2·-"]);
        assert_eq!(join(&[(Optional, a), (Exists, b), (Optional, b)], |_, _| true).len(), 3);
    }

    #[test]
    fn a_condition_sees_the_rows_so_far_and_a_later_input_hangs_on_a_missing_one() {
        let one: &[_] = &[Some(1)];
        // The third matches only where the second is there.
        let on_second = |so_far: &[Option<Row>], _: &Row| so_far.len() < 2 || so_far[1].is_some();
        assert_eq!(join(&[(Required, one), (Optional, one), (Optional, one)], on_second), ["0·0·0"]);
        assert_eq!(join(&[(Required, one), (Optional, &[]), (Optional, one)], on_second), ["0·-·-"]);
        assert_eq!(join(&[(Required, one), (Optional, &[]), (Required, one)], on_second), [""; 0]);
        assert_eq!(join(&[(Optional, one), (Optional, &[]), (Required, one)], on_second), ["-·-·0"]);
    }

    #[test]
    fn rows_that_match_nothing_are_full_only_where_all_before_are_optional() {
        let (one, two): (&[_], &[_]) = (&[Some(1)], &[Some(2)]);
        let never = |_: &[Option<Row>], _: &Row| false;
        assert_eq!(join(&[(Optional, one), (Optional, two), (Optional, two)], never), ["-·-·0", "-·0·-", "0·-·-"]);
        assert_eq!(join(&[(Optional, one), (Required, two), (Optional, two)], never), ["-·0·-"]);
        assert_eq!(join(&[(Required, one), (Optional, two), (Required, two)], never), [""; 0]);
    }

    proptest! {
        #[test]
        fn without_conditions_it_is_the_product_of_one_list_a_key(
            inputs in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(prop::option::weighted(0.85, 0..3u8), 0..4)), 2..6),
        ) {
            let optional: Vec<bool> = inputs.iter().map(|input| input.0).collect();
            let keys: Vec<Vec<Option<u8>>> = inputs.into_iter().map(|input| input.1).collect();
            let role = |&optional: &bool| if optional { Optional } else { Required };
            let asked: Vec<_> = optional.iter().map(role).zip(keys.iter().map(|keys| relation(keys))).collect();
            let rows = left_deep(&asked, |_, _| true).into_iter();
            let places: Vec<Vec<_>> = rows.map(|row| row.iter().map(|row| row.map(|row| row.0)).collect()).collect();
            prop_assert_eq!(places, regular(&keys, &optional));
        }
    }
}

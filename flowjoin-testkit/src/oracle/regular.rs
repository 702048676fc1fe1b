//! The N-way join over one key: a product of lists, padded where an optional list is empty.

/// One result: for each input the place of its row, or none where the input is missing.
pub type Combination = Vec<Option<usize>>;

/// All results of the join of `inputs`, each given as the keys of its rows; sorted.
///
/// Under one key the result is the product of the lists, where an empty list of an optional input counts as one
/// missing row. A combination in which every input is missing is no row. A row with a null key stands alone: it comes
/// out, padded, exactly if all other inputs are optional.
///
/// ```
/// use flowjoin_testkit::oracle::regular;
///
/// let orders = vec![Some(1), Some(2)];
/// let payments = vec![Some(1), Some(1), None];
/// let left_join = regular(&[orders, payments], &[false, true]);
/// assert_eq!(left_join, [vec![Some(0), Some(0)], vec![Some(0), Some(1)], vec![Some(1), None]]);
/// ```
///
/// # Panics
/// If there are not 2 to 12 inputs, or not one flag an input.
pub fn regular<K: PartialEq>(inputs: &[Vec<Option<K>>], optional: &[bool]) -> Vec<Combination> {
    assert_arity(inputs.len(), optional.len());
    let mut result = Vec::new();
    let mut seen: Vec<&K> = Vec::new();
    for key in inputs.iter().flatten().flatten() {
        if !seen.contains(&key) {
            seen.push(key);
            result.extend(product(&lists_under(inputs, key), optional));
        }
    }
    for (input, rows) in inputs.iter().enumerate() {
        for (row, _) in rows.iter().enumerate().filter(|(_, key)| key.is_none()) {
            result.extend(product(&alone(inputs.len(), input, row), optional));
        }
    }
    result.sort();
    result
}

/// The rows of each input that are in no result together with a row of another input.
///
/// These are the rows that an unmatched output shows: rows without any result, and rows that come out padded only.
///
/// # Panics
/// As [`regular`].
pub fn unmatched<K: PartialEq>(inputs: &[Vec<Option<K>>], optional: &[bool]) -> Vec<Vec<usize>> {
    let result = regular(inputs, optional);
    let met = |input: usize, row: usize| {
        result.iter().any(|combination| combination[input] == Some(row) && has_partners(combination))
    };
    let of_input = |(input, rows): (usize, &Vec<Option<K>>)| (0..rows.len()).filter(|&row| !met(input, row)).collect();
    inputs.iter().enumerate().map(of_input).collect()
}

/// The product of one list an input, an empty list of an optional input standing for one missing row.
pub(super) fn product(lists: &[Vec<usize>], optional: &[bool]) -> Vec<Combination> {
    let mut result: Vec<Combination> = vec![Vec::new()];
    for (list, &may_be_missing) in lists.iter().zip(optional) {
        let factor: Vec<Option<usize>> =
            if list.is_empty() && may_be_missing { vec![None] } else { list.iter().copied().map(Some).collect() };
        let mut longer = Vec::new();
        for begun in &result {
            for &row in &factor {
                longer.push([begun.as_slice(), &[row]].concat());
            }
        }
        result = longer;
    }
    result.retain(|combination| combination.iter().any(Option::is_some));
    result
}

/// The lists of a row that can only stand alone.
pub(super) fn alone(inputs: usize, input: usize, row: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); inputs];
    lists[input].push(row);
    lists
}

/// Whether rows of two inputs or more are in it.
pub(super) fn has_partners(combination: &[Option<usize>]) -> bool {
    combination.iter().flatten().count() >= 2
}

pub(super) fn assert_arity(inputs: usize, flags: usize) {
    assert!((2..=12).contains(&inputs), "a join has 2 to 12 inputs, not {inputs}");
    assert_eq!(inputs, flags, "one flag an input says whether it is optional");
}

fn lists_under<K: PartialEq>(inputs: &[Vec<Option<K>>], key: &K) -> Vec<Vec<usize>> {
    let under = |rows: &Vec<Option<K>>| (0..rows.len()).filter(|&row| rows[row].as_ref() == Some(key)).collect();
    inputs.iter().map(under).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: Option<usize> = None;

    fn row(place: usize) -> Option<usize> {
        Some(place)
    }

    #[test]
    fn inner_left_right_and_full_differ_in_the_padding_only() {
        let inputs = [vec![Some('a'), Some('b')], vec![Some('b'), Some('c')]];
        let pair = vec![row(1), row(0)];
        let left_only = vec![row(0), MISSING];
        let right_only = vec![MISSING, row(1)];
        assert_eq!(regular(&inputs, &[false, false]), std::slice::from_ref(&pair));
        assert_eq!(regular(&inputs, &[false, true]), [left_only.clone(), pair.clone()]);
        assert_eq!(regular(&inputs, &[true, false]), [right_only.clone(), pair.clone()]);
        assert_eq!(regular(&inputs, &[true, true]), [right_only, left_only, pair]);
    }

    #[test]
    fn multiplicities_multiply() {
        let inputs = [vec![Some(1); 2], vec![Some(1); 3], vec![Some(1); 2]];
        assert_eq!(regular(&inputs, &[false; 3]).len(), 12);
    }

    #[test]
    fn nothing_is_said_until_the_required_inputs_are_there() {
        let inputs = [vec![Some(1)], vec![], vec![Some(2)]];
        assert!(regular(&inputs, &[false, true, false]).is_empty());
        let inputs = [vec![Some(1)], vec![], vec![Some(1)]];
        assert_eq!(regular(&inputs, &[false, true, false]), [[row(0), MISSING, row(0)]]);
        assert_eq!(regular(&inputs, &[false, true, true]), [[row(0), MISSING, row(0)]]);
    }

    #[test]
    fn a_null_key_stands_alone_and_only_where_all_others_may_miss() {
        let inputs = [vec![None::<u8>], vec![None], vec![]];
        assert!(regular(&inputs, &[false, false, true]).is_empty());
        assert_eq!(regular(&inputs, &[false, true, true]), [[row(0), MISSING, MISSING]]);
        let full = regular(&inputs, &[true; 3]);
        assert_eq!(full, [[MISSING, row(0), MISSING], [row(0), MISSING, MISSING]]);
    }

    #[test]
    fn a_row_is_unmatched_until_it_has_a_partner() {
        let inputs = [vec![Some(1), Some(2), None], vec![Some(1), Some(3)], vec![Some(3)]];
        let of = |optional: [bool; 3]| unmatched(&inputs, &optional);
        assert_eq!(of([false, true, true]), [vec![1, 2], vec![1], vec![0]]);
        assert_eq!(of([false, false, false]), [vec![0, 1, 2], vec![0, 1], vec![0]]);
        assert_eq!(of([true, true, true]), [vec![1, 2], vec![], vec![]]);
    }

    #[test]
    fn twelve_inputs_are_a_join_and_one_or_thirteen_are_not() {
        assert_eq!(regular(&vec![vec![Some(1)]; 12], &[false; 12]).len(), 1);
        for inputs in [1, 13] {
            let asked = std::panic::catch_unwind(|| regular(&vec![vec![Some(1)]; inputs], &vec![false; inputs]));
            assert!(asked.is_err());
        }
    }
}

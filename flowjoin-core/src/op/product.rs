//! The kernel: an N-way join over one key is a product of lists.
//!
//! For inputs `0..N` under one key, with `rows[i]` the list of input `i`,
//!
//! ```text
//! pad(i) = rows[i]       if it is not empty
//!        = [MISSING]     if it is empty and input i is optional
//!        = []            if it is empty and input i is required
//! result = pad(0) × pad(1) × … × pad(N-1)
//! ```
//!
//! and a combination in which every input is missing is no row. One row that enters or leaves input `i` changes the
//! result only through factor `i`. No types, no time, no state here; an odometer over N slices, tested with integers
//! against the definition. INNER, LEFT, RIGHT, FULL and N-way are this one function and a bit mask.

use crate::state::{RowId, Runs};

/// How many inputs a join has, and which of them are optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    inputs: usize,
    optional: u16,
}

impl Shape {
    /// A join with one flag an input.
    pub fn new(optional: &[bool]) -> Shape {
        let bits = optional.iter().enumerate().map(|(input, &optional)| u16::from(optional) << input);
        Shape { inputs: optional.len(), optional: bits.sum() }
    }

    /// A bit for each required input.
    pub fn required(&self) -> u16 {
        !self.optional & (((1u32 << self.inputs) - 1) as u16)
    }

    /// Whether an input is optional.
    pub fn is_optional(&self, input: usize) -> bool {
        self.optional >> input & 1 == 1
    }

    /// Whether each row of an input is in the result the moment it comes, because all other inputs are optional.
    pub fn stands_alone(&self, input: usize) -> bool {
        self.required() & !(1 << input) == 0
    }
}

/// A row that enters or leaves one input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The input.
    pub input: usize,
    /// The row.
    pub row: RowId,
    /// Whether it enters.
    pub enters: bool,
    /// Whether the list of the input holds no other row: before it entered, or after it left.
    pub alone: bool,
}

/// Emits what one step changes in the result, given the lists of the key (that of the input that changes is not looked
/// at): `true` with a combination that is added, `false` with one taken back.
///
/// A gap is taken back before the first combination that fills it, and comes back after the last one has gone. The
/// time is linear in what is emitted, and nothing is collected.
pub fn delta<const N: usize>(
    shape: &Shape,
    lists: &[Runs<'_>; N],
    step: Step,
    emit: &mut impl FnMut(bool, &[RowId; N]),
) {
    let edge = step.alone && shape.is_optional(step.input);
    if step.enters {
        if edge {
            product(shape, lists, step.input, RowId::MISSING, &mut |ids| emit(false, ids));
        }
        product(shape, lists, step.input, step.row, &mut |ids| emit(true, ids));
    } else {
        product(shape, lists, step.input, step.row, &mut |ids| emit(false, ids));
        if edge {
            product(shape, lists, step.input, RowId::MISSING, &mut |ids| emit(true, ids));
        }
    }
}

fn product<const N: usize>(
    shape: &Shape,
    lists: &[Runs<'_>; N],
    fixed: usize,
    row: RowId,
    emit: &mut impl FnMut(&[RowId; N]),
) {
    let fixed_row = [row];
    let gap = [RowId::MISSING];
    let mut factors: [Runs<'_>; N] = [(&[], &[]); N];
    let mut any = !row.is_missing();
    for input in 0..N {
        factors[input] = if input == fixed {
            (&fixed_row, &[])
        } else if !lists[input].0.is_empty() || !lists[input].1.is_empty() {
            any = true;
            lists[input]
        } else if shape.is_optional(input) {
            (&gap, &[])
        } else {
            return;
        };
    }
    if any {
        odometer(&factors, emit);
    }
}

fn odometer<const N: usize>(factors: &[Runs<'_>; N], emit: &mut impl FnMut(&[RowId; N])) {
    let at = |input: usize, n: usize| {
        let (front, back) = factors[input];
        if n < front.len() { front[n] } else { back[n - front.len()] }
    };
    let mut wheel = [0; N];
    let mut ids: [RowId; N] = std::array::from_fn(|input| at(input, 0));
    loop {
        emit(&ids);
        let mut input = N;
        loop {
            if input == 0 {
                return;
            }
            input -= 1;
            wheel[input] += 1;
            if wheel[input] < factors[input].0.len() + factors[input].1.len() {
                ids[input] = at(input, wheel[input]);
                break;
            }
            wheel[input] = 0;
            ids[input] = at(input, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Ids<const N: usize> = Vec<[RowId; N]>;

    // The definition, recomputed from all lists.
    fn result<const N: usize>(optional: &[bool; N], lists: &[Vec<RowId>; N]) -> Ids<N> {
        let mut combinations: Vec<Vec<RowId>> = vec![vec![]];
        for input in 0..N {
            let padded = match (lists[input].is_empty(), optional[input]) {
                (false, _) => lists[input].clone(),
                (true, true) => vec![RowId::MISSING],
                (true, false) => vec![],
            };
            let extend = |c: Vec<RowId>| padded.iter().map(move |&r| [c.clone(), vec![r]].concat()).collect::<Vec<_>>();
            combinations = combinations.into_iter().flat_map(extend).collect();
        }
        let real = combinations.into_iter().filter(|c| c.iter().any(|id| !id.is_missing()));
        real.map(|c| c.try_into().unwrap()).collect()
    }

    // Applies the delta to the result before, and checks that nothing is taken back that does not stand.
    fn check<const N: usize>(optional: &[bool; N], before: &[Vec<RowId>; N], after: &[Vec<RowId>; N], step: Step) {
        let mut others = before.clone();
        others[step.input].clear();
        let runs: [Runs<'_>; N] = std::array::from_fn(|input| others[input].split_at(others[input].len() / 2));
        let mut standing = result(optional, before);
        delta(&Shape::new(optional), &runs, step, &mut |adds, ids: &[RowId; N]| {
            if adds {
                standing.push(*ids);
            } else {
                let place = standing.iter().position(|other| other == ids);
                standing
                    .swap_remove(place.unwrap_or_else(|| panic!("{ids:?} does not stand: {optional:?} {before:?}")));
            }
        });
        let mut expected = result(optional, after);
        standing.sort();
        expected.sort();
        assert_eq!(standing, expected, "{optional:?} {before:?} {step:?}");
    }

    fn all_shapes<const N: usize>() {
        for sizes in 0..3usize.pow(N as u32) {
            let lists: [Vec<RowId>; N] = std::array::from_fn(|i| {
                (0..sizes / 3usize.pow(i as u32) % 3).map(|n| RowId::new((10 * i + n) as u32)).collect()
            });
            for flags in 0..1 << N {
                let optional: [bool; N] = std::array::from_fn(|i| flags >> i & 1 == 1);
                for input in 0..N {
                    let mut more = lists.clone();
                    let row = RowId::new(99);
                    more[input].push(row);
                    let alone = lists[input].is_empty();
                    check(&optional, &lists, &more, Step { input, row, enters: true, alone });
                    check(&optional, &more, &lists, Step { input, row, enters: false, alone });
                }
            }
        }
    }

    #[test]
    fn every_step_gives_the_difference_of_the_results_for_all_shapes_up_to_four_inputs() {
        all_shapes::<1>();
        all_shapes::<2>();
        all_shapes::<3>();
        all_shapes::<4>();
    }

    #[test]
    fn a_row_stands_alone_when_all_other_inputs_are_optional() {
        let shape = Shape::new(&[false, true, true]);
        assert!(shape.stands_alone(0) && !shape.stands_alone(1));
        assert_eq!(shape.required(), 0b001);
        let full = Shape::new(&[true, true]);
        assert!(full.stands_alone(0) && full.stands_alone(1));
    }
}

//! Which rows have met a partner: those that were in a result with another row, and no others come out unmatched. Over
//! gaps that are told late, and rows that leave in between.

use std::collections::BTreeSet;

use flowjoin::{Append, Clock, EventTime, Flow, KeyedStream, Ttl, Watermark, millis, multi_join};
use flowjoin::{Progress, RowKind};
use flowjoin_testkit::{TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{NAMES, Row, advance, check_accounts, fact, facts, taken};
use super::policies::{Tells, tells, told};

#[derive(Clone, Copy, Debug)]
enum Step {
    Row { input: usize, key: u8, time: i64 },
    Watermark(i64),
    Clock(i64),
}

type Joined = Vec<Option<Row>>;

fn rows(flow: &Flow, index: usize) -> KeyedStream<Option<u8>, Row, Append> {
    facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key)
}

macro_rules! sunk {
    ($joined:expr, $unmatched:expr) => {{
        $joined.sink_to(TestSink::new("out"));
        let (a, b, c) = $unmatched;
        a.map(|alone| alone.row).sink_to(TestSink::new("alone a"));
        b.map(|alone| alone.row).sink_to(TestSink::new("alone b"));
        c.map(|alone| alone.row).sink_to(TestSink::new("alone c"));
    }};
}

// `a JOIN b LEFT c`, and `a LEFT b LEFT c`.
fn build(flow: &Flow, both: bool, tells: [Tells; 2], ttl: Ttl) {
    let own = |row: Option<&Row>| row.cloned();
    told!(tells[1], |c| {
        let c = rows(flow, 2).optional().emit(c);
        if both {
            told!(tells[0], |b| {
                let join = multi_join![rows(flow, 0), rows(flow, 1).optional().emit(b), c].ttl(ttl).named("join");
                let (out, alone) =
                    join.select_with_unmatched(move |a, b, c| -> Joined { vec![own(Some(a)), own(b), own(c)] });
                sunk!(out, alone);
            });
        } else {
            let join = multi_join![rows(flow, 0), rows(flow, 1), c].ttl(ttl).named("join");
            let (out, alone) =
                join.select_with_unmatched(move |a, b, c| -> Joined { vec![own(Some(a)), own(Some(b)), own(c)] });
            sunk!(out, alone);
        }
    });
}

fn check(parallelism: usize, both: bool, tells: [Tells; 2], clock: Clock, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| build(flow, both, tells, millis(12).on(clock)));
    let (mut came, mut at) = ([0u64; 3], i64::MIN);
    let mut number = 0;
    for step in steps {
        match *step {
            Step::Row { input, key, time } => {
                // None is late.
                let time = time.max(at);
                let row = Row { key: Some(key), value: 0, stamp: number };
                number += 1;
                came[input] += 1;
                t.send(NAMES[input], fact(RowKind::Insert, row, time));
            }
            Step::Watermark(to) => {
                at = at.max(to);
                for name in &NAMES[..3] {
                    t.say(name, Progress::At(Watermark::at(EventTime::from_millis(at))));
                }
            }
            Step::Clock(by) => drop(advance(&mut t, by)),
        }
    }
    t.end_all();
    let mut met: [BTreeSet<i64>; 3] = Default::default();
    for (kind, joined, _) in taken::<Joined>(&mut t, "out") {
        let together = joined.iter().flatten().count() > 1;
        for (input, row) in joined.iter().enumerate().filter(|_| kind.adds() && together) {
            met[input].extend(row.iter().map(|row| row.stamp));
        }
    }
    let figures = t.figures("join");
    for (input, name) in NAMES[..3].iter().enumerate() {
        let alone: Vec<i64> =
            taken::<Row>(&mut t, &format!("alone {name}")).into_iter().map(|(_, row, _)| row.stamp).collect();
        prop_assert!(alone.iter().all(|stamp| !met[input].contains(stamp)), "{} is in a result and alone", name);
        let account = figures.accounts[input];
        prop_assert_eq!((account.rows, account.matched, account.open), (came[input], met[input].len() as u64, 0));
        // A row that stood in the result with nothing beside it is in no other place.
        let shown = both && input == 0;
        let expected = if shown { 0 } else { came[input] - met[input].len() as u64 };
        prop_assert_eq!(alone.len() as u64, expected, "{} alone", name);
    }
    check_accounts(&t, "join")
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (0..3usize, 0..2u8, 0..40i64).prop_map(|(input, key, time)| Step::Row { input, key, time });
    let step = prop_oneof![
        6 => row,
        1 => (0..50i64).prop_map(Step::Watermark),
        1 => (0..8i64).prop_map(Step::Clock),
    ];
    prop::collection::vec(step, 0..24)
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_row_has_met_a_partner_if_it_was_in_a_result_with_one_and_comes_out_alone_if_not(
        both in any::<bool>(), tells in [tells(), tells()], by_event in any::<bool>(), steps in steps(),
    ) {
        let clock = if by_event { Clock::Event } else { Clock::Processing };
        for parallelism in [1, 4] {
            check(parallelism, both, tells, clock, &steps)?;
        }
    }
}

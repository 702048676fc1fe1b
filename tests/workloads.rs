//! The inputs of the benchmark workloads `updates` and `temporal`, and their answers: a plain reference, the oracle, and
//! what is written down. The same of `window`, without a reference.

#[path = "../benches/support/reference.rs"]
mod reference;
#[path = "../benches/support/updates.rs"]
mod updates;
#[path = "../benches/support/workload.rs"]
mod workload;

use std::collections::BTreeMap;

use flowjoin::EventTime;
use flowjoin_testkit::oracle::{AsOf, Temporal, Version, regular};
use reference::{Inputs, Leveled, fields, tally};
use updates::{Change, UPDATES, changes_in, order_changes, order_numbers, payment_changes, payment_numbers};
use workload::{Order, Size, Tally, Workload, timed_order, timed_payment, window_key, window_start};

#[test]
fn the_reference_is_the_join_by_its_definition() {
    // As small as it can be: deliveries are shuffled in blocks of as many.
    let inputs = Inputs::of(4_096);
    let orders: Vec<_> = inputs.orders.values().collect();
    let payments: Vec<_> = inputs.payments.values().collect();
    let keys = [
        orders.iter().map(|order| Some(order.order_id)).collect(),
        payments.iter().map(|payment| Some(payment.order_id)).collect(),
        inputs.logistics.iter().map(|delivery| Some(delivery.order_id)).collect(),
    ];
    let joined = regular(&keys, &[false; 3]);
    let rows = joined.iter().map(|row| match row[..] {
        [Some(order), Some(payment), Some(delivery)] => {
            fields(orders[order], payments[payment], &inputs.logistics[delivery])
        }
        _ => panic!("an inner join has no gaps"),
    });
    let (expected, found) = (tally(rows), tally(inputs.joined()));
    assert_eq!(found, expected);
    assert!((3_200..3_400).contains(&found.count), "{found:?}: nine in ten orders, 95 % of them paid and delivered");
}

#[test]
fn the_answer_at_size_small_is_that_of_the_reference() {
    let found = tally(Inputs::of(Size::Small.rows()).joined());
    assert_eq!(found, Workload::Updates.answer(Size::Small).joined);
}

#[test]
fn the_answer_of_temporal_at_size_small_is_that_of_the_reference_which_is_the_definition() {
    let inputs = Leveled::of(Size::Small);
    let joined: Vec<_> = inputs.joined().collect();
    assert_eq!(tally(joined.iter().copied()), Workload::Temporal.answer(Size::Small).joined);
    let at = EventTime::from_millis;
    let version = |level: &workload::Level| Version { key: Some(level.user_id), time: at(level.ts), deletes: false };
    let versions: Vec<_> = inputs.levels.iter().map(version).collect();
    for (order, row) in inputs.orders.iter().zip(joined).step_by(97) {
        let held = Temporal::default().at(&versions, &Some(order.user_id), at(order.ts));
        let AsOf::Version(place) = held else { panic!("every user has a level before all orders") };
        assert_eq!(row, [order.order_id, order.user_id, u64::from(inputs.levels[place].level)]);
    }
}

#[test]
fn payments_have_four_versions_and_one_order_in_ten_is_deleted() {
    let rows = Size::Small.rows();
    let changes = |number| order_changes(number, rows);
    let deleted = (0..order_numbers(rows)).flat_map(changes).filter(|change| matches!(change, Change::Delete(_)));
    let deleted = deleted.count() as u64;
    assert_eq!(deleted, rows / 10);
    let mut versions: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for payment in (0..payment_numbers(rows)).flat_map(|number| payment_changes(number, rows)) {
        versions.entry(payment.order_id).or_default().push(payment.version);
    }
    assert_eq!(versions.len() as u64, rows);
    assert!(versions.values().all(|versions| versions.iter().copied().eq(0..=UPDATES)));
    assert_eq!(changes_in(Size::Small), rows + deleted + (1 + u64::from(UPDATES)) * rows + rows);
}

#[test]
fn all_changes_of_a_row_go_to_one_reader() {
    let rows = Size::Small.rows();
    for readers in [2, 4, 64] {
        let mut readers_of = BTreeMap::new();
        let mut goes_to = |table, key, number| {
            assert_eq!(*readers_of.entry((table, key)).or_insert(number % readers), number % readers);
        };
        for number in 0..payment_numbers(rows) {
            payment_changes(number, rows).for_each(|payment| goes_to("payments", payment.order_id, number));
            order_changes(number, rows).for_each(|change| match change {
                Change::Put(Order { order_id, .. }) | Change::Delete(order_id) => goes_to("orders", order_id, number),
            });
        }
    }
}

#[test]
fn the_answer_of_windows_at_size_small_is_that_of_the_definition() {
    let rows = Size::Small.rows();
    let mut orders: BTreeMap<(i64, u64), Vec<u64>> = BTreeMap::new();
    for order in (0..rows).map(timed_order) {
        orders.entry((window_start(order.ts), window_key(order.order_id))).or_default().push(order.order_id);
    }
    let mut found = Tally::default();
    for payment in (0..rows).map(timed_payment) {
        let window = window_start(payment.ts);
        for &order in orders.get(&(window, window_key(payment.order_id))).into_iter().flatten() {
            found.add([order, payment.order_id, window as u64]);
        }
    }
    assert_eq!(found, Workload::Window.answer(Size::Small).joined);
}

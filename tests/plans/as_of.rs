//! Plans with temporal and snapshot joins.

use expect_test::{Expect, expect};
use flowjoin::Loaded;
use flowjoin::prelude::*;

use super::{Order, Payment, Shipment, check, orders, payments, shipments};

#[path = "../../examples/vip.rs"]
#[allow(dead_code)]
mod vip;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = since, out_of_order = "1h")]
struct Level {
    #[key]
    order_id: u64,
    since: EventTime,
}

fn mistakes(build: impl FnOnce(&Flow), expected: Expect) {
    super::mistakes_in((file!(), include_str!("as_of.rs")), build, expected);
}

#[test]
fn orders_at_the_level_of_their_time() {
    check(
        |flow| vip::priced(flow, "in", "out"),
        expect![[r#"
        flow test
        └─ sink orders-priced (json lines, out/orders-priced.jsonl)              append-only
           └─ temporal join priced on user_id [orders, vip-levels?]              append-only
              │  keeps orders: rows by key and time, until the watermark passes its time
              │  keeps vip-levels: rows by key and time, the newest at or before the watermark, and those after it, each for 30d
              ├─ ⇄ source orders (json lines, in/orders.jsonl)                   time placed_at, out of order ≤ 1h, idle 1m
              └─ table vip-levels by user_id, versions                           changelog
                 └─ ⇄ source vip-levels (json lines table, in/vip-levels.jsonl)  time since, out of order ≤ 1h, idle 1m
        stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
    "#]],
    );
}

#[test]
fn a_temporal_join_that_corrects_and_one_of_facts() {
    check(
        |flow| {
            let levels = flow.table::<Level>(Debezium::json("in/levels.jsonl"));
            let join = orders(flow).keyed().temporal_join(levels.clone()).named("leveled").correct_late(minutes(5));
            join.late().sink_to(JsonLines::sink("out/late-orders.jsonl"));
            let (leveled, without) = join.select_with_unmatched(|order: &Order, _| order.clone());
            leveled.sink_to(JsonLines::upsert("out/leveled.jsonl"));
            without.sink_to(JsonLines::sink("out/without.jsonl"));
            levels.sink_to(JsonLines::upsert("out/levels.jsonl"));
            let paid = payments(flow).latest_by_key();
            let shipped = shipments(flow).key_by(|s| s.order_id).temporal_join(paid.optional());
            shipped
                .select(|s: &Shipment, p: Option<&Payment>| (s.order_id, p.is_some()))
                .sink_to(JsonLines::sink("out/p.jsonl"));
        },
        expect![[r#"
            flow test
            ├─ sink leveled (json lines upsert, out/leveled.jsonl)                              changelog
            │  └─ changes                                                                       changelog
            │     └─ table sink leveled by order_id                                             changelog
            │        │  keeps rows by key, as long as they stand
            │        └─ ⇄ temporal join leveled on order_id [orders, levels], corrected for 5m  changelog
            │           │  keeps orders: rows by key and time, until the watermark passes its time + 5m
            │           │  keeps levels: rows by key and time, the newest at or before the watermark − 5m, and those after it
            │           │  unmatched orders → sink without (json lines, out/without.jsonl)
            │           │  late orders → sink late-orders (json lines, out/late-orders.jsonl)
            │           ├─ ⇄ source orders (json lines, in/orders.jsonl)                        time placed_at, out of order ≤ 5s, idle 1m
            │           └─ table levels by order_id, versions                                   changelog
            │              │  keeps one row a key, as long as they stand
            │              └─ ⇄ source levels (debezium, in/levels.jsonl)                       time since, out of order ≤ 1h
            │                 │  keeps levels: one row a key, as long as they stand
            ├─ sink levels (json lines upsert, out/levels.jsonl)                                changelog
            │  └─ changes                                                                       changelog
            │     └─ table levels by order_id (as above)
            └─ sink p (json lines, out/p.jsonl)                                                 append-only
               └─ temporal join shipments-payments-temporal on order_id [shipments, payments?]  append-only
                  │  keeps shipments: rows by key and time, until the watermark passes its time
                  │  keeps payments: rows by key and time, the newest at or before the watermark, and those after it
                  ├─ ⇄ source shipments (csv, in/shipments.csv.gz)                              time moved_at, out of order ≤ 30s
                  └─ table payments by order_id, versions                                       changelog
                     └─ ⇄ latest_by_key                                                         changelog
                        └─ source payments (json lines, in/payments.jsonl)                      time paid_at, out of order ≤ 5s, idle 1m
            stages: 7, exchanges: 5 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
            warning: join leveled: the newest version of each key of `levels` is kept for ever, also of a key that was deleted, so its state grows with the keys; `.keep_versions(..)` ends that
            warning: join shipments-payments-temporal: the newest version of each key of `payments` is kept for ever, also of a key that was deleted, so its state grows with the keys; `.keep_versions(..)` ends that
            warning: source `levels` has no idleness: while one of its partitions is quiet, event time stands still, and no row comes out of join leveled; `idle = "1m"` beside its time ends that
            warning: source `shipments` has no idleness: while one of its partitions is quiet, event time stands still, and no row comes out of join shipments-payments-temporal; `idle = "1m"` beside its time ends that
        "#]],
    );
}

#[test]
fn a_snapshot_join_that_waits_for_its_table() {
    check(
        |flow| {
            let levels = flow.table::<Level>(JsonLines::table("in/levels.jsonl"));
            let at = EventTime::from_millis(0);
            let loaded = Loaded::at(at).or_quiet_for(secs(5));
            let join = orders(flow).keyed().snapshot_join(levels.optional()).named("leveled").after_load(loaded);
            join.select(|order, level| (order.order_id, level.is_some())).sink_to(JsonLines::sink("out/leveled.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink leveled (json lines, out/leveled.jsonl)                                                                                                     append-only
               └─ snapshot join leveled on order_id [orders, levels?], after the table has caught up, has reached 1970-01-01T00:00:00.000Z, or is quiet for 5s  append-only
                  │  keeps orders: rows by key, until the table is loaded
                  │  keeps levels: rows by key, as long as they stand
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                                                                                              time placed_at, out of order ≤ 5s, idle 1m
                  └─ table levels by order_id                                                                                                                   changelog
                     │  keeps one row a key, as long as they stand
                     └─ ⇄ source levels (json lines table, in/levels.jsonl)                                                                                     time since, out of order ≤ 1h
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn versions_of_what_has_none() {
    mistakes(
        |flow| {
            let changes = payments(flow).as_changelog(|payment| (flowjoin::RowKind::Insert, payment));
            let folded = changes.clone().to_table();
            let join = orders(flow).keyed().temporal_join(folded).named("folded"); // 1
            join.into_tuples().sink_to(JsonLines::sink("out/a.jsonl"));
            let join = orders(flow).named("again").keyed().temporal_join(changes.keyed().optional()).named("bag"); // 2
            join.into_tuples().sink_to(JsonLines::sink("out/b.jsonl"));
        },
        expect![[r#"
            at `temporal_join(folded).named("folded"); // 1`
              `payments` has no versions for a temporal join: it is made of a changelog, whose changes are folded; open it with `flow.table(..)`, or make it of facts with `.latest_by_key()`
            at `temporal_join(changes.keyed().optional()).named("bag"); // 2`
              `payments` has no versions for a temporal join: it is a changelog, and no table; open it with `flow.table(..)`, or make it of facts with `.latest_by_key()`"#]],
    );
}

#[test]
fn spans_of_nothing_and_a_time_to_live_beside_the_versions() {
    mistakes(
        |flow| {
            let levels = || flow.table::<Level>(JsonLines::table("in/levels.jsonl").named("levels"));
            let levels = levels();
            let keyed = orders(flow).keyed();
            let join = keyed.clone().temporal_join(levels.clone()).named("a").keep_versions(secs(0)); // 1
            let join = join.correct_late(-secs(1)); // 2
            join.select(|order, _| order.order_id).sink_to(JsonLines::changelog("out/a.jsonl"));
            let join = keyed.clone().temporal_join(levels.optional().ttl(hours(1))).named("b"); // 3
            join.select(|order, _| order.order_id).sink_to(JsonLines::sink("out/b.jsonl"));
            let join = keyed.clone().snapshot_join(levels.keyed().ttl(hours(1))).named("c"); // 4
            join.select(|order, _| order.order_id).sink_to(JsonLines::sink("out/c.jsonl"));
            let join = keyed.snapshot_join(levels).named("d").after_load(Loaded::quiet_for(secs(0))); // 5
            join.select(|order, _| order.order_id).sink_to(JsonLines::sink("out/d.jsonl"));
        },
        expect![[r#"
            at `keep_versions(secs(0)); // 1`
              `.keep_versions(0s)` leaves no time: give a span above zero, or leave it out
            at `correct_late(-secs(1)); // 2`
              `.correct_late(-1s)` leaves no time: give a span above zero, or leave it out
            at `temporal_join(levels.optional().ttl(hours(1))).named("b"); // 3`
              `levels` has a time-to-live, which a temporal join does not know: say how long a version holds by `.keep_versions(..)` of the join
            at `snapshot_join(levels.keyed().ttl(hours(1))).named("c"); // 4`
              a snapshot join keeps the rows of its table for as long as they stand: leave out the time-to-live
            at `after_load(Loaded::quiet_for(secs(0))); // 5`
              a table is never quiet for no time at all: give a span above zero"#]],
    );
}

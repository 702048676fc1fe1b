//! What plans say of window joins.

use expect_test::{Expect, expect};
use flowjoin::connectors::MemorySink;
use flowjoin::prelude::*;
use flowjoin::{Final, Span};

use super::{check, explain, mistakes_in, orders, payments, shipments};

fn mistakes(build: impl FnOnce(&Flow), expected: Expect) {
    mistakes_in((file!(), include_str!("windows.rs")), build, expected);
}

#[test]
fn a_window_join_with_late_rows() {
    check(
        |flow| {
            let shipments = shipments(flow).key_by(|s| s.order_id);
            let join = multi_join![orders(flow).keyed(), payments(flow).keyed(), shipments.optional()];
            let join =
                join.sliding(hours(1), minutes(10)).offset(minutes(5)).allowed_lateness(minutes(1)).named("hourly");
            join.select(|order, payment, shipment| (order.order_id, payment.paid_at, shipment.map(|s| s.moved_at)))
                .sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            flow test
            └─ sink out (memory)                                                                                               changelog
               └─ window join hourly on order_id [orders, payments, shipments?], sliding 1h every 10m, offset 5m, lateness 1m  changelog
                  │  kernel product
                  │  keeps orders, payments, shipments: rows by window, until the watermark reaches their window's end + 1m
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                                                             time placed_at, out of order ≤ 5s, idle 1m
                  ├─ ⇄ source payments (json lines, in/payments.jsonl)                                                         time paid_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source shipments (csv, in/shipments.csv.gz)                                                             time moved_at, out of order ≤ 30s
            stages: 4, exchanges: 3 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
            warning: source `shipments` has no idleness: while one of its partitions is quiet, event time stands still, and no window of join hourly fires; `idle = "1m"` beside its time ends that
        "#]],
    );
}

#[test]
fn a_join_over_sessions() {
    check(
        |flow| {
            let join = orders(flow).keyed().window_join(payments(flow).keyed()).on(|o, p| o.placed_at <= p.paid_at);
            join.session(minutes(30)).into_tuples().sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            flow test
            └─ sink out (memory)                                                                      append-only
               └─ window join orders-payments-window on order_id [orders, payments], session gap 30m  append-only
                  │  kernel conditional, with a condition on payments
                  │  keeps orders, payments: rows by key and session, until the watermark reaches their window's end
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                                    time placed_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source payments (json lines, in/payments.jsonl)                                time paid_at, out of order ≤ 5s, idle 1m
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn a_join_over_windows_is_warned_of_inputs_that_hold_event_time() {
    let flow = |flow: &Flow| {
        let shipments = shipments(flow).key_by(|s| s.order_id);
        let join = orders(flow).keyed().where_exists(shipments).tumbling(days(1));
        join.into_rows().sink_to(MemorySink::new("out"));
    };
    expect![[r#"source `shipments` has no idleness: while one of its partitions is quiet, event time stands still, and no window of join orders-shipments-window fires; `idle = "1m"` beside its time ends that"#]].assert_eq(&explain(flow).warnings.join("\n"));
}

#[test]
fn windows_that_cannot_be() {
    let wrong = |windows: [(Span, Span); 4], gap: Span| {
        move |flow: &Flow| {
            let (orders, payments) = (orders(flow).keyed(), payments(flow).keyed());
            let join = || orders.clone().window_join(payments.clone());
            let to = |name: &str| MemorySink::new(name);
            let [(size, _), (width, slide), (wide, rare), (long, often)] = windows;
            join().named("a").tumbling(size).into_tuples().sink_to(to("a"));
            join().named("b").sliding(width, slide).into_tuples().sink_to(to("b"));
            join().named("c").sliding(wide, rare).into_tuples().sink_to(to("c"));
            join().named("d").sliding(long, often).into_tuples().sink_to(to("d"));
            join().named("e").session(gap).into_tuples().sink_to(to("e"));
        }
    };
    let windows = [(secs(0), secs(0)), (secs(1), -secs(1)), (secs(5), secs(10)), (days(1), secs(1))];
    mistakes(
        wrong(windows, secs(0)),
        expect![[r#"
        at `tumbling(size).into_tuples().sink_to(to("a"));`
          a window of 0s holds no time: give a size above zero
        at `sliding(width, slide).into_tuples().sink_to(to("b"));`
          with a slide of -1s no window comes after another: give a slide above zero
        at `sliding(wide, rare).into_tuples().sink_to(to("c"));`
          windows of 5s every 10s leave time between them, and rows of that would be in no window: give a slide of 5s at most
        at `sliding(long, often).into_tuples().sink_to(to("d"));`
          with windows of 24h every 1s each row is in 86400 of them, and at most 10000 are allowed: give a longer slide
        at `session(gap).into_tuples().sink_to(to("e"));`
          a session with a gap of 0s is over before it begins: give a gap above zero"#]],
    );
}

#[test]
fn what_a_window_join_does_not_do() {
    mistakes(
        |flow| {
            let join = orders(flow).keyed().ttl(hours(1)).join(payments(flow).keyed().optional().emit(Final));
            let join = join.session(secs(5));
            let join = join.offset(secs(1));
            let join = join.allowed_lateness(-secs(1));
            join.into_tuples().sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            at `session(secs(5));`
              a window join keeps the rows of `orders` until their windows are over: leave out its `.ttl(..)` or `.keep_forever()`
            at `session(secs(5));`
              a window join tells the gaps of `payments` once, when the window fires: leave out its `.emit(..)`
            at `offset(secs(1));`
              a session begins with its first row: leave out `.offset(..)`
            at `allowed_lateness(-secs(1));`
              an allowed lateness of -1s is none: give a span of zero or above"#]],
    );
    mistakes(
        |flow| {
            let exists = orders(flow).keyed().where_exists(payments(flow).keyed());
            let join = exists.and(shipments(flow).key_by(|s| s.order_id));
            join.tumbling(secs(5)).select(|order, (), _| order.order_id).sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            at `where_exists(payments(flow).keyed());`
              join `orders-payments-shipments-window` joins the result of `where_exists` or `where_not_exists` at once: end that with `.into_rows()`, key it and join then"#]],
    );
}

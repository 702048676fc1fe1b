//! Interval joins in explain: tests, conditions and early gaps.

use super::*;
use flowjoin::{Eager, EagerAfter};

#[test]
fn a_semi_join_that_is_bounded_in_time() {
    check(
        |flow| {
            let unpaid = orders(flow).keyed().where_not_exists(payments(flow).keyed()).between(-secs(5), secs(30));
            unpaid.named("unpaid").into_rows().sink_to(JsonLines::sink("out/unpaid.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink unpaid (json lines, out/unpaid.jsonl)                                                      append-only
               └─ interval where not exists unpaid on order_id [orders, payments], right − left in [-5s, 30s]  append-only
                  │  keeps orders: rows by key and time, until the watermark passes its time + 30s
                  │  keeps payments: rows by key and time, until the watermark passes its time + 5s
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                                             time placed_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source payments (json lines, in/payments.jsonl)                                         time paid_at, out of order ≤ 5s, idle 1m
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn early_gaps_and_conditions() {
    check(
        |flow| {
            let orders = orders(flow).keyed().optional().emit(EagerAfter(secs(2)));
            let join = orders.interval_join(payments(flow).keyed().optional().emit(Eager)).between(-secs(5), secs(30));
            let join = join.on(|order, payment| order.placed_at <= payment.paid_at).named("paid");
            join.into_tuples().sink_to(JsonLines::changelog("out/paid.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink paid (json lines changelog, out/paid.jsonl)                                    changelog
               └─ interval join paid on order_id [orders?, payments?], right − left in [-5s, 30s]  changelog
                  │  with a condition on payments
                  │  orders: tells gaps after 2s
                  │  payments: tells gaps at once
                  │  keeps orders: rows by key and time, until the watermark passes its time + 30s
                  │  keeps payments: rows by key and time, until the watermark passes its time + 5s
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                                 time placed_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source payments (json lines, in/payments.jsonl)                             time paid_at, out of order ≤ 5s, idle 1m
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

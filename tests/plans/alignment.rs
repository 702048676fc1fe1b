//! Alignment in explain, and what is refused of it.

use super::*;

#[test]
fn aligned_sources_say_so() {
    check(
        |flow| {
            let orders = orders(flow).align("shop", hours(6)).keyed();
            let payments = flow.table::<Payment>(JsonLines::table("in/payments.jsonl")).align("shop", hours(6));
            let join = orders.join(payments).named("paid").ttl(hours(1));
            join.select(|order, _| order.clone()).sink_to(JsonLines::changelog("out/paid.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink paid (json lines changelog, out/paid.jsonl)                  changelog
               └─ join paid on order_id [orders, payments]                       changelog
                  │  kernel product
                  │  payments: unique by order_id
                  │  keeps orders, payments: rows by key, ttl 1h (processing time)
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)               time placed_at, out of order ≤ 5s, idle 1m, aligned in shop within 6h
                  └─ table payments by order_id                                  changelog
                     │  keeps one row a key, as long as they stand
                     └─ ⇄ source payments (json lines table, in/payments.jsonl)  time paid_at, out of order ≤ 5s, idle 1m, aligned in shop within 6h
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn what_cannot_be_aligned_is_refused() {
    #[derive(Clone, Debug, Serialize, Deserialize, Event)]
    #[event(time = ingestion)]
    struct Ping {
        id: u64,
    }
    mistakes_in(
        (file!(), include_str!("alignment.rs")),
        |flow| {
            let late = orders(flow).filter(|order| order.order_id > 1).align("shop", hours(1));
            late.sink_to(MemorySink::new("late"));
            let back = payments(flow).align("shop", -hours(1));
            back.sink_to(MemorySink::new("back"));
            let pings = flow.stream::<Ping>(Memory::rows("pings", vec![Ping { id: 1 }]));
            pings.align("pings", hours(1)).sink_to(MemorySink::new("pings"));
        },
        expect![[r#"
            at `align("shop", hours(1));`
              only what is read can wait: call `.align(..)` on the stream or table as it was opened, before anything else is done with it
            at `align("shop", -hours(1));`
              sources cannot be kept within -1h of each other: give a span of zero or more
            at `stream::<Ping>(Memory::rows("pings", vec![Ping { id: 1 }]));`
              source `pings` takes the time of arrival, which is never ahead or behind: leave out `.align(..)`, or give its rows a time of their own"#]],
    );
    mistakes_in(
        (file!(), include_str!("alignment.rs")),
        |flow| {
            let first = flow.stream::<Order>(Memory::rows("first", Vec::new()));
            first.align("shop", hours(1)).sink_to(MemorySink::new("first"));
            let second = flow.stream::<Order>(Memory::rows("second", Vec::new()));
            second.align("shop", hours(2)).sink_to(MemorySink::new("second"));
        },
        expect![[r#"
            at `stream::<Order>(Memory::rows("second", Vec::new()));`
              source `second` is aligned in `shop` within 2h, and `first` within 1h: give both the same drift, or groups of their own"#]],
    );
}

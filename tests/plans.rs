//! What a flow says of itself before it runs: explain as text, JSON and Mermaid, its warnings, and all its mistakes at once.
#![allow(clippy::duplicate_mod, reason = "both makers of input bring their random numbers")]

use expect_test::{Expect, expect, expect_file};
use flowjoin::connectors::{FromStream, Memory, MemorySink};
use flowjoin::prelude::*;
use flowjoin::{Append, Clock};

#[path = "plans/alignment.rs"]
mod alignment;
#[path = "plans/as_of.rs"]
mod as_of;
#[path = "plans/interval.rs"]
mod interval;
#[path = "plans/tables.rs"]
mod tables;
#[path = "plans/windows.rs"]
mod windows;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = placed_at, out_of_order = "5s", idle = "1m")]
struct Order {
    #[key]
    order_id: u64,
    placed_at: EventTime,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = paid_at, out_of_order = "5s", idle = "1m")]
struct Payment {
    #[key]
    order_id: u64,
    paid_at: EventTime,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(time = moved_at, out_of_order = "30s")]
struct Shipment {
    order_id: u64,
    moved_at: EventTime,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keyed)]
struct Fulfilled {
    #[key]
    order_id: u64,
    shipped: Option<EventTime>,
}

fn orders(flow: &Flow) -> Stream<Order> {
    flow.stream(JsonLines::file("in/orders.jsonl"))
}

fn payments(flow: &Flow) -> Stream<Payment> {
    flow.stream(JsonLines::file("in/payments.jsonl"))
}

fn shipments(flow: &Flow) -> Stream<Shipment> {
    flow.stream(Csv::file("in/shipments.csv.gz"))
}

fn explain(build: impl FnOnce(&Flow)) -> flowjoin::plan::explain::Explain {
    let flow = Flow::new("test");
    build(&flow);
    flow.explain().unwrap_or_else(|errors| panic!("{errors}"))
}

fn check(build: impl FnOnce(&Flow), expected: Expect) {
    // The places are lines of this file, which move.
    expected.assert_eq(&explain(build).to_string());
}

fn fulfilment(flow: &Flow) {
    let shipments = shipments(flow).key_by(|s| s.order_id);
    let (fulfilled, (open_orders, stray_payments, _)) =
        multi_join![orders(flow).keyed(), payments(flow).keyed(), shipments.optional()]
            .named("fulfilment")
            .ttl(hours(24))
            .select_with_unmatched(|order, _, shipment| Fulfilled {
                order_id: order.order_id,
                shipped: shipment.map(|s| s.moved_at),
            });
    fulfilled.sink_to(JsonLines::upsert("out/fulfilled.jsonl"));
    open_orders.sink_to(JsonLines::sink("out/unpaid.jsonl"));
    stray_payments.sink_to(JsonLines::sink("out/stray-payments.jsonl"));
}

#[test]
fn an_n_way_join_with_unmatched_rows() {
    check(
        fulfilment,
        expect![[r#"
            flow test
            └─ sink fulfilled (json lines upsert, out/fulfilled.jsonl)              changelog
               └─ multi join fulfilment on order_id [orders, payments, shipments?]  changelog
                  │  kernel product
                  │  keeps orders, payments, shipments: rows by key, ttl 24h (processing time)
                  │  unmatched orders → sink unpaid (json lines, out/unpaid.jsonl)
                  │  unmatched payments → sink stray-payments (json lines, out/stray-payments.jsonl)
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                  time placed_at, out of order ≤ 5s, idle 1m
                  ├─ ⇄ source payments (json lines, in/payments.jsonl)              time paid_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source shipments (csv, in/shipments.csv.gz)                  time moved_at, out of order ≤ 30s
            stages: 4, exchanges: 3 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn an_interval_join_with_side_outputs() {
    check(
        interval_with_sides,
        expect![[r#"
            flow test
            └─ sink paid (json lines, out/paid.jsonl)                                                    append-only
               └─ interval join paid-in-time on order_id [orders, payments], right − left in [-5s, 30s]  append-only
                  │  keeps orders: rows by key and time, until the watermark passes its time + 30s
                  │  keeps payments: rows by key and time, until the watermark passes its time + 5s
                  │  unmatched orders → sink unpaid (json lines, out/unpaid.jsonl)
                  │  late orders → sink late-orders (json lines, out/late-orders.jsonl)
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)                                       time placed_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source payments (json lines, in/payments.jsonl)                                   time paid_at, out of order ≤ 5s, idle 1m
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

fn interval_with_sides(flow: &Flow) {
    let join = orders(flow).keyed().interval_join(payments(flow).keyed()).between(-secs(5), secs(30));
    let join = join.named("paid-in-time");
    let (late_orders, _) = join.late();
    let (paid, (unpaid, _)) = join.select_with_unmatched(|order, payment| (order.order_id, payment.paid_at));
    paid.sink_to(JsonLines::sink("out/paid.jsonl"));
    unpaid.sink_to(JsonLines::sink("out/unpaid.jsonl"));
    late_orders.sink_to(JsonLines::sink("out/late-orders.jsonl"));
}

#[test]
fn a_chain_without_a_join_exchanges_nothing() {
    let flow = |flow: &Flow| {
        let more = flow.stream(Memory::<Order>::rows("more-orders", Vec::new()));
        let small = orders(flow).union(more).filter(|order| order.order_id < 10).map(|order| order.order_id);
        small.sink_to(JsonLines::sink("out/small.jsonl"));
    };
    check(
        flow,
        expect![[r#"
            flow test
            └─ sink small (json lines, out/small.jsonl)                 append-only
               └─ map                                                   append-only
                  └─ filter                                             append-only
                     └─ union                                           append-only
                        ├─ source orders (json lines, in/orders.jsonl)  time placed_at, out of order ≤ 5s, idle 1m
                        └─ source more-orders (memory, 0 rows)          time placed_at, out of order ≤ 5s, idle 1m
            stages: 1; nothing is exchanged between tasks
        "#]],
    );
}

#[test]
fn a_join_of_a_join() {
    let flow = |flow: &Flow| {
        let first = orders(flow).keyed().join(payments(flow).keyed().optional()).named("paid").ttl(days(1));
        let paid = first.select(|order, payment| Fulfilled {
            order_id: order.order_id,
            shipped: payment.map(|payment| payment.paid_at),
        });
        let shipments = shipments(flow).key_by(|s| s.order_id).ttl(hours(1).on(Clock::Event));
        let second = paid.keyed().join(shipments).named("shipped").keep_forever();
        second.select(|paid, _| paid.clone()).sink_to(JsonLines::changelog("out/shipped.jsonl"));
    };
    check(
        flow,
        expect![[r#"
            flow test
            └─ sink shipped (json lines changelog, out/shipped.jsonl)      changelog
               └─ join shipped on order_id [paid, shipments]               changelog
                  │  kernel product
                  │  keeps paid: rows by key, kept for ever
                  │  keeps shipments: rows by key, ttl 1h (event time)
                  ├─ ⇄ join paid on order_id [orders, payments?]           changelog
                  │  │  kernel product
                  │  │  keeps orders, payments: rows by key, ttl 24h (processing time)
                  │  ├─ ⇄ source orders (json lines, in/orders.jsonl)      time placed_at, out of order ≤ 5s, idle 1m
                  │  └─ ⇄ source payments (json lines, in/payments.jsonl)  time paid_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source shipments (csv, in/shipments.csv.gz)         time moved_at, out of order ≤ 30s
            stages: 5, exchanges: 4 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
            warning: join shipped: rows of `paid` are kept for ever, so its state grows with the input; `.ttl(..)` ends that
            warning: source `shipments` has no idleness: while one of its partitions is quiet, event time stands still, and nothing is cleaned or comes out unmatched in join shipped; `idle = "1m"` beside its time ends that
        "#]],
    );
}

#[test]
fn one_stream_may_have_two_readers() {
    let flow = |flow: &Flow| {
        let orders = orders(flow).keyed();
        let pairs = orders.clone().join(orders).named("twins").ttl(hours(1)).select(|a, b| (a.order_id, b.order_id));
        pairs.clone().sink_to(JsonLines::sink("out/pairs.jsonl"));
        pairs.filter(|(a, b)| a < b).sink_to(JsonLines::sink("out/half.jsonl"));
    };
    check(
        flow,
        expect![[r#"
            flow test
            ├─ sink pairs (json lines, out/pairs.jsonl)             append-only
            │  └─ join twins on order_id [orders, orders]           append-only
            │     │  kernel product
            │     │  keeps orders, orders 2: rows by key, ttl 1h (processing time)
            │     ├─ ⇄ source orders (json lines, in/orders.jsonl)  time placed_at, out of order ≤ 5s, idle 1m
            │     └─ ⇄ source orders (json lines, in/orders.jsonl) (as above)
            └─ sink half (json lines, out/half.jsonl)               append-only
               └─ filter                                            append-only
                  └─ join twins on order_id [orders, orders] (as above)
            stages: 2, exchanges: 1 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn a_plan_as_json() {
    let mut json: serde_json::Value = serde_json::from_str(&explain(interval_with_sides).json()).unwrap();
    for step in json["steps"].as_array_mut().unwrap() {
        let place = step["declared_at"].take();
        assert!(place.as_str().unwrap().starts_with("tests/plans.rs:"), "{place}");
    }
    let join = json["steps"].as_array().unwrap().iter().find(|step| step["kind"] == "interval join");
    expect_file!["plans/interval_join.json"].assert_eq(&serde_json::to_string_pretty(join.unwrap()).unwrap());
    json["steps"] = serde_json::Value::Null;
    expect![[r#"{"flow":"test","steps":null,"exchanges":2,"stages":3,"warnings":[]}"#]].assert_eq(&json.to_string());
}

#[test]
fn a_plan_as_a_flow_chart() {
    expect![[r#"
        flowchart LR
          n0(["source orders (json lines, in/orders.jsonl)"])
          n1>"key by order_id"]
          n2(["source payments (json lines, in/payments.jsonl)"])
          n3>"key by order_id"]
          n4{{"interval join paid-in-time on order_id [orders, payments], right − left in [-5s, 30s]"}}
          n5[["sink paid (json lines, out/paid.jsonl)"]]
          n6[["sink unpaid (json lines, out/unpaid.jsonl)"]]
          n7[["sink late-orders (json lines, out/late-orders.jsonl)"]]
          n0 -->|"append-only"| n1
          n1 ==>|"append-only"| n4
          n2 -->|"append-only"| n3
          n3 ==>|"append-only"| n4
          n4 -->|"append-only"| n5
          n4 -->|"unmatched orders, append-only"| n6
          n4 -->|"late orders, append-only"| n7
    "#]]
    .assert_eq(&explain(interval_with_sides).mermaid());
}

#[test]
fn a_flow_is_warned_of_state_that_grows_and_of_inputs_that_hold_event_time() {
    let flow = |flow: &Flow| {
        let shipments = shipments(flow).key_by(|s| s.order_id);
        let join = orders(flow).keyed().interval_join(shipments).between(secs(0), hours(1)).named("moved");
        join.select(|order, _| order.clone())
            .keyed()
            .join(payments(flow).keyed().ttl(hours(1)))
            .keep_forever()
            .select(|order, _| order.order_id)
            .sink_to(JsonLines::sink("out/both.jsonl"));
    };
    let warnings = explain(flow).warnings.join("\n");
    expect![[r#"
        join moved-payments-join: rows of `moved` are kept for ever, so its state grows with the input; `.ttl(..)` ends that
        source `shipments` has no idleness: while one of its partitions is quiet, event time stands still, and nothing is cleaned or comes out unmatched in join moved; `idle = "1m"` beside its time ends that"#]].assert_eq(&warnings);
    assert!(explain(fulfilment).warnings.is_empty());
}

#[test]
fn a_source_without_idleness_is_told_once_with_all_joins_that_stand_still() {
    let flow = |flow: &Flow| {
        let (shipments, orders) = (shipments(flow).key_by(|s| s.order_id), orders(flow).keyed());
        let near = orders.clone().interval_join(shipments.clone()).between(secs(0), hours(1)).named("near");
        near.into_tuples().sink_to(MemorySink::new("near"));
        let far = orders.clone().interval_join(shipments.clone()).between(secs(0), hours(9)).named("far");
        far.into_tuples().sink_to(MemorySink::new("far"));
        let daily = orders.window_join(shipments).tumbling(days(1)).named("daily");
        daily.into_tuples().sink_to(MemorySink::new("daily"));
    };
    let expected = "source `shipments` has no idleness: while one of its partitions is quiet, event time stands still, and \
                    no window of join daily fires, and nothing is cleaned or comes out unmatched in joins near, far; \
                    `idle = \"1m\"` beside its time ends that";
    assert_eq!(explain(flow).warnings, [expected]);
}

// The mistakes of a flow, with the text of the line that each points at.
fn mistakes(build: impl FnOnce(&Flow), expected: Expect) {
    mistakes_in((file!(), include_str!("plans.rs")), build, expected);
}

fn mistakes_in((file, source): (&str, &str), build: impl FnOnce(&Flow), expected: Expect) {
    let flow = Flow::new("test");
    build(&flow);
    let errors = flow.plan().err().expect("the plan is refused").0;
    let source: Vec<&str> = source.lines().collect();
    let told = errors.iter().map(|error| {
        assert_eq!(error.place.file(), file);
        let column = error.place.column() as usize - 1;
        let line: String = source[error.place.line() as usize - 1].chars().skip(column).collect();
        // Places within a sentence are lines of this file, which move.
        let here = format!("{file}:");
        let message = error.message.split(&here).enumerate();
        let message = message.map(|(n, part)| if n == 0 { part.to_string() } else { unplaced(part) });
        format!("at `{line}`\n  {}\n", message.collect::<Vec<_>>().join("PLACE"))
    });
    expected.assert_eq(told.collect::<String>().trim_end());
}

fn unplaced(text: &str) -> String {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':').to_string()
}

#[test]
fn bounds_that_no_time_is_within() {
    mistakes(
        |flow| {
            let join = orders(flow).keyed().interval_join(payments(flow).keyed());
            let join = join.between(secs(30), -secs(5));
            join.into_tuples().sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            at `between(secs(30), -secs(5));`
              no time is in the interval [30s, -5s]: the lower bound comes first, and both are right − left"#]],
    );
    mistakes(
        |flow| {
            let join = orders(flow).keyed().interval_join(payments(flow).keyed()).between(secs(1), secs(1));
            let join = join.exclusive_lower().exclusive_upper();
            join.into_tuples().sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            at `exclusive_lower().exclusive_upper();`
              no time is left in the interval [1s, 1s] once its ends are excluded: [1s 1ms, 1s]; widen it, or keep an end"#]],
    );
}

#[test]
fn a_time_to_live_of_nothing() {
    mistakes(
        |flow| {
            let payments = payments(flow).keyed().ttl(-secs(1));
            let join = orders(flow).keyed().join(payments);
            let join = join.ttl(secs(0));
            join.into_tuples().sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            at `ttl(-secs(1));`
              a ttl of -1s (processing time) would drop every row as it comes: give a span above zero
            at `ttl(secs(0));`
              a ttl of 0s (processing time) would drop every row as it comes: give a span above zero"#]],
    );
}

#[test]
fn two_steps_of_one_name() {
    mistakes(
        |flow| {
            for _ in 0..2 {
                orders(flow)
                    .keyed()
                    .join(payments(flow).keyed())
                    .ttl(hours(1))
                    .into_tuples()
                    .sink_to(MemorySink::new("out"));
            }
        },
        expect![[r#"
            at `stream(JsonLines::file("in/orders.jsonl"))`
              there is another source named `orders`, at PLACE a name is the identity of its state and figures; call `.named("…")` on one of them, or open it once and `.clone()` it, which reads it once for all
            at `stream(JsonLines::file("in/payments.jsonl"))`
              there is another source named `payments`, at PLACE a name is the identity of its state and figures; call `.named("…")` on one of them, or open it once and `.clone()` it, which reads it once for all
            at `join(payments(flow).keyed())`
              there is another join named `orders-payments-join`, at PLACE a name is the identity of its state and figures; call `.named("…")` on one of them
            at `sink_to(MemorySink::new("out"));`
              there is another sink named `out`, at PLACE a name is the identity of its state and figures; call `.named("…")` on one of them"#]],
    );
}

#[test]
fn a_stream_that_nobody_reads() {
    mistakes(
        |flow| {
            orders(flow).map(|order| order.order_id).sink_to(MemorySink::new("out"));
            let _ = flow.stream::<Payment>(JsonLines::file("in/payments.jsonl"));
            let join = flow
                .stream::<Shipment>(Csv::file("in/a.csv"))
                .key_by(|s| s.order_id)
                .join(flow.stream::<Shipment>(Csv::file("in/b.csv")).key_by(|s| s.order_id))
                .ttl(hours(1));
            let _ = join.into_tuples();
        },
        expect![[r#"
            at `stream::<Payment>(JsonLines::file("in/payments.jsonl"));`
              the stream of `payments` goes nowhere: send it on with `.sink_to(sink)`, or leave the step out
            at `join(flow.stream::<Shipment>(Csv::file("in/b.csv")).key_by(|s| s.order_id))`
              the result of join `a-b-join` goes nowhere: send it on with `.sink_to(sink)`, or leave the step out"#]],
    );
}

#[test]
fn a_side_output_that_alone_is_read_does_not_make_the_join_unread() {
    let flow = |flow: &Flow| {
        let join = orders(flow).keyed().interval_join(payments(flow).keyed()).between(secs(0), secs(1)).named("j");
        let (_, (unpaid, _)) = join.select_with_unmatched(|order, _| order.order_id);
        unpaid.sink_to(JsonLines::sink("out/unpaid.jsonl"));
    };
    assert_eq!(explain(flow).steps.len(), 6);
}

#[test]
#[allow(unused_must_use)]
fn a_join_that_is_never_finished() {
    mistakes(
        |flow| {
            orders(flow).sink_to(JsonLines::sink("out/orders.jsonl"));
            let more = flow.stream::<Order>(JsonLines::file("in/more.jsonl")).keyed();
            more.join(payments(flow).keyed()).ttl(hours(1));
        },
        expect![[r#"
            at `join(payments(flow).keyed()).ttl(hours(1));`
              this join was never finished: end it with `.select(..)`"#]],
    );
    mistakes(
        |flow| {
            let (orders, payments) = (orders(flow).keyed(), payments(flow).keyed());
            orders.join(payments);
        },
        expect![[r#"
            at `keyed(), payments(flow).keyed());`
              the result of `key_by` goes nowhere: join it and end the join with `.select(..)`, or leave the step out
            at `keyed());`
              the result of `key_by` goes nowhere: join it and end the join with `.select(..)`, or leave the step out"#]],
    );
}

#[test]
fn streams_of_two_flows_cannot_meet() {
    let other = Flow::new("other");
    let theirs = other.stream::<Payment>(FromStream::new("payments", futures::stream::empty()));
    mistakes(
        |flow| {
            let join = orders(flow).keyed().join(theirs.keyed()).ttl(hours(1));
            join.into_tuples().sink_to(MemorySink::new("out"));
        },
        expect![[r#"
            at `join(theirs.keyed()).ttl(hours(1));`
              `payments` belongs to flow `other`, not to `test`: streams of different flows cannot meet, so open both on one"#]],
    );
}

#[test]
fn a_flow_without_a_source() {
    mistakes(
        |_| (),
        expect![[r#"
        at `Flow::new("test");`
          the flow has no source: open one with `flow.stream::<Row>(source)`"#]],
    );
}

#[test]
fn all_mistakes_are_told_at_once_with_their_places() {
    let flow = Flow::new("test");
    let join = orders(&flow).keyed().interval_join(payments(&flow).keyed()).between(secs(2), secs(1));
    let pairs: Stream<_, Append> = join.into_tuples();
    pairs.sink_to(MemorySink::new("out"));
    let _ = flow.stream::<Shipment>(Csv::file("in/unread.csv"));
    let line = line!() - 1;
    let told = flow.explain().err().unwrap().to_string();
    assert!(told.starts_with("the flow cannot run, for 2 reasons:\n- "), "{told}");
    assert!(told.contains(&format!("\n  at tests/plans.rs:{line}:18")), "{told}");
    assert!(told.contains(&format!("\n  at tests/plans.rs:{}:77", line - 3)), "{told}");
}

//! Plans with tables, semi and anti joins, conditions, expiry and gap policies.

use expect_test::{Expect, expect};
use flowjoin::prelude::*;
use flowjoin::{EagerAfter, Final, Retract, Table, Unmatch};

use super::{Order, Shipment, check, orders, payments, shipments};

#[path = "../../examples/wide_table.rs"]
#[allow(dead_code)]
mod wide_table;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Account {
    #[key]
    account_id: u64,
    order_id: u64,
}

fn accounts(flow: &Flow) -> Table<u64, Account> {
    flow.table(Debezium::json("in/accounts.jsonl"))
}

fn mistakes(build: impl FnOnce(&Flow), expected: Expect) {
    super::mistakes_in((file!(), include_str!("tables.rs")), build, expected);
}

#[test]
fn the_wide_table() {
    check(
        |flow| wide_table::wide_table(flow, "in", "out"),
        expect![[r#"
            flow test
            └─ sink wide (json lines upsert, out/wide.jsonl)                             changelog
               └─ join wide on order_id [described, newest status?]                      changelog
                  │  kernel product
                  │  described: unique by order_id
                  │  newest status: unique by order_id
                  │  keeps described, newest status: rows by key, kept for ever
                  ├─ table described by order_id                                         changelog
                  │  │  keeps rows by key, as long as they stand
                  │  └─ ⇄ join described on product_id [placed, products?]               changelog
                  │     │  kernel product
                  │     │  products: a table, held here, unique by product_id
                  │     │  keeps placed: rows by key, kept for ever
                  │     │  keeps products: one row a key, as long as they stand
                  │     ├─ ⇄ join placed on key [orders, users?]                         changelog
                  │     │  │  kernel product
                  │     │  │  orders: unique by order_id
                  │     │  │  users: unique by user_id
                  │     │  │  keeps orders, users: rows by key, kept for ever
                  │     │  ├─ ⇄ changes                                                  changelog
                  │     │  │  └─ table orders by order_id                                changelog
                  │     │  │     │  keeps one row a key, as long as they stand
                  │     │  │     └─ ⇄ source orders (json lines table, in/orders.jsonl)  time of arrival
                  │     │  └─ ⇄ changes                                                  changelog
                  │     │     └─ table users by user_id                                  changelog
                  │     │        │  keeps one row a key, as long as they stand
                  │     │        └─ ⇄ source users (debezium, in/users.jsonl)            time of arrival
                  │     │           │  keeps users: one row a key, as long as they stand
                  │     └─ ⇄ source products (debezium, in/products.jsonl)               time of arrival
                  │        │  keeps products: one row a key, as long as they stand
                  └─ table newest status by order_id                                     changelog
                     │  keeps one row a key, as long as they stand
                     └─ ⇄ latest_by_key                                                  changelog
                        └─ source logistics (json lines, in/logistics.jsonl)             time moved_at, out of order ≤ 30s, idle 1m
            stages: 9, exchanges: 8 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn a_semi_join_and_an_anti_join() {
    check(
        |flow| {
            let (orders, accounts) = (orders(flow).keyed(), accounts(flow));
            let by_order = accounts.key_by(|account| account.order_id);
            let known = orders.clone().where_exists(by_order.clone()).named("known").ttl(hours(1));
            known.into_rows().sink_to(JsonLines::changelog("out/known.jsonl"));
            let unknown = orders.where_not_exists(by_order.keep_forever()).named("unknown").ttl(hours(1));
            let (unknown, (_, unused)) = unknown.into_rows_with_unmatched();
            unknown.sink_to(JsonLines::upsert("out/unknown.jsonl"));
            unused.sink_to(JsonLines::sink("out/unused.jsonl"));
        },
        expect![[r#"
            flow test
            ├─ sink known (json lines changelog, out/known.jsonl)           changelog
            │  └─ where exists known on order_id [orders, accounts]         changelog
            │     │  kernel product
            │     │  accounts: unique by account_id
            │     │  keeps orders, accounts: rows by key, ttl 1h (processing time)
            │     ├─ ⇄ source orders (json lines, in/orders.jsonl)          time placed_at, out of order ≤ 5s, idle 1m
            │     └─ ⇄ changes                                              changelog
            │        └─ table accounts by account_id                        changelog
            │           │  keeps one row a key, as long as they stand
            │           └─ ⇄ source accounts (debezium, in/accounts.jsonl)  time of arrival
            │              │  keeps accounts: one row a key, as long as they stand
            └─ sink unknown (json lines upsert, out/unknown.jsonl)          changelog
               └─ where not exists unknown on order_id [orders, accounts]   changelog
                  │  kernel product
                  │  accounts: unique by account_id
                  │  keeps orders: rows by key, ttl 1h (processing time)
                  │  keeps accounts: rows by key, kept for ever
                  │  unmatched accounts → sink unused (json lines, out/unused.jsonl)
                  ├─ ⇄ source orders (json lines, in/orders.jsonl) (as above)
                  └─ ⇄ changes (as above)
            stages: 5, exchanges: 3 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn a_join_with_a_condition() {
    check(
        |flow| {
            let join = orders(flow)
                .keyed()
                .join(payments(flow).keyed().optional())
                .on(|order, payment| payment.paid_at > order.placed_at);
            let join = join.named("paid").ttl(hours(1)).on_expiry(Unmatch);
            join.into_tuples().sink_to(JsonLines::changelog("out/paid.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink paid (json lines changelog, out/paid.jsonl)         changelog
               └─ join paid on order_id [orders, payments?]             changelog
                  │  kernel conditional, with a condition on payments
                  │  expiry unmatches
                  │  keeps orders, payments: rows by key, ttl 1h (processing time)
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)      time placed_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source payments (json lines, in/payments.jsonl)  time paid_at, out of order ≤ 5s, idle 1m
            stages: 3, exchanges: 2 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn joins_that_say_when_gaps_are_told() {
    check(
        |flow| {
            let shipments = shipments(flow).key_by(|s| s.order_id).optional().emit(EagerAfter(secs(5)));
            let join = multi_join![orders(flow).keyed(), payments(flow).keyed().optional().emit(Final), shipments];
            join.named("told").ttl(hours(1)).into_tuples().sink_to(JsonLines::changelog("out/told.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink told (json lines changelog, out/told.jsonl)                changelog
               └─ multi join told on order_id [orders, payments?, shipments?]  changelog
                  │  kernel product
                  │  payments: tells gaps at the end
                  │  shipments: tells gaps after 5s
                  │  keeps orders, payments, shipments: rows by key, ttl 1h (processing time)
                  ├─ ⇄ source orders (json lines, in/orders.jsonl)             time placed_at, out of order ≤ 5s, idle 1m
                  ├─ ⇄ source payments (json lines, in/payments.jsonl)         time paid_at, out of order ≤ 5s, idle 1m
                  └─ ⇄ source shipments (csv, in/shipments.csv.gz)             time moved_at, out of order ≤ 30s
            stages: 4, exchanges: 3 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn a_join_whose_expiry_retracts_and_rows_that_are_unique() {
    check(
        |flow| {
            let accounts = accounts(flow).filter(|account| account.order_id > 0);
            let accounts = accounts.key_by(|account| account.order_id).unique_by(|account| account.account_id);
            let join = orders(flow).keyed().join(accounts).named("recent").ttl(hours(1)).on_expiry(Retract);
            join.select(|order, _| order.clone()).sink_to(JsonLines::upsert("out/recent.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink recent (json lines upsert, out/recent.jsonl)                     changelog
               └─ changes                                                            changelog
                  └─ table sink recent by order_id                                   changelog
                     │  keeps rows by key, as long as they stand
                     └─ ⇄ join recent on order_id [orders, accounts]                 changelog
                        │  kernel product
                        │  accounts: unique by a function
                        │  expiry retracts
                        │  keeps orders, accounts: rows by key, ttl 1h (processing time)
                        ├─ ⇄ source orders (json lines, in/orders.jsonl)             time placed_at, out of order ≤ 5s, idle 1m
                        └─ ⇄ filter                                                  changelog
                           └─ changes                                                changelog
                              └─ table accounts by account_id                        changelog
                                 │  keeps one row a key, as long as they stand
                                 └─ ⇄ source accounts (debezium, in/accounts.jsonl)  time of arrival
                                    │  keeps accounts: one row a key, as long as they stand
            stages: 5, exchanges: 4 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
        "#]],
    );
}

#[test]
fn changes_are_put_in_order_for_a_sink_that_keeps_another_key() {
    check(
        |flow| {
            let accounts = accounts(flow).key_by(|account| account.order_id);
            let join = accounts.join(orders(flow).keyed()).named("placed").keep_forever();
            join.select(|account, _| account.clone()).sink_to(JsonLines::upsert("out/placed.jsonl"));
        },
        expect![[r#"
            flow test
            └─ sink placed (json lines upsert, out/placed.jsonl)                  changelog
               └─ changes                                                         changelog
                  └─ table sink placed by account_id                              changelog
                     │  keeps rows by key, as long as they stand
                     └─ ⇄ join placed on order_id [accounts, orders]              changelog
                        │  kernel product
                        │  accounts: unique by account_id
                        │  keeps accounts, orders: rows by key, kept for ever
                        ├─ ⇄ changes                                              changelog
                        │  └─ table accounts by account_id                        changelog
                        │     │  keeps one row a key, as long as they stand
                        │     └─ ⇄ source accounts (debezium, in/accounts.jsonl)  time of arrival
                        │        │  keeps accounts: one row a key, as long as they stand
                        └─ ⇄ source orders (json lines, in/orders.jsonl)          time placed_at, out of order ≤ 5s, idle 1m
            stages: 5, exchanges: 4 (⇄ by the hash of the key; with one task a stage nothing is exchanged)
            warning: join placed: rows of `orders` are kept for ever, so its state grows with the input; `.ttl(..)` ends that
        "#]],
    );
}

#[test]
fn conditions_beside_gaps_that_close_in_silence() {
    mistakes(
        |flow| {
            let join = orders(flow).keyed().join(payments(flow).keyed().optional());
            let join = join.on(|order, payment| payment.paid_at > order.placed_at);
            let join = join.and(shipments(flow).key_by(|s| s.order_id)).named("in silence").ttl(hours(1));
            join.into_tuples().sink_to(JsonLines::changelog("out/a.jsonl"));
        },
        expect![[r#"
            at `join(payments(flow).keyed().optional());`
              join `in silence` has conditions, optional inputs and rows that leave in silence or gaps that wait: which gaps stand cannot be known then; say what expiry does with `.on_expiry(Unmatch)` or `.on_expiry(Retract)`, or use `.keep_forever()`"#]],
    );
    mistakes(
        |flow| {
            let join = orders(flow).keyed().join(payments(flow).keyed().optional().emit(Final));
            let join = join.on(|order, payment| payment.paid_at > order.placed_at);
            let join = join.and(shipments(flow).key_by(|s| s.order_id)).named("waiting").keep_forever();
            join.into_tuples().sink_to(JsonLines::sink("out/a.jsonl"));
        },
        expect![[r#"
            at `join(payments(flow).keyed().optional().emit(Final));`
              join `waiting` has conditions, optional inputs and rows that leave in silence or gaps that wait: which gaps stand cannot be known then; join two inputs at a time, or let gaps be told at once"#]],
    );
}

#[test]
fn gaps_that_wait_beside_rows_that_are_taken_back() {
    mistakes(
        |flow| {
            let accounts = accounts(flow).key_by(|account| account.order_id);
            let join = accounts.join(payments(flow).keyed().optional().emit(Final));
            let join = join.named("of a table").ttl(hours(1));
            join.into_tuples().sink_to(JsonLines::changelog("out/a.jsonl"));
            let join = orders(flow).keyed().join(shipments(flow).key_by(|s| s.order_id).optional().emit(Final));
            let join = join.named("retracting").ttl(hours(1)).on_expiry(Retract);
            join.into_tuples().sink_to(JsonLines::changelog("out/b.jsonl"));
        },
        expect![[r#"
            at `join(payments(flow).keyed().optional().emit(Final));`
              join `of a table` tells a gap after a delay or at the end, but its rows are also taken back (an input is a changelog, or expiry retracts): leave out `.emit(..)`, or make all its inputs facts
            at `join(shipments(flow).key_by(|s| s.order_id).optional().emit(Final));`
              join `retracting` tells a gap after a delay or at the end, but its rows are also taken back (an input is a changelog, or expiry retracts): leave out `.emit(..)`, or make all its inputs facts"#]],
    );
}

#[test]
fn a_test_beside_more_than_one_input() {
    mistakes(
        |flow| {
            let known = orders(flow).keyed().where_exists(payments(flow).keyed());
            let join = known.and(shipments(flow).key_by(|s| s.order_id)).named("known and shipped").ttl(hours(1));
            join.select(|order: &Order, (), _: &Shipment| order.clone()).sink_to(JsonLines::sink("out/a.jsonl"));
        },
        expect![[r#"
            at `where_exists(payments(flow).keyed());`
              join `known and shipped` joins the result of `where_exists` or `where_not_exists` at once: end that with `.into_rows()`, key it and join then"#]],
    );
}

#[test]
fn unique_rows_of_a_join_that_is_keyed_anew() {
    mistakes(
        |flow| {
            let accounts = accounts(flow).key_by(|account| account.order_id);
            let owned = accounts.join(orders(flow).keyed()).named("owned").keep_forever();
            let owned = owned.select(|account, _| account.clone());
            let by_account = owned.key_by(|account| account.account_id).unique_by(|account| account.account_id);
            let join = by_account.join(payments(flow).keyed().optional()).named("paid").keep_forever();
            join.into_tuples().sink_to(JsonLines::changelog("out/a.jsonl"));
        },
        expect![[r#"
            at `join(payments(flow).keyed().optional()).named("paid").keep_forever();`
              an input of join `paid` has a unique key and is the result of join `owned`, keyed anew: changes of one row come from several tasks then, and what is taken back may come last; make it a table first, with `.to_table()` and `.key_by(..)` on that"#]],
    );
}

#[test]
fn the_table_before_a_sink_by_key_has_a_name_of_its_own() {
    let flow = Flow::new("test");
    // Whatever the stream comes from, it goes to two sinks, under the name of a table that there is.
    let accounts = flow.table::<Account>(Debezium::json("in/accounts.jsonl"));
    let by_order = || accounts.filter(|account| account.order_id > 0).map(|account| Shown(account.order_id));
    by_order().sink_to(JsonLines::upsert("out/accounts.jsonl"));
    by_order().sink_to(JsonLines::upsert("out/shown.jsonl"));
    by_order().to_table().named("shown").sink_to(JsonLines::changelog("out/told.jsonl"));
    let plan = flow.plan().unwrap();
    let mut tables: Vec<&str> = plan.nodes().iter().filter(|node| is_table(&node.op)).map(|node| &*node.name).collect();
    tables.sort();
    assert_eq!(tables, ["accounts", "shown", "sink accounts", "sink shown"]);
}

fn is_table(op: &flowjoin::plan::Op) -> bool {
    matches!(op, flowjoin::plan::Op::Table { .. })
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keyed)]
struct Shown(#[key] u64);

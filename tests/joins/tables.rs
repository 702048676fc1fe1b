//! Tables and changelogs: updates, deletes, unique keys, semi and anti joins, conditions and gap policies.

use expect_test::{Expect, expect};
use flowjoin::io::TableChange;
use flowjoin::prelude::*;
use flowjoin::{EagerAfter, Final, RowKind, Table};
use flowjoin_testkit::{TestFlow, TestSink, TestSource};

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
pub(super) struct User {
    #[key]
    pub(super) id: u64,
    pub(super) name: String,
    city: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = ingestion)]
pub(super) struct Order {
    pub(super) user: Option<u64>,
    pub(super) item: String,
}

pub(super) fn users(flow: &Flow) -> Table<u64, User> {
    flow.table::<User>(TestSource::new("users"))
}

fn orders(flow: &Flow) -> KeyedStream<Option<u64>, Order> {
    flow.stream::<Order>(TestSource::new("orders")).key_by(|order| order.user)
}

fn by_some_id(users: &Table<u64, User>) -> KeyedStream<Option<u64>, User, Changelog> {
    users.key_by(|user| Some(user.id))
}

#[track_caller]
pub(super) fn check(build: impl Fn(&Flow), script: &str, expected: Expect) {
    let alone = TestFlow::new(&build).play(script);
    expected.assert_eq(&alone);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    for tasks in [2, 4] {
        assert_eq!(
            sorted(&TestFlow::parallel(tasks, &build).play(script)),
            sorted(&alone),
            "with {tasks} tasks a stage"
        );
    }
}

#[test]
fn a_table_turns_ill_formed_changes_into_legal_ones() {
    check(
        |flow| users(flow).changes().map(|user| user.name).sink_to(TestSink::new("out")),
        "users id=1 name=ann
         users id=1 name=ann
         users id=1 name=bob
         users op=-D id=1 name=zoe
         users op=-D id=1 name=zoe
         users id=2 name=a ; id=2 name=b ; op=-D id=2 name=c
         users id=3 name=a ; id=3 name=b",
        expect![[r#"
            users id=1 name=ann
              out: +I ann
            users id=1 name=ann
            users id=1 name=bob
              out: -U ann
              out: +U bob
            users op=-D id=1 name=zoe
              out: -D bob
            users op=-D id=1 name=zoe
            users id=2 name=a ; id=2 name=b ; op=-D id=2 name=c
            users id=3 name=a ; id=3 name=b
              out: +I b
        "#]],
    );
}

#[test]
fn an_update_is_one_change_however_many_keys_change_at_once() {
    let mut flow = TestFlow::new(|flow| {
        let orders = flow.stream::<Order>(TestSource::new("orders")).key_by(|order| order.user.unwrap_or(0));
        let join = orders.join(users(flow).optional()).keep_forever();
        join.select(|order, user| (order.user, user.map(|user| user.name.clone()))).sink_to(TestSink::new("out"));
    });
    let named = |name: &str| -> Vec<TableChange<User>> {
        (0..2_000).map(|id| TableChange::Put(User { id, name: name.to_string(), city: None })).collect()
    };
    let orders = (0..2_000).map(|user| Order { user: Some(user), item: "tea".to_string() }).collect();
    flow.send_all::<Order>("orders", orders).change_all("users", named("ann"));
    flow.take("out");
    let changes = flow.change_all("users", named("bob")).take_changes::<(Option<u64>, Option<String>)>("out");
    let of = |name: &str, user| (Some(user), Some(name.to_string()));
    let pair = |user| [(RowKind::UpdateBefore, of("ann", user)), (RowKind::UpdateAfter, of("bob", user))];
    let expected: Vec<_> = (0..2_000).flat_map(pair).collect();
    assert!(changes == expected, "{} changes", changes.len());
}

#[test]
fn an_update_is_one_change_of_each_result_and_no_gap_shows() {
    check(
        |flow| {
            let join = orders(flow).join(by_some_id(&users(flow)).optional()).keep_forever();
            join.select(|order, user| (order.item.clone(), user.map(|user| user.name.clone())))
                .sink_to(TestSink::new("out"));
        },
        "orders user=1 item=tea
         users id=1 name=ann
         users id=1 name=bob
         users id=1 name=bob city=7
         users op=-D id=1 name=bob
         users id=1 name=a ; op=-D id=1 name=a
         orders item=nobody",
        expect![[r#"
            orders user=1 item=tea
              out: +I tea, -
            users id=1 name=ann
              out: -D tea, -
              out: +I tea, ann
            users id=1 name=bob
              out: -U tea, ann
              out: +U tea, bob
            users id=1 name=bob city=7
            users op=-D id=1 name=bob
              out: -D tea, bob
              out: +I tea, -
            users id=1 name=a ; op=-D id=1 name=a
            orders item=nobody
              out: +I nobody, -
        "#]],
    );
}

#[test]
fn a_row_whose_join_key_changes_goes_from_one_to_the_other() {
    check(
        |flow| {
            let users = users(flow);
            let cities = flow.table::<User>(TestSource::new("cities"));
            let join = users.key_by(|user| user.city).join(by_some_id(&cities).optional()).keep_forever();
            join.select(|user, city| (user.name.clone(), city.map(|city| city.name.clone())))
                .sink_to(TestSink::new("out"));
        },
        "cities id=1 name=rome
         cities id=2 name=oslo
         users id=7 name=ann city=1
         users id=8 name=bob city=1
         users id=7 name=ann city=2
         users op=-D id=8 name=x",
        expect![[r#"
            cities id=1 name=rome
            cities id=2 name=oslo
            users id=7 name=ann city=1
              out: +I ann, rome
            users id=8 name=bob city=1
              out: +I bob, rome
            users id=7 name=ann city=2
              out: -D ann, rome
              out: +I ann, oslo
            users op=-D id=8 name=x
              out: -D bob, rome
        "#]],
    );
}

#[test]
fn exists_and_not_exists_say_each_row_once() {
    check(
        |flow| {
            let (orders, users) = (orders(flow), by_some_id(&users(flow)));
            let known = orders.clone().where_exists(users.clone()).keep_forever().named("known").into_rows();
            known.map(|order| order.item).sink_to(TestSink::new("known"));
            let unknown = orders.where_not_exists(users).keep_forever().named("unknown").into_rows();
            unknown.map(|order| order.item).sink_to(TestSink::new("unknown"));
        },
        "orders user=1 item=tea
         users id=1 name=ann
         users id=1 name=bob
         orders user=1 item=milk
         users op=-D id=1 name=x
         orders item=nobody",
        expect![[r#"
            orders user=1 item=tea
              unknown: +I tea
            users id=1 name=ann
              known: +I tea
              unknown: -D tea
            users id=1 name=bob
            orders user=1 item=milk
              known: +I milk
            users op=-D id=1 name=x
              known: -D tea
              known: -D milk
              unknown: +I tea
              unknown: +I milk
            orders item=nobody
              unknown: +I nobody
        "#]],
    );
}

#[test]
fn null_keys_match_each_other_where_that_is_asked_for() {
    check(
        |flow| {
            let keyed = |name: &str| flow.stream::<Order>(TestSource::new(name)).key_by_null_safe(|order| order.user);
            let join = keyed("a").join(keyed("b").optional()).keep_forever();
            join.select(|a, b| (a.item.clone(), b.map(|b| b.item.clone()))).sink_to(TestSink::new("out"));
        },
        "a item=x
         b user=1 item=y
         b item=z",
        expect![[r#"
            a item=x
              out: +I x, -
            b user=1 item=y
            b item=z
              out: -D x, -
              out: +I x, z
        "#]],
    );
}

#[test]
fn a_condition_decides_who_is_a_match() {
    check(
        |flow| {
            let join = orders(flow)
                .join(by_some_id(&users(flow)).optional())
                .on(|order, user| user.city.map(|city| city > order.item.len() as u64));
            join.keep_forever()
                .select(|order, user| (order.item.clone(), user.map(|user| user.name.clone())))
                .sink_to(TestSink::new("out"));
        },
        "orders user=1 item=tea
         orders user=1 item=toolong
         users id=1 name=ann
         users id=1 name=ann city=5
         users id=1 name=ann city=9
         users id=1 name=ann city=1",
        expect![[r#"
            orders user=1 item=tea
              out: +I tea, -
            orders user=1 item=toolong
              out: +I toolong, -
            users id=1 name=ann
            users id=1 name=ann city=5
              out: -D tea, -
              out: +I tea, ann
            users id=1 name=ann city=9
              out: -D toolong, -
              out: +I toolong, ann
            users id=1 name=ann city=1
              out: -D tea, ann
              out: -D toolong, ann
              out: +I tea, -
              out: +I toolong, -
        "#]],
    );
}

#[test]
fn a_gap_that_waits_for_the_end_is_told_once_and_the_result_is_append_only() {
    check(
        |flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user);
            let joined: Stream<_> = left
                .join(right.optional().emit(Final))
                .ttl(secs(10))
                .select(|a, b| (a.item.clone(), b.map(|b| b.item.clone())));
            joined.sink_to(TestSink::new("out"));
        },
        "a user=1 item=x
         a user=2 item=y
         b user=1 item=z
         clock 10s
         a user=3 item=last
         a item=nil
         end",
        expect![[r#"
            a user=1 item=x
            a user=2 item=y
            b user=1 item=z
              out: +I x, z
            clock 10s
              out: +I y, -
            a user=3 item=last
            a item=nil
              out: +I nil, -
            end
              out: +I last, -
        "#]],
    );
}

#[test]
fn a_gap_may_be_told_after_a_delay_and_corrected() {
    check(
        |flow| {
            let left = flow.stream::<Order>(TestSource::new("a")).key_by(|order| order.user);
            let right = flow.stream::<Order>(TestSource::new("b")).key_by(|order| order.user);
            let join = left.join(right.optional().emit(EagerAfter(secs(5)))).ttl(secs(60));
            join.select(|a, b| (a.item.clone(), b.map(|b| b.item.clone()))).sink_to(TestSink::new("out"));
        },
        "a user=1 item=x
         a user=2 item=y
         b user=1 item=z
         clock 5s
         b user=2 item=late
         a user=3 item=last
         end",
        expect![[r#"
            a user=1 item=x
            a user=2 item=y
            b user=1 item=z
              out: +I x, z
            clock 5s
              out: +I y, -
            b user=2 item=late
              out: -D y, -
              out: +I y, late
            a user=3 item=last
            end
              out: +I last, -
        "#]],
    );
}

#[test]
fn a_change_of_very_many_results_does_not_touch_the_others_of_its_batch() {
    let mut t = TestFlow::new(|flow| {
        let join = orders(flow).join(by_some_id(&users(flow))).keep_forever();
        join.select(|order, user| (order.item.clone(), user.name.clone())).sink_to(TestSink::new("out"));
    });
    let many = vec!["user=1 item=tea"; 2_000].join(" ; ");
    t.play(&format!(
        "users id=1 name=ann ; id=2 name=bob ; id=3 name=cy
         orders {many} ; user=2 item=milk ; user=3 item=rice"
    ));
    let told = t.play("users id=1 name=eve ; id=2 name=dan ; op=-D id=3 name=x");
    assert_eq!(told.matches("-U tea, ann").count(), 2_000);
    assert_eq!(told.matches("+U tea, eve").count(), 2_000);
    assert!(told.ends_with("  out: -U milk, bob\n  out: +U milk, dan\n  out: -D rice, cy\n"), "{}", told.len());
}

#[test]
fn a_row_that_is_taken_back_late_does_not_wipe_the_new_one_of_its_key() {
    // Orders are matched in the task of their user, and then come back to that of their id.
    let build = |flow: &Flow| {
        let orders = flow.table::<User>(TestSource::new("orders"));
        let named = orders.key_by(|order| order.city).join(by_some_id(&users(flow)).optional()).keep_forever();
        let named = named.named("named").select(|order, user| User {
            name: user.map_or("-".to_string(), |user| user.name.clone()),
            ..order.clone()
        });
        let notes = flow.stream::<User>(TestSource::new("notes")).keyed();
        let noted = named.keyed().join(notes.optional()).keep_forever().named("noted");
        noted.select(|order, _| order.clone()).sink_to(JsonLines::upsert("out.jsonl"));
    };
    for tasks in [1, 2, 4] {
        let mut t = TestFlow::parallel(tasks, build);
        for user in 1..30 {
            t.play(&format!("users id={user} name=u{user}"));
        }
        let mut standing = String::new();
        for user in 1..30 {
            for line in t.play(&format!("orders id=7 name=x city={user}")).lines().filter(|line| line.contains("out: "))
            {
                let (kind, row) = line.trim_start().trim_start_matches("out: ").split_at(2);
                standing = if kind.starts_with('+') { row.trim().to_string() } else { String::new() };
            }
            assert_eq!(standing, format!("id 7, name u{user}, city {user}"), "with {tasks} tasks a stage");
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, Keyed)]
struct Cell {
    #[key]
    id: u64,
    name: String,
}

#[test]
fn a_settled_table_is_right_though_the_times_of_changes_go_back() {
    super::script::check(
        |flow| {
            let told = flow.stream::<super::script::Row>(TestSource::new("a")).as_changelog(|row| {
                let kind = if row.name.starts_with('-') { RowKind::Delete } else { RowKind::Insert };
                (kind, Cell { id: 1, name: row.name.trim_start_matches('-').to_string() })
            });
            let table = told.to_settled_table(flowjoin::Conflict::KeepFirst).named("settled seats");
            table.map(|cell| cell.name).sink_to(TestSink::new("out"));
        },
        "a 1 x @10
         a 1 -x @7
         a 1 y @12
         wm 20
         end",
        expect![[r#"
            a 1 x @10
            a 1 -x @7
            a 1 y @12
            wm 20
              out +I y @12
            end"#]],
    );
}

#[test]
fn the_changes_of_an_upstream_key_settle_in_the_order_in_which_they_come() {
    super::script::check(
        |flow| {
            let told = flow.stream::<super::script::Row>(TestSource::new("a")).as_changelog(|row| {
                let kind = if row.name.starts_with('-') { RowKind::Delete } else { RowKind::Insert };
                (kind, Cell { id: 1, name: row.name.trim_start_matches('-').to_string() })
            });
            // The first letter is the upstream key.
            let upstream = |cell: &Cell| cell.name.chars().next();
            let table = told.to_settled_table_by(upstream, flowjoin::Conflict::KeepFirst);
            table.map(|cell| cell.name).sink_to(TestSink::new("out"));
        },
        "a 1 p1 @5
         a 1 q1 @6
         wm 10
         a 1 -p1 @13
         a 1 p2 @12
         a 1 -q0 @14
         a 1 q2 @11
         wm 20
         a 1 q3 @30
         a 1 -q3 @25
         wm 28
         wm 40
         end",
        expect![[r#"
            a 1 p1 @5
            a 1 q1 @6
            wm 10
              out +I p1 @6
            a 1 -p1 @13
            a 1 p2 @12
            a 1 -q0 @14
            a 1 q2 @11
            wm 20
              out -U p1 @14
              out +U q2 @14
            a 1 q3 @30
            a 1 -q3 @25
            wm 28
            wm 40
              out -U q2 @30
              out +U p2 @30
            end"#]],
    );
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Seat {
    id: u64,
    #[key]
    person: Option<u64>,
}

fn seats(flow: &Flow, name: &str) -> Table<Option<u64>, Seat> {
    flow.table::<Seat>(TestSource::new(name))
}

fn shown(seat: &Seat, other: Option<&Seat>) -> (u64, Option<u64>) {
    (seat.id, other.map(|other| other.id))
}

#[test]
fn the_row_of_a_table_with_the_key_null_stands_and_matches_nothing() {
    let script = "a id=1
         a id=2 person=7
         b id=3
         b id=4 person=7
         a id=5
         a op=-D id=5";
    let expected = expect![[r#"
        a id=1
          left: +I 1, -
          alone: +I 1
          nulls: +I id 1, person -, reason null_key
        a id=2 person=7
          left: +I 2, -
          alone: +I 2
        b id=3
        b id=4 person=7
          left: -D 2, -
          left: +I 2, 4
          alone: -D 2
        a id=5
          left: -D 1, -
          left: +I 5, -
          alone: -D 1
          alone: +I 5
          nulls: +I id 5, person -, reason null_key
        a op=-D id=5
          left: -D 5, -
          alone: -D 5
    "#]];
    check(
        |flow| {
            let (a, b) = (seats(flow, "a"), seats(flow, "b"));
            a.join(b.optional()).keep_forever().named("left join").select(shown).sink_to(TestSink::new("left"));
            a.where_not_exists(b.keyed())
                .keep_forever()
                .named("anti join")
                .into_rows()
                .map(|seat| seat.id)
                .sink_to(TestSink::new("alone"));
            let (_, (nulls, _)) = a.join(b).ttl(hours(1)).named("inner").select_with_unmatched(|a, b| (a.id, b.id));
            nulls.sink_to(TestSink::new("nulls"));
        },
        script,
        expected,
    );
}

#[test]
fn the_newest_row_of_the_key_null_is_one_row() {
    check(
        |flow| {
            let newest = flow.stream::<Seat>(TestSource::new("seats")).latest_by_key().named("newest seats");
            newest.map(|seat| seat.id).sink_to(TestSink::new("newest"));
            let rows = newest.map(|seat| Seat { person: None, ..seat });
            rows.clone()
                .to_settled_table(flowjoin::Conflict::KeepFirst)
                .named("settled seats")
                .map(|seat| seat.id)
                .sink_to(TestSink::new("settled"));
            rows.sink_to(JsonLines::upsert("upsert.jsonl").named("upsert"));
        },
        "seats id=1
         seats id=2
         seats id=3 person=7
         wm 1s",
        expect![[r#"
            seats id=1
              newest: +I 1
              upsert: +I id 1, person -
            seats id=2
              newest: -U 1
              newest: +U 2
              upsert: -U id 1, person -
              upsert: +U id 2, person -
            seats id=3 person=7
              newest: +I 3
              upsert: -U id 2, person -
              upsert: +U id 3, person -
            wm 1s
              settled: +I 2
        "#]],
    );
}

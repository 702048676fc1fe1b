//! The temporal join of `examples/vip.rs` and the interval join of `examples/interval.rs`, against SQLite over the same
//! input files.
#![allow(clippy::unwrap_used)]
#![allow(clippy::duplicate_mod, reason = "both makers of input bring their random numbers")]

use std::path::PathBuf;

use flowjoin::Report;
use flowjoin::prelude::*;
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

#[path = "../examples/demo_data.rs"]
#[allow(dead_code)]
mod demo_data;
#[path = "../examples/interval.rs"]
#[allow(dead_code)]
mod interval;
#[path = "../examples/vip.rs"]
#[allow(dead_code)]
mod vip;

type Row = Map<String, Value>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_priced_by_the_level_that_sqlite_finds() {
    for (parallelism, seed) in [(1, 1), (1, 2), (4, 1), (4, 3)] {
        let directory = Directory::new(&format!("vip-{parallelism}-{seed}"));
        vip::data::write(&vip::data::Shape { orders: 4_000, seed }, &directory.0.join("in")).unwrap();
        let report = run(parallelism, |flow| vip::priced(flow, &directory.path("in"), &directory.path("."))).await;

        let mut got: Vec<[i64; 3]> = directory
            .lines("orders-priced")
            .iter()
            .map(|row| ["order_id", "level", "price"].map(|field| row[field].as_i64().unwrap()))
            .collect();
        got.sort_unstable();
        let expected = priced_by_sqlite(&directory);
        assert!(got == expected, "seed {seed}, parallelism {parallelism}\n{report}");
        is_worth_a_test(&report, &expected);
    }
}

// Each of the ways in which an order can have a level or not is there.
fn is_worth_a_test(report: &Report, rows: &[[i64; 3]]) {
    let orders = report.step("priced").unwrap().inputs[0].account;
    assert_eq!((orders.rows, orders.late, orders.open), (rows.len() as u64, 0, 0), "{report}");
    let levels = rows.iter().filter(|[_, level, _]| *level > 0).count() as u64;
    assert_eq!(orders.matched, levels, "{report}");
    let deleted = orders.unmatched - orders.never_seen - orders.no_version;
    for count in [orders.matched, orders.null_key, orders.never_seen, orders.no_version, deleted] {
        assert!(count > 100, "{report}");
    }
}

fn priced_by_sqlite(directory: &Directory) -> Vec<[i64; 3]> {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, user_id INTEGER, amount INTEGER, placed_at INTEGER);
             CREATE TABLE levels (line INTEGER PRIMARY KEY, user_id INTEGER, level INTEGER, since INTEGER);
             CREATE INDEX by_user ON levels (user_id, since);
             BEGIN",
        )
        .unwrap();
    for row in directory.lines("in/orders") {
        let values =
            params![number(&row["order_id"]), number(&row["user_id"]), number(&row["amount"]), time(&row["placed_at"])];
        database.execute("INSERT INTO orders VALUES (?1, ?2, ?3, ?4)", values).unwrap();
    }
    // What is lost is so from the newest time before it in the file.
    let mut newest = 0;
    for row in directory.lines("in/vip-levels") {
        newest = row.get("since").map_or(newest, |since| newest.max(time(since)));
        let since = row.get("since").map_or(newest, time);
        let values = params![number(&row["user_id"]), row.get("level").and_then(number), since];
        database.execute("INSERT INTO levels (user_id, level, since) VALUES (?1, ?2, ?3)", values).unwrap();
    }
    let mut query = database.prepare(PRICED).unwrap();
    let rows = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]));
    rows.unwrap().map(Result::unwrap).collect()
}

const PRICED: &str = "
    WITH found AS (
        SELECT order_id, amount, COALESCE((
            SELECT CASE WHEN placed_at < since + 30 * 86400000 THEN level END
            FROM levels v WHERE v.user_id = o.user_id AND v.since <= o.placed_at
            ORDER BY since DESC, line DESC LIMIT 1), 0) AS level
        FROM orders o
    )
    SELECT order_id, level, amount * (100 - 2 * level) / 100 FROM found ORDER BY order_id";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_paid_in_time_where_sqlite_says_so() {
    for parallelism in [1, 4] {
        let directory = Directory::new(&format!("interval-{parallelism}"));
        let until = EventTime::from_millis(1_767_225_600_000);
        demo_data::write(&demo_data::Shape { orders: 3_000, seed: 5, until }, &directory.0.join("in")).unwrap();
        let build = |flow: &Flow| interval::paid_in_time(flow, &directory.path("in"), &directory.path("."));
        let report = run(parallelism, build).await;

        let of = |row: &Row, field| (number(&row["order_id"]).unwrap(), number(&row[field]).unwrap());
        let mut paid: Vec<_> = directory.lines("paid").iter().map(|row| of(row, "after_ms")).collect();
        let mut unpaid: Vec<_> = directory.lines("not-in-time").iter().map(|row| of(row, "amount")).collect();
        paid.sort_unstable();
        unpaid.sort_unstable();
        let [expected_paid, expected_unpaid] = paid_by_sqlite(&directory);
        assert!(paid == expected_paid && unpaid == expected_unpaid, "parallelism {parallelism}\n{report}");
        assert!(paid.len() > 1_000 && unpaid.len() > 500, "{report}");
    }
}

fn paid_by_sqlite(directory: &Directory) -> [Vec<(i64, i64)>; 2] {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "CREATE TABLE orders (order_id INTEGER, amount INTEGER, placed_at INTEGER);
             CREATE TABLE payments (order_id INTEGER, paid_at INTEGER);
             CREATE INDEX by_order ON payments (order_id);
             BEGIN",
        )
        .unwrap();
    for row in directory.lines("in/orders") {
        let values = params![number(&row["order_id"]), number(&row["amount"]), time(&row["placed_at"])];
        database.execute("INSERT INTO orders VALUES (?1, ?2, ?3)", values).unwrap();
    }
    for row in directory.lines("in/payments") {
        let values = params![number(&row["order_id"]), time(&row["paid_at"])];
        database.execute("INSERT INTO payments VALUES (?1, ?2)", values).unwrap();
    }
    [PAID, UNPAID].map(|sql| {
        let mut query = database.prepare(sql).unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    })
}

const PAID: &str = "
    SELECT o.order_id, p.paid_at - o.placed_at AS after
    FROM orders o JOIN payments p ON p.order_id = o.order_id AND p.paid_at - o.placed_at BETWEEN -5000 AND 30000
    ORDER BY 1, 2";

const UNPAID: &str = "
    SELECT o.order_id, o.amount FROM orders o WHERE NOT EXISTS (
        SELECT 1 FROM payments p WHERE p.order_id = o.order_id AND p.paid_at - o.placed_at BETWEEN -5000 AND 30000)
    ORDER BY 1, 2";

async fn run(parallelism: usize, build: impl FnOnce(&Flow)) -> Report {
    let flow = Flow::new("test");
    build(&flow);
    let config = Config::default().quiet().with_parallelism(parallelism);
    let report = flow.start(config).unwrap().wait().await.unwrap();
    assert!(report.is_balanced(), "{report}");
    report
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64()
}

fn time(value: &Value) -> i64 {
    value.as_str().unwrap().parse::<EventTime>().unwrap().as_millis()
}

/// A directory of a test's own, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("flowjoin-sqlite-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn path(&self, below: &str) -> String {
        self.0.join(below).to_str().unwrap().to_string()
    }

    fn lines(&self, file: &str) -> Vec<Row> {
        let text = std::fs::read_to_string(self.path(&format!("{file}.jsonl"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! The wide table of `examples/wide_table.rs`, against SQLite over the same input files.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use flowjoin::prelude::*;
use rusqlite::{Connection, ToSql, params};
use serde_json::{Map, Value, json};

#[path = "../examples/wide_table.rs"]
#[allow(dead_code)]
mod wide_table;

use wide_table::data::{self, Shape};

type Row = Map<String, Value>;
type Rows = BTreeMap<u64, Row>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wide_table_is_the_one_that_sqlite_makes() {
    // Changes of a page are folded: small pages show more of what happens in between.
    for (parallelism, seed, page_rows) in [(1, 1, 4_096), (1, 2, 50), (4, 1, 50), (4, 2, 4_096)] {
        let directory = Directory::new(&format!("{parallelism}-{seed}"));
        data::write(&Shape { orders: 4_000, seed }, &directory.0.join("in")).unwrap();
        let flow = Flow::new("wide table");
        wide_table::wide_table(&flow, &directory.path("in"), &directory.path("."));
        let mut config = Config::default().quiet().with_parallelism(parallelism);
        config.page_rows = page_rows;
        let report = flow.start(config).unwrap().wait().await.unwrap();
        assert!(report.is_balanced(), "{report}");

        let expected = by_sqlite(&directory);
        let got = table(directory.lines("wide"));
        let differ: Vec<_> = expected.keys().chain(got.keys()).filter(|id| expected.get(id) != got.get(id)).collect();
        assert!(differ.is_empty(), "seed {seed}, parallelism {parallelism}: orders {differ:?}\n{report}");
        is_worth_a_test(&expected);
        for step in ["placed", "described", "wide"] {
            for input in &report.step(step).unwrap().inputs {
                let account = input.account;
                assert_eq!((account.late, account.orphan, account.bad), (0, 0, 0), "{step}: {report}");
            }
        }
    }
}

// Each of the ways in which a row can be complete or not is there.
fn is_worth_a_test(rows: &Rows) {
    let count = |of: &dyn Fn(&Row) -> bool| rows.values().filter(|row| of(row)).count();
    assert!(rows.len() > 3_000, "{} orders are left", rows.len());
    let counts = [
        count(&|row| row["user_id"].is_null()),
        count(&|row| !row["user_id"].is_null() && row["level"] == 0),
        count(&|row| row["level"] != 0),
        count(&|row| row["category"] == "unknown"),
        count(&|row| row["category"] != "unknown"),
        count(&|row| row["status"] == "none"),
        count(&|row| row["status"] == "packed"),
    ];
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
}

/// The table that the final rows of the inputs give.
fn by_sqlite(directory: &Directory) -> Rows {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, user_id INTEGER, product_id INTEGER, amount INTEGER);
             CREATE TABLE users (user_id INTEGER PRIMARY KEY, level INTEGER);
             CREATE TABLE products (product_id INTEGER PRIMARY KEY, category TEXT);
             CREATE TABLE logistics (line INTEGER PRIMARY KEY, order_id INTEGER, status TEXT, moved_at TEXT);
             BEGIN",
        )
        .unwrap();
    load_orders(&database, directory);
    load_events(&database, directory, "users", ["user_id", "level"]);
    load_events(&database, directory, "products", ["product_id", "category"]);
    for row in directory.lines("in/logistics") {
        let row = params![sql(&row["order_id"]), sql(&row["status"]), sql(&row["moved_at"])];
        database.execute("INSERT INTO logistics (order_id, status, moved_at) VALUES (?1, ?2, ?3)", row).unwrap();
    }
    let mut query = database.prepare(WIDE).unwrap();
    let rows = query.query_map([], |row| {
        let wide = json!({
            "order_id": row.get::<_, i64>(0)?,
            "user_id": row.get::<_, Option<i64>>(1)?,
            "level": row.get::<_, i64>(2)?,
            "product_id": row.get::<_, i64>(3)?,
            "category": row.get::<_, String>(4)?,
            "amount": row.get::<_, i64>(5)?,
            "status": row.get::<_, String>(6)?,
        });
        Ok((row.get::<_, u32>(0)?.into(), wide.as_object().unwrap().clone()))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

const WIDE: &str = "
    WITH newest AS (
        SELECT order_id, status, row_number() OVER (PARTITION BY order_id ORDER BY moved_at DESC, line DESC) AS age
        FROM logistics
    )
    SELECT o.order_id, o.user_id, COALESCE(u.level, 0), o.product_id, COALESCE(p.category, 'unknown'), o.amount,
        COALESCE(n.status, 'none')
    FROM orders o
    LEFT JOIN users u ON u.user_id = o.user_id
    LEFT JOIN products p ON p.product_id = o.product_id
    LEFT JOIN newest n ON n.order_id = o.order_id AND n.age = 1";

fn load_orders(database: &Connection, directory: &Directory) {
    for row in directory.lines("in/orders") {
        let key = sql(&row["order_id"]);
        database.execute("DELETE FROM orders WHERE order_id = ?1", [key.as_ref()]).unwrap();
        if row["op"] == "+U" {
            let row = params![key, sql(&row["user_id"]), sql(&row["product_id"]), sql(&row["amount"])];
            database.execute("INSERT INTO orders VALUES (?1, ?2, ?3, ?4)", row).unwrap();
        }
    }
}

/// What `before` says was there goes, what `after` says comes.
fn load_events(database: &Connection, directory: &Directory, table: &str, [key, value]: [&str; 2]) {
    for event in directory.lines(&format!("in/{table}")) {
        if let Some(before) = event["before"].as_object() {
            let gone = database.execute(&format!("DELETE FROM {table} WHERE {key} = ?1"), [sql(&before[key])]);
            assert_eq!(gone, Ok(1), "the events are well-formed");
        }
        if let Some(after) = event["after"].as_object() {
            let row = params![sql(&after[key]), sql(&after[value])];
            database.execute(&format!("INSERT INTO {table} VALUES (?1, ?2)"), row).unwrap();
        }
    }
}

fn sql(value: &Value) -> Box<dyn ToSql> {
    match value {
        Value::Null => Box::new(None::<i64>),
        Value::Number(number) => Box::new(number.as_i64().unwrap()),
        Value::String(text) => Box::new(text.clone()),
        other => panic!("no column is {other}"),
    }
}

/// What stands after all changes of an upsert file.
fn table(lines: Vec<Row>) -> Rows {
    let mut rows = Rows::new();
    for mut row in lines {
        let id = row["order_id"].as_u64().unwrap();
        match row.shift_remove("op").unwrap().as_str().unwrap() {
            "+U" => drop(rows.insert(id, row)),
            "-D" => drop(rows.remove(&id)),
            other => panic!("an upsert file has no {other}"),
        }
    }
    rows
}

/// A directory of a test's own, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("flowjoin-wide-{}-{name}", std::process::id()));
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

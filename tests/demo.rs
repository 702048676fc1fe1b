//! The demo on a smaller set of orders, against a count by naive code over the same files.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flowjoin::prelude::*;
use flowjoin::{Account, Report};
use serde_json::{Map, Value};

#[path = "../examples/demo_data.rs"]
#[allow(dead_code)]
mod demo_data;
#[path = "../examples/fulfilment.rs"]
#[allow(dead_code)]
mod fulfilment;
#[path = "../examples/interval.rs"]
#[allow(dead_code)]
mod interval;

type Rows = BTreeMap<u64, Map<String, Value>>;

#[test]
fn the_demo_data_is_the_same_for_the_same_seed_and_has_its_gaps() {
    let [a, b] = [Directory::new("seed-a"), Directory::new("seed-b")];
    let [orders, payments, shipments] = a.with_input(4_000, 7);
    assert_eq!(b.with_input(4_000, 7), [orders, payments, shipments]);
    for name in ["orders", "payments", "shipments"] {
        assert_eq!(a.text(&format!("in/{name}.jsonl")), b.text(&format!("in/{name}.jsonl")), "{name}");
    }
    let (placed, paid, sent) = (a.rows("in/orders"), a.rows("in/payments"), a.rows("in/shipments"));
    assert_eq!([placed.len(), paid.len(), sent.len()], [orders, payments, shipments], "one row a key");
    let share = |count: usize| (0.04..0.06).contains(&(count as f64 / orders as f64));
    assert!(share(placed.keys().filter(|id| !paid.contains_key(id)).count()), "orders without a payment");
    assert!(share(placed.keys().filter(|id| !sent.contains_key(id)).count()), "orders without a shipment");
    assert!(share(paid.keys().filter(|id| !placed.contains_key(id)).count()), "stray payments");
}

#[test]
fn the_demo_data_is_out_of_order_within_the_declared_bounds_and_not_in_the_future() {
    let directory = Directory::new("disorder");
    directory.with_input(4_000, 3);
    for (name, field, bound) in
        [("orders", "placed_at", secs(5)), ("payments", "paid_at", secs(5)), ("shipments", "moved_at", secs(30))]
    {
        let (mut newest, mut worst) = (EventTime::MIN, millis(0));
        for row in directory.lines(&format!("in/{name}")) {
            let time: EventTime = row[field].as_str().unwrap().parse().unwrap();
            assert!(time < UNTIL, "{name}: {time}");
            newest = newest.max(time);
            worst = worst.max(newest.since(time));
        }
        assert!(worst > millis(bound.as_millis() / 4) && worst < bound, "{name}: {worst} of {bound}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fulfilment_writes_what_a_naive_count_expects_and_accounts_for_every_row() {
    for parallelism in [1, 4] {
        let directory = Directory::new(&format!("fulfilment-{parallelism}"));
        directory.with_input(3_000, 1);
        let flow = Flow::new("fulfilment");
        fulfilment::fulfilment(&flow, &directory.path("in"), &directory.path("."));
        let config = Config::default().quiet().with_parallelism(parallelism);
        let report = flow.start(config).unwrap().wait().await.unwrap();

        let expected = Expected::of(&directory);
        assert_eq!(directory.table("fulfilled"), expected.fulfilled);
        assert_eq!(directory.rows("unpaid"), expected.unpaid);
        assert_eq!(directory.rows("stray-payments"), expected.stray);
        expected.check(&report, &directory);
    }
}

/// What the outputs should be, by looking up each order's payment and shipment.
struct Expected {
    fulfilled: Rows,
    unpaid: Rows,
    stray: Rows,
    shipped_unpaid: usize,
}

impl Expected {
    fn of(directory: &Directory) -> Expected {
        let [orders, payments, shipments] =
            ["orders", "payments", "shipments"].map(|name| directory.rows(&format!("in/{name}")));
        let mut fulfilled = Rows::new();
        for (id, order) in &orders {
            let Some(payment) = payments.get(id) else { continue };
            let status = shipments.get(id).map_or(Value::Null, |shipment| shipment["status"].clone());
            let fields = [("order_id", &order["order_id"]), ("amount", &order["amount"])];
            let fields = fields.into_iter().chain([("method", &payment["method"]), ("status", &status)]);
            fulfilled.insert(*id, fields.map(|(name, value)| (name.to_string(), value.clone())).collect());
        }
        let left_over = |rows: &Rows, partners: &Rows| {
            let mut rows = rows.clone();
            rows.retain(|id, _| !partners.contains_key(id));
            rows.values_mut().for_each(|row| drop(row.insert("reason".to_string(), "end_of_input".into())));
            rows
        };
        Expected {
            unpaid: left_over(&orders, &payments),
            stray: left_over(&payments, &orders),
            shipped_unpaid: shipments.keys().filter(|id| !fulfilled.contains_key(id)).count(),
            fulfilled,
        }
    }

    fn check(&self, report: &Report, directory: &Directory) {
        assert!(report.is_balanced(), "{report}");
        let account = |matched: usize, unmatched: usize| {
            let (matched, unmatched) = (matched as u64, unmatched as u64);
            Account { rows: matched + unmatched, matched, unmatched, ..Account::default() }
        };
        let accounts = |step: &str| {
            let step = report.steps.iter().find(|found| format!("{} {}", found.kind, found.name) == step).unwrap();
            step.inputs.iter().map(|input| (input.name.as_str(), input.account)).collect::<Vec<_>>()
        };
        for source in ["orders", "payments", "shipments"] {
            let lines = directory.lines(&format!("in/{source}")).len();
            assert_eq!(accounts(&format!("source {source}")), [(source, account(lines, 0))]);
        }
        let paid = self.fulfilled.len();
        let shipped = self.fulfilled.values().filter(|row| !row["status"].is_null()).count();
        assert_eq!(
            accounts("multi join fulfilment"),
            [
                ("orders", account(paid, self.unpaid.len())),
                ("payments", account(paid, self.stray.len())),
                ("shipments", account(shipped, self.shipped_unpaid)),
            ],
            "{report}"
        );
        assert_eq!(accounts("sink unpaid")[0].1, account(self.unpaid.len(), 0));
        assert_eq!(accounts("sink stray-payments")[0].1, account(self.stray.len(), 0));
        // Each row comes, and may have come with a gap before, which was taken back.
        let changes = accounts("sink fulfilled")[0].1.rows as usize;
        assert_eq!(changes as u64, report.step("fulfilment").unwrap().emitted);
        assert!(changes >= paid && changes <= paid + 2 * shipped && (changes - paid).is_multiple_of(2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paid_in_time_writes_what_a_naive_count_expects() {
    let directory = Directory::new("interval");
    directory.with_input(3_000, 2);
    let flow = Flow::new("paid in time");
    interval::paid_in_time(&flow, &directory.path("in"), &directory.path("."));
    let report = flow.start(Config::default().quiet().with_parallelism(2)).unwrap().wait().await.unwrap();
    assert!(report.is_balanced(), "{report}");

    let [orders, payments] = ["in/orders", "in/payments"].map(|name| directory.rows(name));
    let time = |row: &Map<String, Value>, field| row[field].as_str().unwrap().parse::<EventTime>().unwrap();
    let in_time = |id: &u64| {
        let apart = time(payments.get(id)?, "paid_at").since(time(orders.get(id)?, "placed_at"));
        (-secs(5) <= apart && apart <= secs(30)).then_some(apart.as_millis())
    };
    let paid: BTreeMap<u64, i64> = orders.keys().filter_map(|id| Some((*id, in_time(id)?))).collect();
    let got = directory.rows("paid").into_iter().map(|(id, row)| (id, row["after_ms"].as_i64().unwrap()));
    assert_eq!(got.collect::<BTreeMap<_, _>>(), paid);
    let unpaid = orders.keys().filter(|id| !paid.contains_key(id)).copied().collect::<BTreeSet<_>>();
    assert!(unpaid.len() > orders.len() / 20 && !paid.is_empty(), "some are late, and most are not");
    let got = directory.rows("not-in-time");
    assert!(got.values().all(|row| row["reason"] == "interval_closed"));
    assert_eq!(got.into_keys().collect::<BTreeSet<_>>(), unpaid);
    let [left, right] = [0, 1].map(|input| report.step("orders-payments-interval").unwrap().inputs[input].account);
    assert_eq!((left.matched, left.unmatched), (paid.len() as u64, unpaid.len() as u64));
    assert_eq!((right.matched, right.unmatched), (paid.len() as u64, (payments.len() - paid.len()) as u64));
    assert_eq!((left.late, right.late), (0, 0));
}

/// A directory of a test's own, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("flowjoin-demo-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn with_input(&self, orders: u64, seed: u64) -> [usize; 3] {
        demo_data::write(&demo_data::Shape { orders, seed, until: UNTIL }, Path::new(&self.path("in"))).unwrap()
    }

    fn path(&self, below: &str) -> String {
        self.0.join(below).to_str().unwrap().to_string()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap()
    }

    fn lines(&self, file: &str) -> Vec<Map<String, Value>> {
        self.text(&format!("{file}.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The rows of a file, of which there is one a key.
    fn rows(&self, file: &str) -> Rows {
        let mut rows = Rows::new();
        for row in self.lines(file) {
            let before = rows.insert(row["order_id"].as_u64().unwrap(), row);
            assert!(before.is_none(), "{file}: two rows of {before:?}");
        }
        rows
    }

    /// What stands after all changes of an upsert file.
    fn table(&self, file: &str) -> Rows {
        let mut rows = Rows::new();
        for mut row in self.lines(file) {
            let id = row["order_id"].as_u64().unwrap();
            match row.shift_remove("op").unwrap().as_str().unwrap() {
                "+U" => drop(rows.insert(id, row)),
                "-D" => drop(rows.remove(&id)),
                other => panic!("an upsert file has no {other}"),
            }
        }
        rows
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 2025-06-01T12:00:00Z.
const UNTIL: EventTime = EventTime::from_millis(1_748_779_200_000);

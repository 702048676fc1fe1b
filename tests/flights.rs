//! The questions of `examples/flights.rs`, against the digits that a database computed over the same tables.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use flowjoin::{Config, ProcTime};
use flowjoin_testkit::{TestFlow, TestSink, TestSource};
use serde::de::DeserializeOwned;
use serde_json::Value;

#[path = "../examples/flights.rs"]
#[allow(dead_code)]
mod flights;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_are_those_of_a_database_and_no_row_is_late() {
    for parallelism in [1, 3] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/nycflights");
        let scratch = std::env::temp_dir().join(format!("flowjoin-flights-{}-{parallelism}", std::process::id()));
        let config = Config::default().quiet().with_parallelism(parallelism);
        let answers = flights::answers(&data, &scratch, &config).await.unwrap();
        std::fs::remove_dir_all(&scratch).unwrap();

        let got: Vec<Vec<i64>> = answers.iter().map(|answer| answer.got.clone()).collect();
        let weather = vec![80_861, 4_852_080];
        let fleet = vec![22_525, 4_479, 155, 2_609, 713, 27_717, 4_479, 713, 3_075_040];
        let newest = vec![27_004, 3_120, 6_296_400];
        assert_eq!(
            got,
            [
                weather.clone(),
                weather,
                newest.clone(),
                newest,
                vec![27_004, 4_479, 155, 3_075_040],
                fleet,
                vec![51_142],
                vec![852, 10_955, 51_142]
            ]
        );
        for answer in &answers {
            let report = &answer.report;
            assert!(report.is_balanced(), "{report}");
            for input in report.steps.iter().flat_map(|step| &step.inputs) {
                assert_eq!((input.account.late, input.account.bad, input.account.open), (0, 0, 0), "{report}");
            }
        }
        // A null tail number matches nothing; the flight is in the result all the same.
        let planes = answers[4].report.steps.iter().find(|step| step.kind == "join").unwrap();
        assert_eq!(planes.inputs[0].account.null_key, 155);
        assert_eq!(planes.inputs[0].account.matched, 22_525);
        let matched = |step: &str, input: usize| answers[5].report.step(step).unwrap().inputs[input].account.matched;
        for step in ["known", "unknown", "all"] {
            assert_eq!([matched(step, 0), matched(step, 1)], [22_525, 2_609], "{step}");
        }
        for step in ["flew", "stayed"] {
            assert_eq!([matched(step, 0), matched(step, 1)], [2_609, 22_525], "{step}");
        }
    }
}

#[test]
fn weather_that_is_later_than_stated_is_counted_and_serves_what_comes_after_it() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/nycflights");
    let flights: Vec<flights::Flight> = rows(&data.join("flights.csv"));
    // One airport after the other, each a month back; no disorder at all is stated here.
    let weather: Vec<flights::Weather<0>> = rows(&data.join("weather.csv"));
    let mut t = TestFlow::new(|flow| {
        let flights = flow.stream::<flights::Flight>(TestSource::new("flights"));
        let weather = flow.stream::<flights::Weather<0>>(TestSource::new("weather"));
        flights::with_newest(flights, weather).sink_to(TestSink::new("found"));
    });
    t.set_processing(ProcTime::from_millis(1_400_000_000_000));
    t.send_all("flights", flights);
    for row in weather {
        t.send("weather", row);
    }
    t.end_all();

    let (late, found) = by_definition(&times(&data.join("flights.csv")), &times(&data.join("weather.csv")));
    let [of_flights, of_weather] = t.figures("newest").accounts[..] else { panic!("a join of two inputs") };
    assert_eq!((of_weather.rows, of_weather.late), (2_226, late));
    assert_eq!((of_flights.matched, of_flights.late, t.take("found").len() as u64), (found, 0, found));
    assert_eq!(of_flights.matched + of_flights.never_seen + of_flights.no_version, 27_004);
    assert!(late > 1_000 && found > 10_000 && found < 27_004, "the two airports behind the first have lost theirs");
}

// How many rows of weather are late if they come one by one after all flights, and how many flights find some.
fn by_definition(flights: &[(String, i64)], weather: &[(String, i64)]) -> (u64, u64) {
    let flights_reached = flights.iter().map(|flight| flight.1).max().unwrap() - 18 * 3_600_000;
    let (mut late, mut found, mut newest, mut before) = (0, 0, i64::MIN, i64::MIN);
    let mut waiting: Vec<&(String, i64)> = flights.iter().collect();
    for (come, (_, time)) in weather.iter().enumerate() {
        late += u64::from(*time < newest.min(flights_reached));
        newest = newest.max(*time);
        let reached = if come + 1 == weather.len() { i64::MAX } else { newest.min(flights_reached) };
        if std::mem::replace(&mut before, reached) == reached {
            continue;
        }
        waiting.retain(|(origin, hour)| {
            let waits = *hour >= reached;
            let is_there = |row: &(String, i64)| row.0 == *origin && row.1 <= *hour;
            found += u64::from(!waits && weather[..=come].iter().any(is_there));
            waits
        });
    }
    (late, found)
}

fn times(path: &Path) -> Vec<(String, i64)> {
    let of = |row: &Value| {
        let time: flowjoin::EventTime = row["time_hour"].as_str().unwrap().parse().unwrap();
        (row["origin"].as_str().unwrap().to_string(), time.as_millis())
    };
    values(path).iter().map(of).collect()
}

// The rows of a table, as its columns say.
fn values(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| -> Value {
        let cells = names.iter().zip(line.split(',')).map(|(name, cell)| {
            let value = match cell {
                "NA" => Value::Null,
                cell => cell.parse().map(|number: i64| number.into()).unwrap_or_else(|_| cell.into()),
            };
            ((*name).to_string(), value)
        });
        Value::Object(cells.collect())
    };
    lines.map(row).collect()
}

fn rows<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    values(path).into_iter().map(|row| serde_json::from_value(row).unwrap()).collect()
}

//! Questions about the flights out of New York in January 2013, with the answers that a database gives.
//!
//! `cargo run --release --example flights` reads `examples/data/nycflights`, prints each question with the answer got
//! and the one expected, and ends with an error if they differ.
//!
//! The order of the files is not the order of time, so each row type says how far its file may run back; the accounting
//! shows that no row was late, and for one question how many are when that is understated.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use flowjoin::connectors::MemorySink;
use flowjoin::prelude::*;
use flowjoin::{Change, Report, TimeError, Watermarks};

/// A scheduled departure. Cancelled flights come last in each day of the file, up to 18 hours behind.
#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = time_hour, out_of_order = "18h")]
pub(crate) struct Flight {
    carrier: String,
    flight: u32,
    tailnum: Option<String>,
    origin: String,
    dest: String,
    time_hour: EventTime,
}

/// The weather of an hour at an airport, from a file that runs back by so many days.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Weather<const DAYS_BACK: i64> {
    origin: String,
    wind_dir: Option<i64>,
    time_hour: EventTime,
}

impl<const DAYS_BACK: i64> Keyed for Weather<DAYS_BACK> {
    type Key = String;

    fn key(&self) -> String {
        self.origin.clone()
    }

    fn key_name() -> &'static str {
        "origin"
    }
}

// What `#[derive(Event)]` writes, but for the bound, which is that of the file.
impl<const DAYS_BACK: i64> Event for Weather<DAYS_BACK> {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(self.time_hour)
    }

    fn watermarks() -> Watermarks {
        Watermarks::of_field("time_hour").out_of_order(days(DAYS_BACK))
    }
}

/// A plane: a table without a time, so its rows happen when they are read.
#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Plane {
    #[key]
    tailnum: String,
    seats: u32,
}

/// A flight and its plane, if that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Flown {
    carrier: String,
    flight: u32,
    dest: String,
    time_hour: EventTime,
    tailnum: Option<String>,
    seats: Option<u32>,
}

/// A question, and what came out.
pub(crate) struct Answer {
    pub(crate) question: &'static str,
    pub(crate) got: Vec<i64>,
    pub(crate) expected: Vec<i64>,
    pub(crate) report: Report,
}

/// Asks all questions of the tables in a directory; `scratch` is room for the weather, split by airport.
pub(crate) async fn answers(data: &Path, scratch: &Path, config: &Config) -> flowjoin::Result<Vec<Answer>> {
    let by_airport = Csv::files(split_by_airport(&data.join("weather.csv"), scratch)).named("weather").nulls(["NA"]);
    let one_file = || Csv::file(data.join("weather.csv")).nulls(["NA"]);
    Ok(vec![
        weather::<0>(
            "flights with the weather of the two hours before, weather a file an airport",
            data,
            by_airport.clone(),
            config,
        )
        .await?,
        weather::<31>("the same, weather as one file in its own order", data, one_file(), config).await?,
        newest_weather::<0>("flights with the newest weather, a file an airport", data, by_airport, config).await?,
        newest_weather::<31>("the same, weather as one file in its own order", data, one_file(), config).await?,
        planes(data, config).await?,
        fleet(data, config).await?,
        triples(data, config).await?,
        windows(data, config).await?,
    ])
}

fn flights(flow: &Flow, data: &Path) -> Stream<Flight> {
    flow.stream(Csv::file(data.join("flights.csv")).nulls(["NA"]))
}

/// Weather within the two hours up to the flight's hour at its origin, both ends included.
async fn weather<const DAYS_BACK: i64>(
    question: &'static str,
    data: &Path,
    files: Csv,
    config: &Config,
) -> flowjoin::Result<Answer> {
    let flow = Flow::new("flights and weather");
    let weather = flow.stream::<Weather<DAYS_BACK>>(files);
    let minutes_apart = MemorySink::new("minutes apart");
    flights(&flow, data)
        .key_by(|flight| flight.origin.clone())
        .interval_join(weather.key_by(|weather| weather.origin.clone()))
        .between(-hours(2), hours(0))
        .select(|flight, weather| flight.time_hour.since(weather.time_hour).as_millis() / 60_000)
        .sink_to(minutes_apart.clone());
    let report = flow.start(config.clone())?.wait().await?;
    let minutes: Vec<i64> = minutes_apart.changes().into_iter().map(|change| change.row).collect();
    let got = vec![minutes.len() as i64, minutes.iter().sum()];
    Ok(Answer { question, got, expected: vec![80_861, 4_852_080], report })
}

/// The newest weather at or before the flight's hour at its origin: flights with one, the minutes of its age, and the
/// directions of its wind.
async fn newest_weather<const DAYS_BACK: i64>(
    question: &'static str,
    data: &Path,
    files: Csv,
    config: &Config,
) -> flowjoin::Result<Answer> {
    let flow = Flow::new("flights and the newest weather");
    let found = MemorySink::new("found");
    with_newest(flights(&flow, data), flow.stream::<Weather<DAYS_BACK>>(files)).sink_to(found.clone());
    let report = flow.start(config.clone())?.wait().await?;
    let found: Vec<(i64, i64)> = found.changes().into_iter().map(|change| change.row).collect();
    let got = vec![found.len() as i64, found.iter().map(|row| row.0).sum(), found.iter().map(|row| row.1).sum()];
    Ok(Answer { question, got, expected: vec![27_004, 3_120, 6_296_400], report })
}

pub(crate) fn with_newest<const DAYS_BACK: i64>(
    flights: Stream<Flight>,
    weather: Stream<Weather<DAYS_BACK>>,
) -> Stream<(i64, i64)> {
    let minutes = |flight: &Flight, weather: &Weather<DAYS_BACK>| flight.time_hour.since(weather.time_hour);
    flights.key_by(|flight| flight.origin.clone()).temporal_join(weather.latest_by_key()).named("newest").select(
        move |flight, weather| (minutes(flight, weather).as_millis() / 60_000, weather.wind_dir.unwrap_or_default()),
    )
}

/// Each flight with its plane; a flight whose plane is not in the table, or that has no tail number, stays without.
async fn planes(data: &Path, config: &Config) -> flowjoin::Result<Answer> {
    let flow = Flow::new("flights and planes");
    let planes = flow.stream::<Plane>(Csv::file(data.join("planes.csv")).nulls(["NA"]));
    let flown = MemorySink::new("flown");
    flights(&flow, data)
        .key_by(|flight| flight.tailnum.clone())
        .join(planes.key_by(|plane| Some(plane.tailnum.clone())).optional())
        .keep_forever()
        .select(|flight, plane| Flown {
            carrier: flight.carrier.clone(),
            flight: flight.flight,
            dest: flight.dest.clone(),
            time_hour: flight.time_hour,
            tailnum: flight.tailnum.clone(),
            seats: plane.map(|plane| plane.seats),
        })
        .sink_to(flown.clone());
    let report = flow.start(config.clone())?.wait().await?;
    let table = standing(flown.changes());
    let count = |of: fn(&Flown) -> bool| table.iter().filter(|(row, _)| of(row)).map(|(_, count)| count).sum();
    let seats: i64 = table.iter().map(|(row, count)| i64::from(row.seats.unwrap_or_default()) * count).sum();
    Ok(Answer {
        question: "flights with or without their plane: rows, without a plane, of these without a tail number, seats",
        got: vec![
            count(|_| true),
            count(|row| row.seats.is_none()),
            count(|row| row.seats.is_none() && row.tailnum.is_none()),
            seats,
        ],
        expected: vec![27_004, 4_479, 155, 3_075_040],
        report,
    })
}

/// The flights with and without a known plane, the planes that flew and that did not, and all of both side by side:
/// semi, anti and full joins.
async fn fleet(data: &Path, config: &Config) -> flowjoin::Result<Answer> {
    let flow = Flow::new("flights and the fleet");
    let flights = flights(&flow, data).key_by(|flight| flight.tailnum.clone());
    let planes = flow.stream::<Plane>(Csv::file(data.join("planes.csv")).nulls(["NA"])).latest_by_key();
    let planes = planes.key_by(|plane| Some(plane.tailnum.clone()));
    let [known, unknown, flew, stayed] = ["known", "unknown", "flew", "stayed"].map(MemorySink::new);
    let all = MemorySink::new("all");

    let with = flights.clone().where_exists(planes.clone()).named("known").keep_forever();
    with.into_rows().map(|flight| flight.tailnum).sink_to(known.clone());
    let without = flights.clone().where_not_exists(planes.clone()).named("unknown").keep_forever();
    without.into_rows().map(|flight| flight.tailnum).sink_to(unknown.clone());
    let with = planes.clone().where_exists(flights.clone()).named("flew").keep_forever();
    with.into_rows().map(|plane| Some(plane.tailnum)).sink_to(flew.clone());
    let without = planes.clone().where_not_exists(flights.clone()).named("stayed").keep_forever();
    without.into_rows().map(|plane| Some(plane.tailnum)).sink_to(stayed.clone());
    let full = flights.optional().join(planes.optional()).named("all").keep_forever();
    full.select(|flight, plane| (flight.is_some(), plane.map(|plane| (plane.tailnum.clone(), plane.seats))))
        .sink_to(all.clone());

    let report = flow.start(config.clone())?.wait().await?;
    let [known, unknown, flew, stayed] = [known, unknown, flew, stayed].map(|sink| standing(sink.changes()));
    let all = standing(all.changes());
    let count = |of: fn(bool, bool) -> bool| {
        all.iter().filter(|((flight, plane), _)| of(*flight, plane.is_some())).map(|(_, count)| count).sum()
    };
    let seats = all.iter().filter(|((flight, _), _)| *flight);
    let seats = seats.filter_map(|((_, plane), count)| plane.as_ref().map(|plane| i64::from(plane.1) * count)).sum();
    let rows = |table: &HashMap<Option<String>, i64>| table.values().sum();
    let nameless = unknown.get(&None).copied().unwrap_or_default();
    Ok(Answer {
        question: "flights with a plane; without, of these without a tail number; planes that flew; that did not; \
                   all side by side: rows, without a plane, without a flight, seats of both",
        got: [
            vec![rows(&known), rows(&unknown), nameless, rows(&flew), rows(&stayed)],
            vec![count(|_, _| true), count(|_, plane| !plane), count(|flight, _| !flight), seats],
        ]
        .concat(),
        expected: vec![22_525, 4_479, 155, 2_609, 713, 27_717, 4_479, 713, 3_075_040],
        report,
    })
}

/// The final table of a changelog: how often each row stands once all changes are applied, in the order they came.
fn standing<T: Eq + Hash>(changes: Vec<Change<T>>) -> HashMap<T, i64> {
    let mut table: HashMap<T, i64> = HashMap::new();
    for Change { kind, row, .. } in changes {
        let count = table.entry(row).or_default();
        *count += if kind.adds() { 1 } else { -1 };
        assert!(*count >= 0, "a row was taken back that does not stand");
    }
    table.retain(|_, count| *count > 0);
    table
}

/// Flights from the three airports on the same day with the same carrier and destination.
async fn triples(data: &Path, config: &Config) -> flowjoin::Result<Answer> {
    let flow = Flow::new("triples");
    let flights = flights(&flow, data);
    let from = |airport: &'static str| {
        let departures = flights.clone().filter(move |flight| flight.origin == airport);
        departures.key_by(|flight| (flight.carrier.clone(), flight.dest.clone(), utc_day(flight.time_hour)))
    };
    let triples = MemorySink::new("triples");
    // Rows of one key are less than a day apart, so none that may still find partners has expired.
    multi_join![from("EWR"), from("JFK"), from("LGA")]
        .named("triples")
        .ttl(days(1).on(Clock::Event))
        .select(|ewr, jfk, lga| (ewr.flight, jfk.flight, lga.flight))
        .sink_to(triples.clone());
    let report = flow.start(config.clone())?.wait().await?;
    let got = vec![triples.changes().len() as i64];
    Ok(Answer {
        question: "triples EWR × JFK × LGA with the same carrier and destination on the same UTC day",
        got,
        expected: vec![51_142],
        report,
    })
}

/// The same by windows of a day, and pairs by windows of an hour and of a day.
async fn windows(data: &Path, config: &Config) -> flowjoin::Result<Answer> {
    let flow = Flow::new("windows");
    let flights = flights(&flow, data);
    let from = |airport: &'static str| {
        let departures = flights.clone().filter(move |flight| flight.origin == airport);
        departures.key_by(|flight| (flight.carrier.clone(), flight.dest.clone()))
    };
    let [by_hour, by_day] = ["pairs by hour", "pairs by day"].map(MemorySink::new);
    let triples = MemorySink::new("triples by day");
    for (size, pairs) in [(hours(1), &by_hour), (days(1), &by_day)] {
        let join = from("EWR").window_join(from("JFK")).tumbling(size).named(format!("pairs in {size}"));
        join.select(|ewr, jfk| (ewr.flight, jfk.flight)).sink_to(pairs.clone());
    }
    let join = multi_join![from("EWR"), from("JFK"), from("LGA")].tumbling(days(1)).named("triples in a day");
    join.select(|ewr, jfk, lga| (ewr.flight, jfk.flight, lga.flight)).sink_to(triples.clone());
    let report = flow.start(config.clone())?.wait().await?;
    let pairs = [by_hour, by_day].map(|pairs| pairs.changes().len() as i64);
    let got = vec![pairs[0], pairs[1], triples.changes().len() as i64];
    Ok(Answer {
        question: "pairs EWR × JFK with the same carrier and destination in the same hour, in the same UTC day, and \
                   triples EWR × JFK × LGA in the same UTC day",
        got,
        expected: vec![852, 10_955, 51_142],
        report,
    })
}

fn utc_day(time: EventTime) -> i64 {
    time.as_millis().div_euclid(days(1).as_millis())
}

/// Writes the rows of each airport to a file of their own.
fn split_by_airport(weather: &Path, scratch: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(weather).unwrap_or_else(|error| panic!("cannot read {}: {error}", weather.display()));
    let (header, rows) = text.split_once('\n').expect("a table has a header");
    let mut airports: BTreeMap<&str, String> = BTreeMap::new();
    for row in rows.lines() {
        let airport = row.split(',').next().unwrap_or_default();
        let file = airports.entry(airport).or_insert_with(|| format!("{header}\n"));
        file.push_str(row);
        file.push('\n');
    }
    fs::create_dir_all(scratch).unwrap_or_else(|error| panic!("cannot create {}: {error}", scratch.display()));
    let write = |(airport, rows)| {
        let path = scratch.join(format!("weather-{airport}.csv"));
        fs::write(&path, rows).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    };
    airports.into_iter().map(write).collect()
}

#[tokio::main]
async fn main() -> flowjoin::Result<()> {
    let mut directories = std::env::args().skip(1);
    let data = directories.next().unwrap_or_else(|| "examples/data/nycflights".to_string());
    let scratch = directories.next().unwrap_or_else(|| "examples/out/flights".to_string());
    let answers = answers(Path::new(&data), Path::new(&scratch), &Config::from_env()?).await?;
    for Answer { question, got, expected, report } in &answers {
        println!("{report}");
        println!("{question}\n  got      {got:?}\n  expected {expected:?}\n");
    }
    let wrong = answers.iter().filter(|answer| answer.got != answer.expected).count();
    println!("{} of {} answers are right", answers.len() - wrong, answers.len());
    if wrong > 0 {
        std::process::exit(1);
    }
    Ok(())
}

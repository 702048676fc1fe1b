//! What the benchmarks share around a run: the words of the command line, the JSON line of a run, and peak memory.
//!
//! A run prints one line of JSON to standard output and nothing else, so that figures can be collected with any tool
//! that reads lines. Whoever prints a line has also been told whether the answer was right.

#![allow(dead_code, reason = "each benchmark that includes this file uses a part of it")]

use std::fs;

use crate::workload::{Answer, Size, Workload};

/// What both programs take memory from: state is many small places all over it, and with huge pages the processor finds
/// them sooner.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The workloads to run, one after the other; never empty.
    pub workloads: Vec<Workload>,
    /// How many rows they have.
    pub size: Size,
    /// How many threads or parallel tasks to use; at least one.
    pub parallelism: usize,
    /// How often to run each workload; at least one.
    pub runs: usize,
}

impl Request {
    /// Reads the words after the program's name. `offered` are the workloads that the benchmark has.
    ///
    /// Without a workload the request is for all of them and the size is small unless it is given: what a bare
    /// `cargo bench` or `cargo test --benches` should take the time for. The word `--bench`, which cargo adds, is
    /// skipped. The error is one line that says which word was not understood and what it could have been.
    pub fn parse(words: impl IntoIterator<Item = String>, offered: &[Workload]) -> Result<Self, String> {
        let mut workloads = Vec::new();
        let mut size = None;
        let (mut parallelism, mut runs) = (2, 1);
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--bench" => {}
                "--size" => size = Some(value()?.parse()?),
                "--parallelism" | "--threads" => parallelism = positive(&word, &value()?)?,
                "--runs" => runs = positive(&word, &value()?)?,
                option if option.starts_with('-') => return Err(unknown(option)),
                name => workloads.push(offer(name, offered)?),
            }
        }
        let fallback = if workloads.is_empty() { Size::Small } else { Size::Default };
        if workloads.is_empty() {
            workloads.extend_from_slice(offered);
        }
        Ok(Request { workloads, size: size.unwrap_or(fallback), parallelism, runs })
    }
}

/// One finished run, ready to be printed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The benchmark's name.
    pub bench: &'static str,
    /// What was run.
    pub workload: Workload,
    /// On how many rows.
    pub size: Size,
    /// On how many threads or parallel tasks.
    pub parallelism: usize,
    /// From the first row made by any source to the last result row at the sink.
    pub seconds: f64,
    /// What came out.
    pub answer: Answer,
    /// The most memory that was resident at once, in MB (10^6 bytes).
    pub peak_rss_mb: f64,
    /// What was held at the end, where the bench knows.
    pub held: Option<Held>,
}

/// What the operators held at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Rows in state.
    pub rows: u64,
    /// Bytes of state.
    pub bytes: u64,
    /// The longest call of a task: a pause for all that waits behind it.
    pub longest_call_ms: f64,
}

impl Report {
    /// Whether the run came to the right answer.
    pub fn is_right(&self) -> bool {
        self.answer == self.workload.answer(self.size)
    }

    /// Input rows per second.
    pub fn rows_per_second(&self) -> f64 {
        self.workload.rows_in(self.size) as f64 / self.seconds
    }

    /// The report as one line of JSON; `run` says which run it is, as a number or as `median of n`.
    pub fn to_json(&self, run: &str) -> String {
        let Report { bench, workload, size, parallelism, seconds, answer, peak_rss_mb, held } = self;
        let unmatched = answer.unmatched.map_or_else(String::new, |tally| {
            format!(r#","unmatched_count":{},"unmatched_checksum":"{:#018x}""#, tally.count, tally.checksum)
        });
        let held = held.map_or_else(String::new, |Held { rows, bytes, longest_call_ms }| {
            format!(r#","state_rows":{rows},"state_bytes":{bytes},"longest_call_ms":{longest_call_ms:.2}"#)
        });
        format!(
            concat!(
                r#"{{"bench":"{}","workload":"{}","size":"{}","parallelism":{},"run":"{}","rows_in":{},"#,
                r#""seconds":{:.4},"rows_per_s":{:.0},"count":{},"checksum":"{:#018x}"{},"ok":{},"peak_rss_mb":{:.1}{}}}"#,
            ),
            bench,
            workload,
            size,
            parallelism,
            run,
            workload.rows_in(*size),
            seconds,
            self.rows_per_second(),
            answer.joined.count,
            answer.joined.checksum,
            unmatched,
            self.is_right(),
            peak_rss_mb,
            held,
        )
    }
}

/// Runs a request, printing a line a run and, of several runs of one workload, a last line with the median time.
///
/// Returns whether every answer was right.
pub fn run_all(request: &Request, mut run: impl FnMut(Workload, &Request) -> Report) -> bool {
    let mut right = true;
    for &workload in &request.workloads {
        let mut reports = Vec::with_capacity(request.runs);
        for number in 1..=request.runs {
            reset_peak_rss();
            let report = run(workload, request);
            println!("{}", report.to_json(&number.to_string()));
            right &= report.is_right();
            reports.push(report);
        }
        if let Some(summary) = summary(&reports) {
            println!("{}", summary.to_json(&format!("median of {}", request.runs)));
        }
    }
    right
}

/// The middle of the values, or the mean of the two in the middle. `None` if there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The most memory the process has had resident at once since [`reset_peak_rss`], in MB; zero where `/proc` is missing.
pub fn peak_rss_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.map_or(0.0, |kib: f64| kib * 1024.0 / 1e6)
}

/// Lets the peak start again from what is resident now, so that a run does not report an earlier run's peak.
///
/// Where the kernel does not allow that, the peak stays that of the whole process.
pub fn reset_peak_rss() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The last report with the median time and the highest peak; a wrong answer is never hidden behind a right one.
fn summary(reports: &[Report]) -> Option<Report> {
    if reports.len() < 2 {
        return None;
    }
    let seconds: Vec<f64> = reports.iter().map(|report| report.seconds).collect();
    let shown = reports.iter().find(|report| !report.is_right()).or(reports.last())?;
    let peak_rss_mb = reports.iter().map(|report| report.peak_rss_mb).fold(0.0, f64::max);
    Some(Report { seconds: median(&seconds)?, peak_rss_mb, ..shown.clone() })
}

fn positive(option: &str, value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{option}` needs a number of at least 1, not `{value}`")),
    }
}

fn offer(name: &str, offered: &[Workload]) -> Result<Workload, String> {
    let found = offered.iter().copied().find(|workload| workload.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|workload| workload.name()).collect();
        format!("this benchmark has no workload `{name}`; it has {}", names.join(", "))
    })
}

fn unknown(option: &str) -> String {
    format!("no option `{option}`; there are --size small|default|large, --parallelism N, --threads N, --runs N")
}

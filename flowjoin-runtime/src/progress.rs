//! A progress bar for each source that has an end, on standard error when that is a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flowjoin_core::task::Reading;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use crate::shell::Shared;

struct Bar {
    bar: ProgressBar,
    readings: Vec<usize>,
}

/// Shows the bars until the task is ended; nothing where there is no terminal.
pub fn show(shared: &Arc<Shared>, readings: &[Reading]) -> Option<JoinHandle<()>> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let all = MultiProgress::new();
    let style = ProgressStyle::with_template("{prefix:>24} {bar:32} {percent:>3}% {msg}").ok()?;
    let mut sources: Vec<_> = readings.iter().map(|reading| reading.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let bars = sources.into_iter().map(|source| {
        let bar = all.add(ProgressBar::new(0)).with_style(style.clone());
        bar.set_prefix(shared.plan.node(source).name.clone());
        let numbered = readings.iter().enumerate().filter(|(_, reading)| reading.source == source);
        Bar { bar, readings: numbered.map(|(number, _)| number).collect() }
    });
    let bars: Vec<Bar> = bars.collect();
    let shared = shared.clone();
    Some(tokio::spawn(async move {
        let _finish = Finish(bars.iter().map(|bar| bar.bar.clone()).collect());
        loop {
            for Bar { bar, readings } in &bars {
                let sum = |of: fn(&(std::sync::atomic::AtomicU64, std::sync::atomic::AtomicU64)) -> u64| {
                    readings.iter().map(|&number| of(&shared.done[number])).sum::<u64>()
                };
                bar.set_length(sum(|(_, total)| total.load(Ordering::Relaxed)));
                bar.set_position(sum(|(done, _)| done.load(Ordering::Relaxed)));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }))
}

// The bars are left full when the run ends, however the task is ended.
struct Finish(Vec<ProgressBar>);

impl Drop for Finish {
    fn drop(&mut self) {
        for bar in &self.0 {
            bar.finish();
        }
    }
}

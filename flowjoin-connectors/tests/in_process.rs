//! Sources and sinks within the program: memory, streams, channels, generated rows.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{batch, inserts, read, read_partition, write};
use flowjoin_connectors::{FromStream, Generate, Memory, MemorySink, ToChannel};
use flowjoin_core::Keyed;
use flowjoin_core::io::{Page, ReadStatus, Sink, StreamSource, TableChange, TableSource};
use futures::{FutureExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

#[test]
fn memory_is_read_in_pages_and_again() {
    let source = Memory::rows("numbers", (0..10).collect::<Vec<u64>>());
    for _ in 0..2 {
        assert!(read(&source).rows.into_iter().eq(0..10));
    }
    assert_eq!(source.endpoint().name, "numbers");
    let parts = Memory::partitions("parts", vec![vec![1u8], vec![], vec![2, 3]]);
    assert_eq!(parts.partitions().unwrap(), 3);
    assert_eq!(read_partition(&parts, 1, 5).rows, [0u8; 0]);
    assert_eq!(read_partition(&parts, 2, 1).rows, [2, 3]);
    assert!(parts.open(3).is_err());
    assert!(StreamSource::<u8>::partitions(&Memory::<u8>::partitions("none", vec![])).is_err());
}

#[test]
fn a_memory_sink_keeps_changes_and_knows_what_stands() {
    let sink = MemorySink::new("out");
    write(&sink.clone(), [inserts(["a", "b", "a"].map(String::from))]).unwrap();
    write(
        &sink.clone(),
        [batch([("-D", "a"), ("-U", "c"), ("+U", "c"), ("+I", "d")].map(|(k, row)| (k, row.to_string())))],
    )
    .unwrap();
    let kinds: Vec<_> = sink.changes().iter().map(|change| format!("{}{}", change.kind, change.row)).collect();
    assert_eq!(kinds.join(" "), "+Ia +Ib +Ia -Da -Uc +Uc +Id");
    assert_eq!(sink.rows(), ["a", "b", "d"]);
}

#[tokio::test]
async fn a_stream_hands_over_what_is_ready_and_waits_for_the_rest() {
    let (sender, receiver) = mpsc::channel(16);
    let source = FromStream::new("numbers", ReceiverStream::new(receiver));
    let mut reader = source.open(0).unwrap();
    let mut page = Page::default();
    assert!(reader.read(&mut page, 10).now_or_never().is_none(), "nothing is ready");
    for number in 0..5u64 {
        sender.send(number).await.unwrap();
    }
    assert_eq!(reader.read(&mut page, 3).await.unwrap(), ReadStatus::More);
    assert_eq!(page.rows, [0, 1, 2]);
    let mut page = Page::default();
    assert_eq!(reader.read(&mut page, 10).now_or_never().unwrap().unwrap(), ReadStatus::More);
    assert_eq!(page.rows, [3, 4]);
    let mut page = Page::default();
    for _ in 0..3 {
        // A wait given up loses nothing.
        assert!(reader.read(&mut page, 10).now_or_never().is_none());
    }
    sender.send(5).await.unwrap();
    drop(sender);
    assert_eq!(reader.read(&mut page, 10).await.unwrap(), ReadStatus::End);
    assert_eq!(page.rows, [5]);
    assert_eq!(reader.read(&mut Page::default(), 10).await.unwrap(), ReadStatus::End, "it stays at its end");
}

#[test]
fn a_stream_is_read_once_and_a_factory_for_ever() {
    let once = FromStream::partitions("once", [stream::iter([1u8]), stream::iter([2])]);
    assert_eq!(once.partitions().unwrap(), 2);
    assert_eq!(read_partition(&once, 1, 9).rows, [2]);
    let again = read_partition(&once, 1, 9).error();
    assert!(again.contains("`once` was read by an earlier run"), "{again}");
    assert_eq!(read_partition(&once, 0, 9).rows, [1]);
    let factory = FromStream::factory("many", 2, |partition| stream::iter([partition as u8]));
    for _ in 0..2 {
        assert_eq!(read_partition(&factory, 1, 9).rows, [1]);
    }
    assert!(factory.open(2).is_err());
}

#[tokio::test]
async fn a_full_channel_holds_back_and_a_closed_one_stops() {
    let (sender, mut receiver) = mpsc::channel(1);
    let sink = ToChannel::rows("out", sender);
    let mut writer = sink.open(0, 1).unwrap();
    let mut writing = Box::pin(writer.write(inserts([1u8, 2])));
    assert!(writing.as_mut().now_or_never().is_none(), "the second does not fit");
    assert_eq!(receiver.recv().await, Some(1));
    writing.await.unwrap();
    assert_eq!(receiver.recv().await, Some(2));
    drop(receiver);
    let error = writer.write(inserts([3])).await.unwrap_err().to_string();
    assert!(error.contains("nobody receives from channel `out`"), "{error}");
}

#[tokio::test]
async fn a_channel_ends_when_the_run_ends_and_takes_one_run() {
    let (sender, mut receiver) = mpsc::channel(8);
    let sink = ToChannel::changes("out", sender);
    let writers = [sink.open(0, 2).unwrap(), sink.open(1, 2).unwrap()];
    for mut writer in writers {
        writer.write(batch([("+I", 1u8), ("-D", 1)])).await.unwrap();
        writer.close().await.unwrap();
    }
    let mut kinds = String::new();
    while let Some(change) = receiver.recv().await {
        kinds.push_str(change.kind.symbol());
    }
    assert_eq!(kinds, "+I-D+I-D");
    assert!(sink.open(0, 2).is_err());
}

#[test]
fn generated_numbers_are_dealt_out_in_order() {
    let source = Generate::new("squares", |i| i * i).count(10).partitions(3);
    assert_eq!(StreamSource::partitions(&source).unwrap(), 3);
    assert_eq!(read_partition(&source, 0, 2).rows, [0, 9, 36, 81]);
    assert_eq!(read_partition(&source, 2, 9).rows, [4, 25, 64]);
    let few = Generate::new("few", |i| i).count(1).partitions(3);
    assert_eq!(read_partition(&few, 2, 9).rows, [0u64; 0]);
    assert!(StreamSource::partitions(&Generate::new("none", |i| i).partitions(0)).is_err());
    assert!(Generate::new("never", |i| i).rate(0).open(0).is_err());
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Level(u64, char);

impl Keyed for Level {
    type Key = u64;

    fn key(&self) -> u64 {
        self.0
    }
}

// Two changes of even numbers, one of 3, none of the other odd ones.
fn levels(number: u64) -> Vec<TableChange<Level>> {
    match number {
        even if even.is_multiple_of(2) => ['a', 'b'].map(|level| TableChange::Put(Level(even, level))).into(),
        3 => vec![TableChange::delete(2)],
        _ => Vec::new(),
    }
}

async fn pages_of(source: &Generate<TableChange<Level>>, partition: usize, max_rows: usize) -> Vec<String> {
    let mut reader = TableSource::open(source, partition).unwrap();
    let mut pages = Vec::new();
    loop {
        let mut page = Page::default();
        let status = reader.read(&mut page, max_rows).await.unwrap();
        assert!(page.rows.len() <= max_rows && (status == ReadStatus::End || !page.rows.is_empty()));
        let change = |change: &TableChange<Level>| match change {
            TableChange::Put(Level(key, level)) => format!("{key}{level}"),
            other => format!("{other:?}"),
        };
        pages.push(page.rows.iter().map(change).collect::<Vec<_>>().join(" "));
        if status == ReadStatus::End {
            return pages;
        }
    }
}

#[tokio::test]
async fn a_generated_table_gives_the_changes_of_each_number_in_pages() {
    let table = Generate::table("levels", levels).count(6);
    let delete = "Delete(2)";
    assert_eq!(pages_of(&table, 0, 100).await, [format!("0a 0b 2a 2b {delete} 4a 4b")]);
    assert_eq!(pages_of(&table, 0, 3).await, ["0a 0b 2a", &format!("2b {delete} 4a"), "4b"]);
    assert_eq!(pages_of(&table, 0, 1).await, ["0a", "0b", "2a", "2b", delete, "4a", "4b", ""]);
    let table = table.partitions(2);
    assert_eq!(pages_of(&table, 0, 100).await, ["0a 0b 2a 2b 4a 4b"]);
    assert_eq!(pages_of(&table, 1, 1).await, [delete, ""]);
    assert!(TableSource::open(&table, 2).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_rate_of_a_generated_table_is_that_of_its_numbers() {
    let begin = Instant::now();
    let pages = pages_of(&Generate::table("levels", levels).count(6).rate(1), 0, 1).await;
    assert_eq!(pages[..7].join(" "), "0a 0b 2a 2b Delete(2) 4a 4b");
    assert_eq!(begin.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_kept_and_made_up_for_by_one_second() {
    let source = Generate::new("ticks", |i| i).rate(100).partitions(2);
    let mut reader = source.open(1).unwrap();
    let begin = Instant::now();
    let mut rows = Vec::new();
    while begin.elapsed() < Duration::from_secs(10) {
        let mut page = Page::default();
        reader.read(&mut page, 1024).await.unwrap();
        assert!(!page.rows.is_empty());
        rows.append(&mut page.rows);
    }
    assert!((500..=502).contains(&rows.len()), "{}", rows.len());
    assert!(rows.iter().copied().eq((0..rows.len() as u64).map(|i| 2 * i + 1)));

    // After a minute without a read, one second of it is made up for.
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut page = Page::default();
    reader.read(&mut page, 1024).await.unwrap();
    assert!((50..=52).contains(&page.rows.len()), "{}", page.rows.len());
    let mut page = Page::default();
    assert!(reader.read(&mut page, 1024).now_or_never().is_none());
    reader.read(&mut page, 1024).await.unwrap();
    assert_eq!(page.rows.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_page_smaller_than_what_is_due_leaves_the_rest_due() {
    let mut reader = Generate::new("ticks", |i| i).rate(1_000).open(0).unwrap();
    reader.read(&mut Page::default(), 10).await.unwrap();
    tokio::time::advance(Duration::from_millis(100)).await;
    let mut total = 0;
    while let Some(status) = async {
        let mut page = Page::default();
        let status = reader.read(&mut page, 30).await;
        total += page.rows.len();
        status
    }
    .now_or_never()
    {
        status.unwrap();
    }
    assert!((100..=101).contains(&total), "{total}");
}

//! How rows move: held back by a slow sink, sent on promptly by a thin stream, expired while nothing moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::flow::*;
use flowjoin::connectors::{FromStream, Generate, Memory, ToChannel};
use flowjoin::prelude::*;
use flowjoin::{Account, Unmatched};
use futures::StreamExt;
use tokio::sync::mpsc;

#[test]
fn a_slow_sink_holds_its_sources_back() {
    run(async {
        let made = Arc::new(AtomicU64::new(0));
        let count = made.clone();
        let (to, mut out) = mpsc::channel(1);
        let flow = Flow::new("test");
        let endless = Generate::new("lefts", move |i| {
            count.fetch_add(1, Ordering::Relaxed);
            left(i)
        });
        let eight = flow.stream(Memory::rows("eight", (0..8).map(right).collect())).keyed();
        let join = flow.stream(endless).key_by(|left| left.id % 8).join(eight).keep_forever();
        join.select(|left, _| left.id).sink_to(ToChannel::rows("out", to));
        let mut config = quiet(2);
        (config.page_rows, config.batch_rows, config.channel_batches) = (64, 64, 2);
        let running = flow.start(config).unwrap();
        for taken in 1..=5_000u64 {
            assert!(out.recv().await.is_some());
            // Pages in hand, batches on their way and batches at work: some dozens of 64 rows, and no more.
            let ahead = made.load(Ordering::Relaxed).saturating_sub(taken);
            assert!(ahead < 40 * 64, "{ahead} rows are made and not taken after {taken}");
        }
        running.stop();
        let drain = tokio::spawn(async move { while out.recv().await.is_some() {} });
        assert!(running.wait().await.unwrap().is_balanced());
        drain.await.unwrap();
    });
}

#[test]
fn a_single_row_reaches_the_sink_before_the_next_one_comes() {
    run(async {
        let (to, mut out) = mpsc::channel(1);
        let (feed, fed) = mpsc::channel(1);
        let flow = Flow::new("test");
        let next = |mut fed: mpsc::Receiver<Left>| async move { Some((fed.recv().await?, fed)) };
        let trickle = futures::stream::unfold(fed, next);
        let lefts = flow.stream(FromStream::new("lefts", trickle)).keyed();
        let rights = flow.stream(Memory::rows("rights", (0..20).map(right).collect())).keyed();
        lefts.join(rights).keep_forever().select(|left, _| left.id).sink_to(ToChannel::rows("out", to));
        let running = flow.start(quiet(2)).unwrap();
        for id in 0..20 {
            // Each row is sent only when the one before has arrived: no row waits for company.
            feed.send(left(id)).await.unwrap();
            assert_eq!(out.recv().await, Some(id));
        }
        drop(feed);
        assert!(running.wait().await.unwrap().is_balanced());
    });
}

#[test]
fn a_row_expires_by_the_clock_while_nothing_comes() {
    run(async {
        let (to, mut out) = mpsc::channel(1);
        let flow = Flow::new("test");
        let once = futures::stream::iter([left(1)]).chain(futures::stream::pending());
        let lefts = flow.stream(FromStream::new("lefts", once)).keyed();
        let rights = flow.stream(FromStream::new("rights", futures::stream::pending::<Right>())).keyed();
        let join = lefts.join(rights).ttl(millis(50)).named("join");
        let (_, (lonely, _)) = join.select_with_unmatched(|left, _| left.id);
        lonely
            .map(|lonely: Unmatched<Left>| (lonely.row.id, lonely.reason.name().to_string()))
            .sink_to(ToChannel::rows("out", to));
        let running = flow.start(quiet(2)).unwrap();
        assert_eq!(out.recv().await, Some((1, "expired".to_string())));
        running.stop();
        let report = running.wait().await.unwrap();
        assert_eq!(account(&report, "join", 0), Account { rows: 1, expired: 1, ..Account::default() });
    });
}

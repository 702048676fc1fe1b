//! The clock of the machine.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flowjoin_core::ProcTime;

/// Wall-clock time that never goes back: read once at the start, and moved by a monotonic clock from there.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    began_at: i64,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { began: Instant::now(), began_at: millis(since_epoch) }
    }

    /// The time now.
    pub fn now(&self) -> ProcTime {
        ProcTime::from_millis(self.began_at.saturating_add(millis(self.began.elapsed())))
    }

    /// When that is, for a sleep; a time that has passed is now.
    pub fn instant(&self, at: ProcTime) -> tokio::time::Instant {
        let ahead = at.since(self.now()).as_millis().max(0) as u64;
        // A sleep of years is as good as none, and does not overflow.
        tokio::time::Instant::now() + Duration::from_millis(ahead.min(86_400_000))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

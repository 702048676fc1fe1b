//! The lead rule: no source task reads on while it is more than a page ahead of its slowest peer.
//!
//! Without it tasks drift apart, the least watermark stays behind and the state of time-bounded joins grows. A peer that
//! waits for its own input, or has ended, is not waited for.

use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Notify;

/// The source tasks of one connected part of a flow.
#[derive(Debug)]
pub struct Pace {
    members: Mutex<Vec<Member>>,
    moved: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    pages: u64,
    counts: bool,
}

impl Pace {
    /// A pace for so many source tasks.
    pub fn new(members: usize) -> Pace {
        Pace { members: Mutex::new(vec![Member { pages: 0, counts: true }; members]), moved: Notify::new() }
    }

    /// A task has read and sent on one page.
    pub fn on_page(&self, member: usize) {
        self.change(member, |member| member.pages += 1);
    }

    /// A task waits for its input.
    pub fn on_wait(&self, member: usize) {
        self.change(member, |member| member.counts = false);
    }

    /// A task has input again: it counts from where the slowest is, and is not held to what others read meanwhile.
    pub fn on_wake(&self, member: usize) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if !members[member].counts {
            let slowest = members.iter().filter(|m| m.counts).map(|m| m.pages).min();
            let own = &mut members[member];
            own.pages = own.pages.max(slowest.unwrap_or(own.pages));
            own.counts = true;
        }
    }

    /// A task will read no more.
    pub fn on_end(&self, member: usize) {
        self.on_wait(member);
    }

    /// Returns once the task may read on.
    pub async fn may_read(&self, member: usize) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.is_free(member) {
                return;
            }
            moved.await;
        }
    }

    fn is_free(&self, member: usize) -> bool {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let slowest = members.iter().filter(|m| m.counts).map(|m| m.pages).min();
        slowest.is_none_or(|slowest| members[member].pages <= slowest + LEAD)
    }

    fn change(&self, member: usize, by: impl FnOnce(&mut Member)) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let before = members.iter().filter(|m| m.counts).map(|m| m.pages).min();
        by(&mut members[member]);
        let after = members.iter().filter(|m| m.counts).map(|m| m.pages).min();
        if before != after {
            self.moved.notify_waiters();
        }
    }
}

/// How many pages a task may be ahead.
const LEAD: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_a_page_ahead_waits_for_peers_that_read_and_for_no_others() {
        let pace = Pace::new(2);
        pace.on_page(0);
        assert!(pace.is_free(0));
        pace.on_page(0);
        assert!(!pace.is_free(0) && pace.is_free(1));
        pace.on_wait(1);
        assert!(pace.is_free(0));
        for _ in 0..5 {
            pace.on_page(0);
        }
        pace.on_wake(1);
        assert!(pace.is_free(0) && pace.is_free(1));
    }
}

//! The receiving end of a task: one bounded channel a sender, taken in turns.

use std::task::{Context, Poll};

use flowjoin_core::task::{Inlet, Message};
use tokio::sync::mpsc::Receiver;

/// What a task sends to another.
pub type Letter = (Inlet, Message);

/// All channels that lead to a task.
pub struct Inbox {
    channels: Vec<Receiver<Letter>>,
    next: usize,
}

impl Inbox {
    /// An inbox of these channels.
    pub fn new(channels: Vec<Receiver<Letter>>) -> Inbox {
        Inbox { channels, next: 0 }
    }

    /// The next letter, taking the senders in turns; none when all have gone. Safe to drop while it waits.
    pub async fn next(&mut self) -> Option<Letter> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Letter>> {
        let mut tried = 0;
        while tried < self.channels.len() {
            let at = self.next % self.channels.len();
            match self.channels[at].poll_recv(cx) {
                Poll::Ready(Some(letter)) => {
                    self.next = at + 1;
                    return Poll::Ready(Some(letter));
                }
                Poll::Ready(None) => {
                    self.channels.swap_remove(at);
                }
                Poll::Pending => {
                    self.next = at + 1;
                    tried += 1;
                }
            }
        }
        if self.channels.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

//! Ctrl-C: the first one ends reading, the second one the process.
//!
//! Listened for on a thread of its own: those of the flow may all be held up, by a pipe that nobody reads.

use std::thread;

use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use crate::error::warn;

/// That Ctrl-C is listened for, until this is dropped.
pub struct Listening {
    _until: oneshot::Sender<()>,
}

/// Begins to listen, and sends on `stop` at the first Ctrl-C. Nothing if the machine has no thread for that: Ctrl-C then ends
/// the process, as it does without this.
pub fn listen(stop: watch::Sender<bool>) -> Option<Listening> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let (sender, until) = oneshot::channel();
    let listens = async move {
        tokio::select! {
            () = on_ctrl_c(stop) => {}
            _ = until => {}
        }
    };
    let begun = thread::Builder::new().name("flowjoin-signals".to_string()).spawn(move || runtime.block_on(listens));
    begun.ok().map(|_| Listening { _until: sender })
}

async fn on_ctrl_c(stop: watch::Sender<bool>) {
    if tokio::signal::ctrl_c().await.is_ok() {
        warn(format_args!("stopping: reading has ended, what was read goes through; Ctrl-C again ends at once"));
        let _ = stop.send(true);
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    }
}

//! Merging segments into one, beside the commits: which are worth it, and the thread that does it.
//!
//! A run of segments is merged that reaches from the newest back to the oldest one which all newer ones together outweigh.
//! What remains is larger than all that is newer, so that few segments remain, and what is written again ends up in one
//! at least twice as large, but for a commit that came to be larger than what was before it. So a byte is written again
//! about log2(size of the store / size of a commit) times at most. A run that reaches the oldest of all, the *base*, is
//! merged however short it is, since it holds what has no use any more; others once they are long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use flowjoin_core::state::StoreError;

use super::cursor::Merged;
use super::disk::Disk;
use super::manifest::segment_file;
use super::segment::{Draft, Segment};

/// Sizes at which things are done; smaller ones for tests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a block becomes.
    pub block_bytes: usize,
    /// From how many segments on a run is worth a merge.
    pub run: usize,
    /// What a segment weighs at least: below this it is not worth telling them apart.
    pub segment_bytes: u64,
    /// From how many bytes on a run that reaches the base is worth a merge though it is short.
    pub base_bytes: u64,
}

/// A merge that is under way, or has come to an end and is not in the manifest yet.
#[derive(Debug)]
pub struct Merging {
    number: u64,
    inputs: Vec<Arc<Segment>>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    // The flag tells the thread to give up.
    Running(JoinHandle<Result<Option<Segment>, StoreError>>, Arc<AtomicBool>),
    Done(Arc<Segment>),
    Over,
}

/// What is below the segments of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Older segments, from which deletes must go on hiding keys.
    Segments,
    /// Nothing, so that deletes may go.
    Nothing,
}

impl Limits {
    /// Where the run begins, in what these segments weigh, oldest first, that is worth a merge and reaches to the newest one.
    pub fn run(&self, weights: &[u64], below: Below) -> Option<usize> {
        let (mut begin, mut newer_bytes) = (weights.len(), 0);
        for (at, weight) in weights.iter().map(|&weight| weight.max(self.segment_bytes)).enumerate().rev() {
            if weight <= newer_bytes {
                begin = at;
            }
            newer_bytes += weight;
        }
        let len = weights.len() - begin;
        let outweighs_base = begin == 0 && below == Below::Nothing && len > 1 && newer_bytes >= self.base_bytes;
        (len >= self.run || outweighs_base).then_some(begin)
    }
}

impl Merging {
    /// Begins to merge these segments, oldest first, into one of this number. None if no thread could be had: a later
    /// commit tries again.
    pub fn begin(disk: &Disk, inputs: &[Arc<Segment>], number: u64, below: Below, limits: Limits) -> Option<Merging> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (disk, of, flag) = (disk.clone(), inputs.to_vec(), Arc::clone(&cancelled));
        let thread = Builder::new().name("flowjoin-merge".to_string());
        let thread = thread.spawn(move || merged(&disk, &of, number, below, limits.block_bytes, &flag)).ok()?;
        Some(Merging { number, inputs: inputs.to_vec(), stage: Stage::Running(thread, cancelled) })
    }

    /// The segments that it merges.
    pub fn inputs(&self) -> &[Arc<Segment>] {
        &self.inputs
    }

    /// The name of the file that it makes.
    pub fn file(&self) -> String {
        segment_file(self.number)
    }

    /// Takes the result over if it is there; an error if there will be none.
    pub fn look(&mut self) -> Result<(), StoreError> {
        match &self.stage {
            Stage::Running(thread, _) if thread.is_finished() => self.wait(),
            _ => Ok(()),
        }
    }

    /// Waits for the result, if it is still under way.
    pub fn wait(&mut self) -> Result<(), StoreError> {
        let Stage::Running(thread, _) = std::mem::replace(&mut self.stage, Stage::Over) else { return Ok(()) };
        let result =
            thread.join().map_err(|_| StoreError::new("the merge of segments panicked; please report this"))?;
        if let Some(segment) = result? {
            self.stage = Stage::Done(Arc::new(segment));
        }
        Ok(())
    }

    /// The segment that takes the place of the others, once it is there.
    pub fn result(&self) -> Option<&Arc<Segment>> {
        match &self.stage {
            Stage::Done(segment) => Some(segment),
            Stage::Running(..) | Stage::Over => None,
        }
    }
}

impl Drop for Merging {
    // The thread writes into the folder, so it must be gone before somebody else may open the store.
    fn drop(&mut self) {
        if let Stage::Running(_, cancelled) = &self.stage {
            cancelled.store(true, Ordering::Relaxed);
            // Whatever has become of it is not in the manifest, and goes at the next opening.
            let _ = self.wait();
        }
    }
}

// None if it was cancelled.
fn merged(
    disk: &Disk,
    inputs: &[Arc<Segment>],
    number: u64,
    below: Below,
    block_bytes: usize,
    cancelled: &AtomicBool,
) -> Result<Option<Segment>, StoreError> {
    let [oldest, .., newest] = inputs else { return Ok(None) };
    let mut draft = Draft::begin(disk, number, oldest.named().first, newest.named().last, block_bytes)?;
    let mut entries = Merged::begin(inputs, &[])?;
    while let Some((key, value)) = entries.next()? {
        if cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if value.is_some() || below == Below::Segments {
            draft.add(key, value)?;
        }
    }
    draft.finish(newest.record()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { block_bytes: 0, run: 4, segment_bytes: 2, base_bytes: 10 };

    #[test]
    fn a_run_goes_back_to_the_oldest_segment_that_newer_ones_outweigh() {
        let run = |sizes: &[u64]| LIMITS.run(sizes, Below::Nothing);
        assert_eq!(run(&[]), None);
        assert_eq!(run(&[100]), None);
        assert_eq!(run(&[100, 50, 49]), None);
        assert_eq!(run(&[100, 50, 50]), Some(0));
        assert_eq!(run(&[100, 99]), None);
        assert_eq!(run(&[5, 5]), Some(0));
        assert_eq!(run(&[4, 5]), None);
        assert_eq!(run(&[100, 60, 50]), Some(0));
        assert_eq!(run(&[40, 100, 5]), Some(0));
        assert_eq!(run(&[100, 5, 5, 5]), None);
        assert_eq!(run(&[100, 5, 5, 5, 5]), Some(1));
        assert_eq!(run(&[100, 0, 2, 0, 1]), Some(1));
        assert_eq!(LIMITS.run(&[100, 50, 50], Below::Segments), None);
    }

    #[test]
    fn a_byte_is_written_again_few_times_and_few_segments_remain() {
        // Each commit has the size 10, and no key comes twice, so that nothing is saved by merging.
        let (mut sizes, mut written, mut longest) = (Vec::new(), 0, 0);
        for _ in 0..100_000 {
            sizes.push(10);
            if let Some(begin) = LIMITS.run(&sizes, Below::Nothing) {
                let merged = sizes.drain(begin..).sum();
                written += merged;
                sizes.push(merged);
            }
            longest = longest.max(sizes.len());
        }
        let total: u64 = sizes.iter().sum();
        assert!(written < 12 * total && longest < 20, "{written} of {total} in at most {longest} segments");
    }
}

//! A batch job beside a service: a re-index at `Priority::Low`, which a shutdown ends early.
//!
//! For a service that also re-indexes, compacts, or recomputes at night. The batch is one job at
//! `Low`, which has a queue and threads of its own: the service's jobs, at `Normal`, never queue
//! behind it. Copy [`reindex`].
//!
//! While all cores are busy, Linux gives `Normal` twice the CPU time of `Low`, and Tokio's threads
//! come first. With `Niceness::idle_class_for_low`, a setting of the lane's builder, `Low` gets a tenth
//! of what `Normal` gets.
//!
//! The batch asks a checkpoint for each document, and saves its progress after each chunk. A
//! shutdown then waits no longer than a document takes, and the next start continues at the last
//! chunk. `par_iter` inside the job uses the threads of `Low`.
//!
//! ```text
//! cargo run --release -p examples --example batch_on_low    # ends after a second
//! ```
//!
//! To copy it: `cargo add twolane rayon` and `cargo add tokio -F full`.

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use twolane::{Cancelled, CpuRuntime, Handle, JobContext, JoinError, Priority, Task};

/// The documents between two points at which the batch saves its progress.
const CHUNK: usize = 256;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cpu = CpuRuntime::new()?;
    let (median, longest) = requests(cpu.handle()).await?;
    println!("requests alone: median {median:?}, longest {longest:?}");
    // In a service this is in a file or a table.
    let saved = Arc::new(AtomicUsize::new(0));
    let save = saved.clone();
    let batch = reindex(cpu.handle(), 0..usize::MAX, move |next| {
        save.store(next, Ordering::SeqCst);
    });
    let (median, longest) = requests(cpu.handle()).await?;
    println!("beside a batch: median {median:?}, longest {longest:?}");

    cpu.shutdown().await; // the batch stops at its next checkpoint
    let error = batch.await.unwrap_err();
    let next = saved.load(Ordering::SeqCst);
    println!("the batch: {error}; start again at document {next}");
    Ok(())
}

/// Indexes `documents`. After each chunk it calls `save` with the first document that is left.
pub fn reindex(
    cpu: &Handle,
    documents: Range<usize>,
    save: impl Fn(usize) + Send + 'static,
) -> Task<()> {
    let low = cpu.with_priority(Priority::Low).with_name("reindex");
    low.spawn_cpu_with(move |job| {
        let mut next = documents.start;
        while next < documents.end {
            let end = documents.end.min(next.saturating_add(CHUNK));
            index_chunk(job, next..end)?;
            save(end);
            next = end;
        }
        Ok(())
    })
}

/// On all threads of `Low`.
fn index_chunk(job: &JobContext, chunk: Range<usize>) -> Result<(), Cancelled> {
    chunk.into_par_iter().try_for_each(|document| {
        job.checkpoint()?;
        index(document);
        Ok(())
    })
}

/// Counts words: stands for your index.
fn index(document: usize) {
    let text = format!("document {document} of the re-index ").repeat(200);
    let mut words = HashMap::<&str, usize>::new();
    for word in text.split(' ') {
        *words.entry(word).or_default() += 1;
    }
    black_box(words);
}

/// Sends 50 requests that compute for a short time each. Returns the median time and the longest.
async fn requests(cpu: &Handle) -> Result<(Duration, Duration), JoinError> {
    let mut times = Vec::new();
    for n in 0..50 {
        let begin = Instant::now();
        cpu.spawn_cpu(move || index(n)).await?;
        times.push(begin.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await; // until the next request
    }
    times.sort();
    Ok((times[25], times[49]))
}

//! A consumer of a log (Kafka and its kin) that computes, and commits what is done.
//!
//! Replaces Go's goroutine for each message with a `WaitGroup` before each commit, and in
//! Rust `buffered(n)` over `spawn_blocking`. The outputs come in the order of the
//! messages, so each commit covers all messages before it, though several are computed at
//! once. A restart begins at the last commit: it skips nothing, and repeats what was under
//! way. (`buffer_unordered` would commit a message before an earlier one is done.)
//!
//! If a commit is slow, take `outputs.ready_chunks(n)`, and commit once for each chunk.

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use twolane::{CpuStreamExt, Handle};

use crate::Error;

/// How many messages are queued, computed, or wait for their turn.
pub const WINDOW: usize = 64;

pub struct Message {
    pub offset: u64,
    pub text: String,
}

/// Where the outputs go, and where a restart begins.
pub trait Store {
    fn write(&mut self, output: u64) -> impl Future<Output = Result<(), Error>> + Send;
    /// All messages before this offset are done.
    fn commit(&mut self, offset: u64) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Runs until the channel ends, or to the first error. The channel is bounded: if the
/// store is slow, its sender waits.
pub async fn consume<C>(
    cpu: &Handle,
    mut messages: mpsc::Receiver<Message>,
    compute: C,
    store: &mut impl Store,
) -> Result<(), Error>
where
    C: Fn(&str) -> Result<u64, Error> + Send + Sync + 'static,
{
    let mut outputs = stream::poll_fn(move |cx| messages.poll_recv(cx))
        .on_cpu(cpu)
        .map(move |message| Ok::<_, Error>((message.offset, compute(&message.text)?)))
        .buffered(WINDOW)
        .map(|output| output?);
    // An error returns, and so drops the stream: what is queued behind it never runs.
    while let Some((offset, output)) = outputs.try_next().await? {
        store.write(output).await?;
        store.commit(offset + 1).await?;
    }
    Ok(())
}

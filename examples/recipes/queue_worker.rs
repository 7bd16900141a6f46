//! A worker on a message queue: it takes a permit, *then* a message, and hands back what it has not
//! begun.
//!
//! For consumers of Kafka, SQS, NATS or a table of jobs. A worker that takes a message first, and
//! then waits for a thread, keeps it from the other machines, until its visibility ends and it is
//! delivered again. Here the lane decides: [`reserve`](twolane::Handle::reserve) resolves when a
//! message would not wait for longer than the limit. Meanwhile the consumer's own task is free for
//! its heartbeats: nothing computes there. Copy [`work`].
//!
//! - Each message is acknowledged when its job has ended. What panics goes back, too: let the queue
//!   count how often.
//! - At the end the worker takes no more messages. Jobs that run end; those that are queued are
//!   closed by the shutdown of the lane, and their messages go back at once.
//!
//! With apalis, `reserve` belongs in front of the poll of its backend, as a layer that waits in
//! `poll_ready`. A Temporal worker does the same in its `SlotSupplier`: a slot is a permit.
//!
//! ```text
//! cargo run --release -p examples --example queue_worker    # ends after some messages
//! ```
//!
//! To copy it: `cargo add twolane` and `cargo add tokio -F full`.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use twolane::{CpuRuntime, Handle, JoinError, Priority};

/// Stands for a message of your queue's client.
pub struct Message {
    pub body: Vec<u8>,
    /// `true` acknowledges it. Else it goes back.
    pub done: oneshot::Sender<bool>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = Duration::from_secs(2);
    let cpu = CpuRuntime::builder().max_wait(Priority::Normal, limit);
    let cpu = cpu.build()?;
    let (queue, messages) = mpsc::channel(1);
    let (stop, stopped) = oneshot::channel();
    let worker = tokio::spawn(work(cpu.handle().clone(), messages, stopped));
    for n in 0..10 {
        let (done, is_done) = oneshot::channel();
        queue
            .send(Message {
                body: vec![n; 1 << 20],
                done,
            })
            .await?;
        println!("message {n} is done: {}", is_done.await?);
    }
    let _ = stop.send(());
    let under_way = worker.await?;
    cpu.shutdown_timeout(Duration::from_secs(5)).await;
    under_way.join_all().await;
    Ok(())
}

/// Takes messages until `stop`. Returns those that are under way: shut the lane down, which hands
/// back what has not begun, and await them.
pub async fn work(
    cpu: Handle,
    mut queue: mpsc::Receiver<Message>,
    mut stop: oneshot::Receiver<()>,
) -> JoinSet<()> {
    let mut under_way = JoinSet::new();
    loop {
        while under_way.try_join_next().is_some() {}
        // First the permit: until then the message is another machine's.
        let next = async { Ok::<_, JoinError>((cpu.reserve().await?, queue.recv().await)) };
        let next = tokio::select! {
            _ = &mut stop => return under_way,
            next = next => next,
        };
        let Ok((permit, Some(Message { body, done }))) = next else {
            return under_way; // the lane or the queue has ended
        };
        let job = permit.spawn_cpu(move || process(&body));
        under_way.spawn(async move {
            let _ = done.send(job.await.is_ok());
        });
    }
}

/// Stands for what your worker computes.
fn process(body: &[u8]) -> u64 {
    body.iter().map(|byte| u64::from(*byte)).sum()
}

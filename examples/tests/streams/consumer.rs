//! The consumer is killed, fails or waits in the middle, and skips nothing.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

use tokio::sync::mpsc::channel;
use tokio::task::JoinHandle;
use twolane::Handle;

use super::recipes::consumer::{Message, Store, WINDOW, consume};
use super::{Error, with_cpu};

const MESSAGES: u64 = 3_000;
const CHANNEL: usize = 8;

/// What outlives a consumer: the log's offsets, and what was written.
#[derive(Default)]
struct Kept {
    committed: u64,
    written: Vec<u64>,
    /// How far the log has been read.
    sent: u64,
}

/// Stops for ever after so many writes, before the commit.
struct Stops {
    kept: Arc<Mutex<Kept>>,
    writes: u64,
    stopped: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Store for Stops {
    async fn write(&mut self, output: u64) -> Result<(), Error> {
        self.kept.lock().unwrap().written.push(output);
        self.writes -= 1;
        if self.writes == 0 {
            self.stopped.take().unwrap().send(()).unwrap();
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn commit(&mut self, offset: u64) -> Result<(), Error> {
        let mut kept = self.kept.lock().unwrap();
        kept.committed = offset;
        let ahead = kept.sent - offset;
        let most = (WINDOW + CHANNEL + 1) as u64;
        assert!(ahead <= most, "{ahead} messages are under way");
        Ok(())
    }
}

/// Reads the log from the last commit on.
fn read_log(kept: &Arc<Mutex<Kept>>) -> (tokio::sync::mpsc::Receiver<Message>, JoinHandle<()>) {
    let (send, messages) = channel(CHANNEL);
    let kept = kept.clone();
    let log = tokio::spawn(async move {
        let begin = kept.lock().unwrap().committed;
        for offset in begin..MESSAGES {
            kept.lock().unwrap().sent = offset + 1;
            let text = offset.to_string();
            // An error means that the consumer is gone.
            if send.send(Message { offset, text }).await.is_err() {
                return;
            }
        }
    });
    (messages, log)
}

fn parse(text: &str) -> Result<u64, Error> {
    Ok(text.parse()?)
}

/// Consumes until it has ended, or until it is killed after so many writes.
async fn run(
    cpu: &Handle,
    kept: &Arc<Mutex<Kept>>,
    compute: impl Fn(&str) -> Result<u64, Error> + Send + Sync + 'static,
    writes: u64,
) -> Option<Result<(), Error>> {
    let (messages, log) = read_log(kept);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let mut store = Stops {
        kept: kept.clone(),
        writes,
        stopped: Some(stop),
    };
    let cpu = cpu.clone();
    let mut consumer =
        tokio::spawn(async move { consume(&cpu, messages, compute, &mut store).await });
    let end = tokio::select! {
        end = &mut consumer => Some(end.unwrap()),
        Ok(()) = stopped => {
            consumer.abort();
            assert!(consumer.await.unwrap_err().is_cancelled());
            None
        }
    };
    // The log's sender sees that the consumer is gone.
    log.await.unwrap();
    end
}

#[test]
fn a_restart_skips_nothing_and_repeats_one() {
    with_cpu(async |cpu| {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let mut expected = Vec::new();
        for writes in [1, 7, 1_000, 1] {
            assert!(run(cpu, &kept, parse, writes).await.is_none());
            // What was written last is not committed, and comes again.
            let committed = kept.lock().unwrap().committed;
            assert_eq!(kept.lock().unwrap().written.last(), Some(&committed));
            expected.push(committed);
        }
        run(cpu, &kept, parse, u64::MAX).await.unwrap().unwrap();
        expected.extend(0..MESSAGES);
        expected.sort_unstable();
        let kept = kept.lock().unwrap();
        assert_eq!(kept.committed, MESSAGES);
        assert!(kept.written == expected, "{:?}", kept.written);
    });
}

/// A message that fails, or that panics.
#[test]
fn a_restart_begins_with_the_message_that_failed() {
    with_cpu(async |cpu| {
        for panics in [false, true] {
            let kept = Arc::new(Mutex::new(Kept::default()));
            let poisoned = move |text: &str| match text {
                "700" if panics => panic!("poison"),
                "700" => Err("poison".into()),
                _ => parse(text),
            };
            let end = run(cpu, &kept, poisoned, u64::MAX).await.unwrap();
            let error = end.unwrap_err().to_string();
            assert!(error.contains("poison"), "{error}");
            assert_eq!(kept.lock().unwrap().committed, 700);
            run(cpu, &kept, parse, u64::MAX).await.unwrap().unwrap();
            assert!(kept.lock().unwrap().written.iter().copied().eq(0..MESSAGES));
        }
    });
}

/// The messages after it are computed, but not committed.
#[test]
fn a_message_that_is_not_done_is_not_committed() {
    with_cpu(async |cpu| {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (let_go, wait) = mpsc::channel::<()>();
        let (wait, later, seen) = (Mutex::new(wait), AtomicBool::new(false), kept.clone());
        let compute = move |text: &str| {
            let offset = parse(text)?;
            if offset == 0 {
                wait.lock().unwrap().recv()?;
                assert_eq!(seen.lock().unwrap().committed, 0);
            } else if !later.swap(true, SeqCst) {
                let_go.send(()).unwrap();
            }
            Ok(offset)
        };
        run(cpu, &kept, compute, u64::MAX).await.unwrap().unwrap();
        assert!(kept.lock().unwrap().written.iter().copied().eq(0..MESSAGES));
    });
}

//! The other task of the I/O runtime: it is woken from outside, at times fixed
//! before, and tells how late it was.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::mpsc;
use tokio::task;

use twolane_benches::tail::client::{EVERY, Latencies};
use twolane_benches::tail::sleep_until;

use crate::lanes::Span;

#[derive(Clone, Copy)]
pub struct Schedule {
    start: Instant,
    /// What is due before is not counted.
    pub warm: Instant,
    pub end: Instant,
}

impl Schedule {
    pub fn from_now(span: Span) -> Self {
        let start = Instant::now();
        let warm = start + span.warm_up;
        Self {
            start,
            warm,
            end: warm + span.measured,
        }
    }

    /// Half as far apart to half as far again, so that they don't keep step
    /// with the pieces; the same ones in each slice.
    fn times(self) -> impl Iterator<Item = Instant> {
        let mut random = fastrand::Rng::with_seed(7);
        let (least, most) = (EVERY.as_nanos() as u64 / 2, EVERY.as_nanos() as u64 * 3 / 2);
        let mut time = self.start;
        std::iter::from_fn(move || {
            time += Duration::from_nanos(random.u64(least..=most));
            (time < self.end).then_some(time)
        })
    }
}

struct Message {
    due: Instant,
    sent: Instant,
}

pub struct OtherTask {
    sender: JoinHandle<()>,
    task: task::JoinHandle<Latencies>,
}

impl OtherTask {
    /// On the runtime that this is called in.
    pub fn start(schedule: Schedule) -> Self {
        // Unbounded: a sender that waits for a late task would not send what
        // is due meanwhile.
        let (send, messages) = mpsc::unbounded_channel();
        let task = tokio::spawn(receive(messages, schedule.warm));
        let sender = thread::Builder::new()
            .name("sender".to_owned())
            .spawn(move || {
                for due in schedule.times() {
                    sleep_until(due);
                    let sent = Instant::now();
                    assert!(send.send(Message { due, sent }).is_ok());
                }
            })
            .unwrap();
        Self { sender, task }
    }

    /// When the schedule is over and all messages have been received.
    pub async fn latencies(self) -> Latencies {
        let latencies = self.task.await.unwrap();
        // It has ended: the channel is closed.
        self.sender.join().unwrap();
        latencies
    }
}

async fn receive(mut messages: mpsc::UnboundedReceiver<Message>, warm: Instant) -> Latencies {
    let mut latencies = Latencies::none();
    while let Some(Message { due, sent }) = messages.recv().await {
        let now = Instant::now();
        if due >= warm {
            record(&mut latencies.from_send, now - sent);
            record(&mut latencies.from_intended, now - due);
        }
    }
    latencies
}

fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(latency.as_nanos() as u64);
}

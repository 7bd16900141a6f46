//! One job, on its way in: by whatever call, with whatever it waits for.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};
use twolane::Permit;

use super::captures::{Captures, submitting};
use super::ending::OfRound;
use super::held::Held;
use super::jobs::Job;
use super::kinds::Kind;
use super::ledger::{Entry, Ledger, Seen, What};

/// The call that submits.
pub enum Way {
    Direct,
    Try,
    Permit(Permit),
}

/// What a job has besides.
pub enum Extra {
    None,
    Wait(oneshot::Receiver<()>),
    Send(oneshot::Sender<()>),
    Messages(UnboundedReceiver<u8>),
    Hold(mpsc::Receiver<()>),
    Ending(OfRound),
}

/// Of a job's permit; of the wait for one, as a timeout around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    None,
    Past,
    Near { micros: u64 },
    Far,
}

impl Deadline {
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.u8(..10) {
            0 => Self::Past,
            1 | 2 => Self::Near {
                micros: rng.u64(..3_000),
            },
            3 => Self::Far,
            _ => Self::None,
        }
    }

    pub fn may_come(self) -> bool {
        matches!(self, Self::Past | Self::Near { .. })
    }

    pub fn instant(self) -> Option<Instant> {
        let now = Instant::now();
        match self {
            Self::None => None,
            Self::Past => Some(now),
            Self::Near { micros } => Some(now + Duration::from_micros(micros)),
            Self::Far => Some(now + Duration::from_secs(3_600)),
        }
    }
}

/// Makes what a job waits for, and arranges that it is sent, or dropped.
pub fn equip(
    ledger: &Arc<Ledger>,
    kind: Kind,
    depth: u8,
    rng: &mut Rng,
) -> (Extra, Option<mpsc::Sender<()>>) {
    match kind {
        Kind::Hold => {
            let (let_go, hold) = mpsc::channel();
            return (Extra::Hold(hold), Some(let_go));
        }
        Kind::Channel => {
            let (send, wait) = oneshot::channel();
            match rng.u8(..4) {
                0 => drop(send),
                // Another job sends it, or takes it along if it never runs.
                1 => {
                    let what = What {
                        kind: Kind::Releases,
                        level: rng.usize(..3),
                        may_expire: false,
                    };
                    if let Some(captures) = ledger.enroll(what) {
                        let extra = Extra::Send(send);
                        if let Some(held) = submit(captures, extra, depth, rng, Way::Direct) {
                            held.detach();
                        }
                    }
                }
                _ => {
                    let turns = rng.u8(..4);
                    ledger.aside(async move {
                        for _ in 0..turns {
                            tokio::task::yield_now().await;
                        }
                        let _ = send.send(());
                    });
                }
            }
            return (Extra::Wait(wait), None);
        }
        Kind::Messages => {
            let (send, messages) = tokio::sync::mpsc::unbounded_channel();
            let count = rng.u8(1..8);
            ledger.aside(async move {
                for n in 0..count {
                    let _ = send.send(n);
                    if n % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            });
            return (Extra::Messages(messages), None);
        }
        _ => {}
    }
    (Extra::None, None)
}

/// Submits the job, and writes down whether it was taken on. None if it was handed
/// back.
pub fn submit(
    captures: Captures,
    extra: Extra,
    depth: u8,
    rng: &mut Rng,
    way: Way,
) -> Option<Held> {
    let (ledger, id) = (captures.ledger.clone(), captures.id);
    let record = ledger.record(id);
    let What { kind, level, .. } = record.what();
    let handle = &ledger.handles[level];
    let was_done = ledger.endings.is_done();
    let with_context = rng.bool();
    let job = Job {
        rng: rng.fork(),
        captures,
        kind,
        extra,
        depth,
    };
    let rejected = |cause: &twolane::JoinError| match () {
        () if cause.is_queue_full() => Seen::QueueFull,
        () if cause.is_shutdown() => Seen::Shutdown,
        () if cause.is_io_runtime_gone() => Seen::IoGone,
        () => Seen::Wrong,
    };
    // What is handed back is dropped in here as well.
    let task = submitting(id, || match (way, kind.is_future()) {
        (Way::Direct, false) if with_context => {
            Ok(handle.spawn_cpu_with(move |context| Ok(job.run(Some(context)))))
        }
        (Way::Direct, false) => Ok(handle.spawn_cpu(move || job.run(None))),
        (Way::Direct, true) => Ok(handle.spawn(job.future())),
        (Way::Try, false) => handle
            .try_spawn_cpu(move || job.run(None))
            .map_err(|back| rejected(back.cause())),
        (Way::Try, true) => handle
            .try_spawn(job.future())
            .map_err(|back| rejected(back.cause())),
        (Way::Permit(permit), false) if with_context => {
            Ok(permit.spawn_cpu_with(move |context| Ok(job.run(Some(context)))))
        }
        (Way::Permit(permit), false) => Ok(permit.spawn_cpu(move || job.run(None))),
        (Way::Permit(permit), true) => Ok(permit.spawn(job.future())),
    });
    let entry = match &task {
        Err(_) => Entry::Refused,
        Ok(_) if !record.gone_in_call.load(SeqCst) => Entry::Taken,
        Ok(_) if ledger.lane_may_close() => Entry::RefusedOrClosed,
        Ok(_) => Entry::Refused,
    };
    record.set_entry(entry);
    if was_done && entry == Entry::Taken {
        ledger.fail(format!("job {id} was taken on after the shutdown"));
    }
    match task {
        Ok(task) => Some(Held::new(ledger, id, task)),
        Err(seen) => {
            record.see(seen);
            None
        }
    }
}

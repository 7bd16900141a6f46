//! [`yield_if_due`]: how a long future gives way, for about a nanosecond when it
//! need not.
//!
//! Reading a clock costs some 20 ns, too much for an inner loop. So one thread
//! of the process, the ticker, counts ticks of [`TICK`] in an atomic, and a
//! call compares that with the tick at which this thread's slice began: a job's
//! step, or the last time it gave way. A slice is over at the second tick, so
//! it lasts one to two of them.
//!
//! The ticker sleeps when it is not needed: each call sees to it that the clock says
//! "asked", and changes it only if it does not; a ticker that finds it unset
//! for a while parks, and the next call that finds it so wakes it.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{PoisonError, RwLock, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::os::starter;

const TICK: Duration = Duration::from_millis(5);
const TICKS_OF_A_SLICE: u32 = 2;
/// How many ticks pass unasked before the ticker parks.
const PATIENCE: u32 = 40;

/// Ticks, and in the lowest bits whether they are asked for: one word, since a call
/// has to look at both.
static CLOCK: AtomicU32 = AtomicU32::new(NOT_ASKED);
const DEMAND: u32 = 3;
const PARKED: u32 = 0;
const NOT_ASKED: u32 = 1;
const ASKED: u32 = 2;
const ONE_TICK: u32 = 4;

/// What this thread knows of the job's step that it runs.
#[derive(Clone, Copy)]
struct Step {
    is_running: bool,
    yielded: bool,
    /// The ticks at which its slice began.
    slice_began: u32,
    /// Jobs that it has submitted.
    spawned: u32,
}

thread_local! {
    static STEP: Cell<Step> = const {
        Cell::new(Step { is_running: false, yielded: false, slice_began: 0, spawned: 0 })
    };
}

/// A job's step runs on this thread until the answer is dropped.
pub(crate) fn begin_step() -> impl Drop {
    struct Before {
        was_running: bool,
    }
    impl Drop for Before {
        fn drop(&mut self) {
            let is_running = self.was_running;
            STEP.set(Step {
                is_running,
                ..STEP.get()
            });
        }
    }
    let was_running = runs_a_job();
    STEP.set(Step {
        is_running: true,
        yielded: false,
        slice_began: ticks(),
        spawned: 0,
    });
    Before { was_running }
}

pub(crate) fn runs_a_job() -> bool {
    STEP.get().is_running
}

/// The step submits a job: which one of its jobs that is, from 1 up. Outside of a step
/// each is the first.
pub(crate) fn count_spawn() -> u32 {
    let step = STEP.get();
    if !step.is_running {
        return 1;
    }
    let spawned = step.spawned.saturating_add(1);
    STEP.set(Step { spawned, ..step });
    spawned
}

/// Whether the job's step that has just ended on this thread gave way.
pub(crate) fn yielded() -> bool {
    STEP.get().yielded
}

// Relaxed, here and below: the ticks order nothing but themselves.
pub(crate) fn ticks() -> u32 {
    CLOCK.load(Relaxed) & !DEMAND
}

/// Whether a slice that began at those ticks is over.
#[inline]
pub(crate) fn is_slice_over(began: u32) -> bool {
    let clock = CLOCK.load(Relaxed);
    if clock & DEMAND != ASKED {
        ask();
    }
    // What the demand adds is less than a tick.
    clock.wrapping_sub(began) >= TICKS_OF_A_SLICE * ONE_TICK
}

/// Returns the demand that was. `SeqCst`: a ticker that parks and a call that asks
/// both change the word, and the one that comes second must see the other.
fn set_demand(from: impl Fn(u32) -> bool, to: u32) -> Result<u32, u32> {
    let set = |clock| from(clock & DEMAND).then_some((clock & !DEMAND) | to);
    let before = CLOCK.fetch_update(SeqCst, SeqCst, set);
    before
        .map(|clock| clock & DEMAND)
        .map_err(|clock| clock & DEMAND)
}

#[cold]
fn ask() {
    if set_demand(|_| true, ASKED) == Ok(PARKED) {
        // One that holds the lock unparks the ticker itself when it has let go.
        if let Ok(ticker) = TICKER.try_read() {
            if let Some((_, ticker)) = &*ticker {
                ticker.unpark();
            }
        }
    }
}

/// The process that has the ticker, and the ticker: it is started with the first lane.
static TICKER: RwLock<Option<(u32, Thread)>> = RwLock::new(None);

/// Starts the ticker, if this process has none.
pub(crate) fn start_ticker() -> io::Result<()> {
    let mut ticker = TICKER.write().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let thread = match &*ticker {
        Some((owner, thread)) if *owner == process => thread.clone(),
        _ => {
            let (me, started) = mpsc::channel();
            starter::spawn("twolane-ticker".to_owned(), move || {
                let _ = me.send(thread::current());
                tick();
            })?;
            let thread = started.recv().map_err(io::Error::other)?;
            *ticker = Some((process, thread.clone()));
            thread
        }
    };
    drop(ticker);
    // For a call of `ask` that found it locked.
    thread.unpark();
    Ok(())
}

fn tick() {
    let mut unasked = 0;
    loop {
        match set_demand(|demand| demand == ASKED, NOT_ASKED) {
            Ok(_) => unasked = 0,
            Err(_) => unasked += 1,
        }
        if unasked > PATIENCE && set_demand(|demand| demand == NOT_ASKED, PARKED).is_ok() {
            while CLOCK.load(SeqCst) & DEMAND == PARKED {
                thread::park();
            }
            unasked = 0;
        }
        thread::sleep(TICK);
        CLOCK.fetch_add(ONE_TICK, Relaxed);
    }
}

/// Gives way to the other jobs of the lane if this one has run for its slice
/// of 5 to 10 ms; else does nothing, for about a nanosecond.
///
/// For futures on the CPU lane that compute for long without having to wait:
/// call it in the loop. On [`Backend::Rayon`](crate::Backend::Rayon) a job that
/// gives way goes behind all that has not run yet, also what comes later, so
/// that a small job waits for one slice and not for one of each long job; and
/// when eight others in a row have gone before those that gave way, it is their
/// turn. On `Backend::Runtime` the order is Tokio's. It is also where such a future
/// sees its cancellation and a shutdown.
///
/// A closure can't give way; see [`JobContext`](crate::JobContext). Outside a
/// CPU job, in a process that has a lane, it yields like [`tokio::task::yield_now`], by the same clock.
///
/// # Cancel safety
/// It holds nothing.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().threads(1).build().unwrap();
/// let long = cpu.spawn(async {
///     let mut sum = 0_u64;
///     for n in 0..100_000 {
///         sum += n;
///         twolane::yield_if_due().await;
///     }
///     sum
/// });
/// assert_eq!(long.await.unwrap(), 4_999_950_000);
/// # }
/// ```
pub fn yield_if_due() -> Yield {
    Yield {
        only_if_due: true,
        yielded: false,
    }
}

/// Gives way to the other jobs of the lane, whether this one has run for long
/// or not.
///
/// For a future that knows of a good moment: between two batches, say. What
/// it goes behind stands at [`yield_if_due`], which is for inner loops.
/// Outside a CPU job it yields like [`tokio::task::yield_now`].
///
/// # Cancel safety
/// It holds nothing.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().threads(1).build().unwrap();
/// let sum = cpu.spawn(async {
///     let mut sum = 0_u64;
///     for batch in [[1, 2], [3, 4]] {
///         sum += batch.iter().sum::<u64>();
///         twolane::yield_now().await;
///     }
///     sum
/// });
/// assert_eq!(sum.await.unwrap(), 10);
/// # }
/// ```
pub fn yield_now() -> Yield {
    Yield {
        only_if_due: false,
        yielded: false,
    }
}

/// Made by [`yield_if_due`] and [`yield_now`].
#[derive(Debug)]
#[must_use = "nothing gives way unless this is awaited"]
pub struct Yield {
    only_if_due: bool,
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded || (self.only_if_due && !is_slice_over(STEP.get().slice_began)) {
            return Poll::Ready(());
        }
        self.yielded = true;
        STEP.set(Step {
            yielded: true,
            slice_began: ticks(),
            ..STEP.get()
        });
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

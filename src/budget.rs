//! [`yield_if_due`]: how a long future gives way, for about a nanosecond when it
//! need not.
//!
//! Reading a clock costs some 20 ns, too much for an inner loop. So one thread
//! of the process, the ticker, counts ticks of [`TICK`] in an atomic, and a
//! call compares that with the tick at which this thread's slice began: a job's
//! step, or the last time it gave way. A slice is over at the second tick, so
//! it lasts one to two of them.
//!
//! The ticker sleeps when nobody asks: each call sees to it that the clock says
//! "asked", and changes it only if it does not; a ticker that finds it unset
//! for a while parks, and the next call that finds it so wakes it.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::os::starter;

const TICK: Duration = Duration::from_millis(5);
const TICKS_OF_A_SLICE: u32 = 2;
/// How many ticks nobody asks for before the ticker parks.
const PATIENCE: u32 = 40;
/// A ticker that could not be started is not tried again for so long.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Ticks, and in the lowest bits whether anybody asks: one word, since a call
/// has to look at both.
static CLOCK: AtomicU32 = AtomicU32::new(PARKED);
const DEMAND: u32 = 3;
const PARKED: u32 = 0;
const NOT_ASKED: u32 = 1;
const ASKED: u32 = 2;
const ONE_TICK: u32 = 4;

thread_local! {
    static SLICE_BEGAN: Cell<u32> = const { Cell::new(0) };
    static GAVE_WAY: Cell<bool> = const { Cell::new(false) };
}

/// A job's step begins on this thread.
pub(crate) fn begin_step() {
    GAVE_WAY.set(false);
    begin_slice();
}

/// Whether the job's step that has just ended on this thread gave way.
pub(crate) fn gave_way() -> bool {
    GAVE_WAY.get()
}

fn begin_slice() {
    SLICE_BEGAN.set(CLOCK.load(Relaxed) & !DEMAND);
}

#[inline]
fn is_due() -> bool {
    let clock = CLOCK.load(Relaxed);
    if clock & DEMAND != ASKED {
        ask();
    }
    // What the demand adds is less than a tick.
    clock.wrapping_sub(SLICE_BEGAN.get()) >= TICKS_OF_A_SLICE * ONE_TICK
}

/// Returns the demand that was.
fn set_demand(from: impl Fn(u32) -> bool, to: u32) -> Result<u32, u32> {
    let set = |clock| from(clock & DEMAND).then_some((clock & !DEMAND) | to);
    let before = CLOCK.fetch_update(SeqCst, SeqCst, set);
    before
        .map(|clock| clock & DEMAND)
        .map_err(|clock| clock & DEMAND)
}

#[cold]
fn ask() {
    if set_demand(|_| true, ASKED) == Ok(PARKED) && !wake_ticker() {
        // The next call tries anew.
        let _ = set_demand(|_| true, PARKED);
    }
}

enum Ticker {
    /// No thread was to be had so far; when it was tried last.
    Missing(Option<Instant>),
    Started(Thread),
}

/// Wakes the ticker, or starts it. False if it can't be started: until it can,
/// no slice ends.
fn wake_ticker() -> bool {
    static TICKER: Mutex<Ticker> = Mutex::new(Ticker::Missing(None));
    let Ok(mut ticker) = TICKER.try_lock() else {
        // Somebody else is at it.
        return true;
    };
    match &*ticker {
        Ticker::Started(thread) => thread.unpark(),
        Ticker::Missing(Some(tried)) if tried.elapsed() < TRY_AGAIN => return false,
        Ticker::Missing(_) => match start_ticker() {
            Ok(thread) => *ticker = Ticker::Started(thread),
            Err(error) => {
                *ticker = Ticker::Missing(Some(Instant::now()));
                // The log is foreign code, which may panic.
                drop(ticker);
                crate::trace::warn_no_ticker(&error);
                return false;
            }
        },
    }
    true
}

fn start_ticker() -> io::Result<Thread> {
    let (me, ticker) = mpsc::channel();
    starter::spawn("twolane-ticker".to_owned(), move || {
        let _ = me.send(thread::current());
        tick();
    })?;
    ticker.recv().map_err(io::Error::other)
}

fn tick() {
    let mut unasked = 0;
    loop {
        thread::sleep(TICK);
        CLOCK.fetch_add(ONE_TICK, Relaxed);
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
/// turn. On `Backend::Runtime` one that has not run yet goes before it each time,
/// and else the order is Tokio's. It is also where such a future sees its
/// cancellation and a shutdown.
///
/// A closure can't give way; see [`checkpoint`](crate::checkpoint). Outside a
/// CPU job it yields like [`tokio::task::yield_now`], by the same clock.
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
pub fn yield_if_due() -> YieldIfDue {
    YieldIfDue { gave_way: false }
}

/// Made by [`yield_if_due`].
#[must_use = "nothing gives way unless this is awaited"]
pub struct YieldIfDue {
    gave_way: bool,
}

impl Future for YieldIfDue {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.gave_way || !is_due() {
            return Poll::Ready(());
        }
        self.gave_way = true;
        give_way(cx)
    }
}

impl fmt::Debug for YieldIfDue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("YieldIfDue").finish_non_exhaustive()
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
pub fn yield_now() -> YieldNow {
    YieldNow { gave_way: false }
}

/// Made by [`yield_now`].
#[must_use = "nothing gives way unless this is awaited"]
pub struct YieldNow {
    gave_way: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.gave_way, true) {
            return Poll::Ready(());
        }
        give_way(cx)
    }
}

impl fmt::Debug for YieldNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("YieldNow").finish_non_exhaustive()
    }
}

fn give_way(cx: &mut Context<'_>) -> Poll<()> {
    GAVE_WAY.set(true);
    begin_slice();
    cx.waker().wake_by_ref();
    Poll::Pending
}

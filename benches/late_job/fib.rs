//! The work: naive recursive Fibonacci, as a closure has it and as a future that gives way has it.

use std::hint::black_box;
use std::time::Instant;

/// A small job: some microseconds.
pub const SMALL: u32 = 15;

/// What a future computes from one `yield_if_due` to the next: some tens of microseconds.
const PIECE: u32 = 19;

#[inline(never)]
fn fib(n: u32) -> u64 {
    if n < 2 {
        u64::from(n)
    } else {
        fib(n - 1) + fib(n - 2)
    }
}

/// The job of a closure; the time at which it ended.
pub fn compute(n: u32) -> Instant {
    black_box(fib(black_box(n)));
    Instant::now()
}

/// One piece of the job below.
pub fn compute_piece() {
    black_box(fib(black_box(PIECE)));
}

/// The same job as a future's: the upper levels of the recursion are a stack of
/// its own, and after each piece it lets others have a turn if it is time.
pub async fn compute_in_pieces(n: u32) -> Instant {
    let (mut sum, mut open) = (0, vec![black_box(n)]);
    while let Some(n) = open.pop() {
        if n <= PIECE {
            sum += fib(n);
            twolane::yield_if_due().await;
        } else {
            open.extend([n - 2, n - 1]);
        }
    }
    black_box(sum);
    Instant::now()
}

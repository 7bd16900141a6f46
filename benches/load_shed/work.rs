//! The work of a request: a buffer is hashed, slice by slice, for about 10 ms.

use std::hint::black_box;
use std::time::{Duration, Instant};

const TAKES: Duration = Duration::from_millis(10);
const BUFFER: usize = 64 << 10;
/// Makes a slice about half a millisecond: work that is cancelled stops that soon.
const ROUNDS_PER_SLICE: u32 = 8;

#[derive(Clone, Copy)]
pub struct Work {
    pub slices: u32,
}

impl Work {
    pub fn of(slices: u32) -> Self {
        Self { slices }
    }

    /// As much as takes 10 ms here.
    pub fn calibrated() -> Self {
        let buffer = buffer();
        // The best of many: whatever else runs here only makes it slower.
        let best = (0..200).map(|n| {
            let begun = Instant::now();
            black_box(slice(&buffer, n));
            begun.elapsed()
        });
        let best = best.min().expect("there are some").as_secs_f64();
        Self::of((TAKES.as_secs_f64() / best).ceil() as u32)
    }

    /// Asks before each slice whether to go on.
    pub fn run<E>(self, mut go_on: impl FnMut() -> Result<(), E>) -> Result<String, E> {
        let buffer = buffer();
        let mut hash = 0;
        for _ in 0..self.slices {
            go_on()?;
            hash = slice(&buffer, hash);
        }
        Ok(format!("{hash:016x}\n"))
    }
}

fn buffer() -> Vec<u8> {
    (0..BUFFER).map(|n| n as u8).collect()
}

/// FNV-1a, which no compiler makes shorter.
fn slice(buffer: &[u8], hash: u64) -> u64 {
    let mut hash = hash ^ 0xcbf2_9ce4_8422_2325;
    for _ in 0..ROUNDS_PER_SLICE {
        for byte in black_box(buffer) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

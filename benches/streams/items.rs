//! The items: how long each computes, and how many there are.

use std::hint::black_box;
use std::time::{Duration, Instant};

use twolane_benches::cores;
use twolane_benches::tail::work::Work;

/// What an item takes in a plain loop on an idle core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ns100,
    Us10,
    Ms1,
    /// 95 % of 10 µs, 5 % of 2 ms.
    Mix,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Ns100, Self::Us10, Self::Ms1, Self::Mix];

    /// Of 10 µs or more, and all alike.
    pub const LARGE: [Self; 2] = [Self::Us10, Self::Ms1];

    pub fn name(self) -> &'static str {
        self.settings().0
    }

    /// How many items twolane has under way at most.
    pub fn window(self) -> usize {
        self.settings().1
    }

    /// How many items of this kind a test, a quick, a usual and a full run have.
    pub fn counts(self) -> [u64; 4] {
        self.settings().2
    }

    fn settings(self) -> (&'static str, usize, [u64; 4]) {
        match self {
            Self::Ns100 => ("100 ns", 65_536, [1_000, 200_000, 1_000_000, 1_000_000]),
            Self::Us10 => ("10 µs", 4_096, [200, 5_000, 20_000, 50_000]),
            Self::Ms1 => ("1 ms", 256, [4, 100, 300, 1_000]),
            Self::Mix => ("mix", 4_096, [40, 500, 2_000, 5_000]),
        }
    }

    /// How many jobs the peers that have one for each item have under way: for each core
    /// the best of 2, 8, 32, 128, 512 and 2,048.
    pub fn jobs(self) -> usize {
        cores() * if self == Self::Ns100 { 32 } else { 512 }
    }

    /// How many items a chunk has: about a millisecond of work.
    pub fn chunk(self) -> usize {
        match self {
            Self::Ns100 => 10_000,
            Self::Us10 => 100,
            Self::Ms1 => 1,
            Self::Mix => 10,
        }
    }

    /// The short ones and the long ones.
    fn nanos(self) -> [u64; 2] {
        match self {
            Self::Ns100 => [100; 2],
            Self::Us10 => [10_000; 2],
            Self::Ms1 => [1_000_000; 2],
            Self::Mix => [10_000, 2_000_000],
        }
    }
}

/// The steps of an item of 100 ns and of 10 µs.
#[derive(Clone, Copy)]
pub struct Clock([(u64, u64); 2]);

impl Clock {
    /// From loops over items of that size, and not from one long spin: the start of an
    /// item costs as well, and a core computes the end of one small item and the start of
    /// the next at the same time.
    pub fn calibrated() -> Self {
        Self([100, 10_000].map(|nanos| {
            let mut steps = nanos;
            for _ in 0..5 {
                let scale = nanos as f64 / nanos_of_item(steps);
                steps = (steps as f64 * scale).round() as u64;
            }
            (nanos, steps)
        }))
    }

    /// Longer ones are multiples of the longest of these.
    fn steps(self, nanos: u64) -> u64 {
        let upto = self.0.into_iter().rev().find(|(of, _)| *of <= nanos);
        let (of, steps) = upto.expect("no item is shorter than these");
        steps * nanos / of
    }
}

/// The best of many loops decides: others can only make one slower.
fn nanos_of_item(steps: u64) -> f64 {
    let items = Items {
        short: steps,
        long: steps,
        // Some 100 µs.
        count: 50_000 / steps,
    };
    let timed = |_| {
        let start = Instant::now();
        black_box(items.in_place());
        start.elapsed()
    };
    let best: Duration = (0..300).map(timed).min().unwrap();
    best.as_nanos() as f64 / items.count as f64
}

/// So many items, numbered from 0.
#[derive(Clone, Copy)]
pub struct Items {
    /// Steps of the work.
    pub short: u64,
    pub long: u64,
    pub count: u64,
}

impl Items {
    pub fn new(clock: Clock, kind: Kind, count: u64) -> Self {
        let [short, long] = kind.nanos().map(|nanos| clock.steps(nanos));
        Self { short, long, count }
    }

    /// Returns what tells this item from the others, so that none can be lost or done
    /// twice unnoticed.
    // Not inlined: the same code at the same place for all contenders.
    #[inline(never)]
    pub fn compute(self, item: u64) -> u64 {
        let steps = self.steps(item);
        Work { steps }.run();
        item
    }

    fn steps(self, item: u64) -> u64 {
        if is_long(item) { self.long } else { self.short }
    }

    /// A plain loop.
    pub fn in_place(self) -> u64 {
        (0..self.count).map(|item| self.compute(item)).sum()
    }

    /// # Panics
    /// If `sum` is not that of all items.
    pub fn check(self, sum: u64) {
        let all: u64 = (0..self.count).sum();
        assert_eq!(sum, all, "an item was lost, or done twice");
    }
}

/// One in twenty, pseudo-randomly: splitmix64 of the item's number. The program in Go has the same.
fn is_long(item: u64) -> bool {
    let mut x = item.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)).is_multiple_of(20)
}

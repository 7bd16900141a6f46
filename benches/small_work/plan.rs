//! What is measured, and for how long.

use std::fmt;
use std::time::Duration;

/// What a piece takes on an idle core, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// The one that the report's ratio of latencies is of.
pub const COMPARED: Size = Size(100);

/// Of one way of handling pieces of one size.
#[derive(Clone, Copy)]
pub struct Span {
    /// Threads start and the kernel learns who is interactive. Short: the
    /// lanes of a round are warm from the slice before.
    pub warm_up: Duration,
    pub measured: Duration,
}

pub struct Plan {
    pub sizes: Vec<Size>,
    pub rounds: usize,
    pub slice: Span,
    /// Of the loop without a runtime, which has no latencies to count.
    pub alone: Span,
}

impl Plan {
    pub fn full() -> Self {
        Self {
            sizes: [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000]
                .map(Size)
                .into(),
            rounds: 5,
            slice: Span::of_ms(50, 500),
            alone: Span::of_ms(10, 150),
        }
    }

    pub fn quick() -> Self {
        Self {
            sizes: vec![Size(1), Size(10), COMPARED, Size(1_000)],
            rounds: 1,
            slice: Span::of_ms(30, 150),
            alone: Span::of_ms(10, 50),
        }
    }
}

impl Span {
    const fn of_ms(warm_up: u64, measured: u64) -> Self {
        Self {
            warm_up: Duration::from_millis(warm_up),
            measured: Duration::from_millis(measured),
        }
    }

    pub fn total(self) -> Duration {
        self.warm_up + self.measured
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self.0 {
            us if us < 1_000 => format!("{us} µs"),
            us => format!("{} ms", us / 1_000),
        })
    }
}

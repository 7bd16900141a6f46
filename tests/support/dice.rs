//! Chance that can be had again.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    /// The seed is `TWOLANE_SEED`, or another one each time; it is printed.
    pub(crate) fn from_environment() -> Self {
        Self::of(seed_of_environment())
    }

    pub(crate) fn of(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.0.usize(..all.len())].clone()
    }

    /// Another one, for something that goes on beside this.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }
}

pub(crate) fn seed_of_environment() -> u64 {
    let seed = match std::env::var("TWOLANE_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    eprintln!("TWOLANE_SEED={seed}");
    seed
}

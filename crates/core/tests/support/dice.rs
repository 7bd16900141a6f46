//! Chance that can be had again.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    /// By [`seed_of_environment`].
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

/// The seed of a run: by default it is the same each time, since a check must not refuse a change
/// for what an unlucky seed finds in another place. `TWOLANE_SEED=N` repeats a run,
/// `TWOLANE_SEED=random` draws a new seed. It is printed in any case.
pub(crate) fn seed_of_environment() -> u64 {
    let text = std::env::var_os("TWOLANE_SEED");
    let text = text.as_ref().map(|text| text.to_string_lossy());
    let seed = match text.as_deref() {
        None => 41,
        Some("random") => fastrand::u64(..),
        Some(text) => text.parse().unwrap_or_else(|_| {
            panic!("TWOLANE_SEED is `{text}`: it can be a whole number below 2^64, or `random`")
        }),
    };
    eprintln!("TWOLANE_SEED={seed}");
    seed
}

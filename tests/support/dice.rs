//! Chance that can be had again.

pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    /// The seed is `TWOLANE_SEED`, or another one each time; it is printed.
    pub(crate) fn from_environment() -> Self {
        let seed = match std::env::var("TWOLANE_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => fastrand::u64(..),
        };
        eprintln!("TWOLANE_SEED={seed}");
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }
}

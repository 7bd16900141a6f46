//! Chance that can be had again.

/// xorshift64.
pub(crate) struct Dice(u64);

impl Dice {
    /// The seed is `TWOLANE_SEED`, or another one each time; it is printed.
    pub(crate) fn from_environment() -> Self {
        let seed = match std::env::var("TWOLANE_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => u64::from(std::process::id()) << 20 | 1,
        };
        eprintln!("TWOLANE_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

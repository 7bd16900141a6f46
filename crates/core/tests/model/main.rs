//! Random calls of the public interface against a model of it (`model.rs`): one
//! thread, a limited queue or an unlimited one. After each call
//! the lane is at rest, which is waited for by events, and then all that can be
//! seen of it from outside is what the model says: results, which jobs have
//! ended, which runs, the order of the starts, wake-ups, and each figure of the metrics.
//!
//! `PROPTEST_CASES` sets how many cases there are, `TWOLANE_SEED` which: the same ones each time,
//! or `random` ones.

mod calls;
mod check;
#[path = "../support/dice.rs"]
mod dice;
mod handles;
mod jobs;
mod model;
mod permits;
mod reserving;
mod run;
#[path = "../support/mod.rs"]
mod support;

use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

/// A few seconds in a debug build.
const CASES: u32 = 400;

#[test]
fn whatever_is_called_comes_to_what_the_model_says() {
    let from_environment = std::env::var_os("PROPTEST_CASES").is_some();
    let mut config = Config::default();
    if !from_environment {
        config.cases = CASES;
    }
    config.rng_seed = RngSeed::Fixed(dice::seed_of_environment());
    // What it finds becomes a test of its own, in words.
    config.failure_persistence = None;
    // A hang is the dearest of failures.
    config.max_shrink_time = 120_000;
    let outcome = TestRunner::new(config).run(&calls::cases(), |case| {
        // Each case has its own: there may be very many.
        let _limit = support::time_limit();
        run::run(&case)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nin {case:#?}"),
        Err(other) => panic!("{other}"),
    }
}

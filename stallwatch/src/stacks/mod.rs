//! The stack of a thread that computes: on Linux, with the feature `stacks`.

mod images;
mod sampler;

use std::time::Duration;

use crate::log;
use sampler::{Samples, StackSampler};

/// For how long a thread is sampled.
const TIME: Duration = Duration::from_millis(10);

/// Takes stacks, unless the kernel forbids it.
#[derive(Debug)]
pub(crate) struct Stacks(Option<StackSampler>);

impl Stacks {
    pub(crate) fn new() -> Self {
        let sampler = StackSampler::new().inspect_err(log::warn_of_no_stacks);
        Self(sampler.ok())
    }

    /// Takes 10 ms.
    pub(crate) fn sample(&mut self, thread: Option<u32>) -> Option<Sampled> {
        let thread = i32::try_from(thread?).ok()?;
        let samples = self.0.as_mut()?.sample(thread, TIME).ok().flatten();
        samples.map(Sampled)
    }
}

#[derive(Debug)]
pub(crate) struct Sampled(Samples);

impl Sampled {
    /// Takes from milliseconds to a second: it reads the program's file.
    pub(crate) fn resolve(self) -> Option<String> {
        let stack = self.0.resolve().ok()?;
        Some(stack.to_string()).filter(|stack| !stack.is_empty())
    }
}

//! The stack of a thread that computes: on Linux, with the feature `stall-stacks`.

#[cfg(all(
    feature = "stall-stacks",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod images;
#[cfg(all(
    feature = "stall-stacks",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod sampler;

#[cfg(all(
    feature = "stall-stacks",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod taken {
    use std::time::Duration;

    use super::sampler::{Samples, StackSampler};
    use crate::trace;

    /// For how long a thread is sampled.
    const TIME: Duration = Duration::from_millis(10);

    /// Takes stacks, unless the kernel forbids it.
    #[derive(Debug)]
    pub(crate) struct Stacks(Option<StackSampler>);

    impl Stacks {
        pub(crate) fn new() -> Self {
            let sampler = StackSampler::new().inspect_err(trace::warn_of_no_stacks);
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
}

#[cfg(not(all(
    feature = "stall-stacks",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod taken {
    #[derive(Debug)]
    pub(crate) struct Stacks(());

    impl Stacks {
        pub(crate) fn new() -> Self {
            Self(())
        }

        pub(crate) fn sample(&mut self, _thread: Option<u32>) -> Option<Sampled> {
            None
        }
    }

    /// There are none.
    #[derive(Debug)]
    pub(crate) enum Sampled {}

    impl Sampled {
        pub(crate) fn resolve(self) -> Option<String> {
            match self {}
        }
    }
}

pub(super) use taken::{Sampled, Stacks};

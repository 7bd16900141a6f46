//! The stack of a thread that computes: on Linux, with the feature `stacks`.

mod images;
mod sampler;

use std::io;
use std::sync::Once;
use std::time::Duration;

pub(crate) use sampler::Samples;

/// For how long a thread is sampled.
const TIME: Duration = Duration::from_millis(10);

/// Takes 10 ms.
pub(crate) fn sample(thread: u32) -> Option<Samples> {
    let samples = sampler::sample(thread, TIME);
    samples.unwrap_or_else(|error| {
        warn_once(&error);
        None
    })
}

fn warn_once(_error: &io::Error) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(feature = "tracing")]
        tracing::warn!(
            target: "stallwatch",
            error = %_error,
            "stalls are reported without stacks: the kernel forbids perf_event_open (see \
             kernel.perf_event_paranoid, and the container's seccomp profile)"
        );
    });
}

//! What is asked of the operating system: weights, threads, quotas.

pub(crate) mod cpu_clock;
pub(crate) mod nice;
pub(crate) mod quota;
pub(crate) mod sizing;
pub(crate) mod starter;
pub(crate) mod throttle;

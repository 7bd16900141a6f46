//! What the crate needs from the operating system: nice values, threads and what they do,
//! the cores that they may use, quotas, CPU clocks.

pub(crate) mod cpu_clock;
mod cpu_mask;
pub(crate) mod interrupts;
pub(crate) mod nice;
pub(crate) mod preemption;
pub(crate) mod quota;
pub(crate) mod sizing;
pub(crate) mod starter;
pub(crate) mod surroundings;
pub(crate) mod throttle;

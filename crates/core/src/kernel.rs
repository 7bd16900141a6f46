//! How soon the Linux kernel gives a thread that wakes up a core, and what this process does about
//! it. The guide has the figures: `twolane::guide::kernels`.

pub use crate::os::nice::take_short_slices;
#[doc(hidden)]
pub use crate::os::preemption::pretend;
pub use crate::os::preemption::{Preemption, core_interrupts, preemption};

//! The setting for kernels that preempt lazily.

use std::time::Duration;

use super::Builder;
use crate::build_error::BuildError;

pub(super) const DEFAULT: Duration = Duration::from_micros(300);
/// More often would take more than a tenth of the cores.
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(100);

impl Builder {
    /// Sets how often the lane interrupts its cores while it computes, on a kernel that needs it.
    ///
    /// Linux 7 preempts lazily by default. There a thread of the I/O lane that is woken from
    /// another core waits for a tick, up to 4 ms, while all cores compute
    /// ([`kernel::preemption`](crate::kernel::preemption)). An interrupt ends the wait. So the
    /// lane's control thread calls `membarrier` once in `period`, which interrupts each core that
    /// runs a thread of this process. It needs no privilege, and no job notices it.
    ///
    /// Default: 300 µs. Most woken threads then wait for at most 0.4 ms, and the lane does about 5 %
    /// less work (`twolane::guide::kernels` has the figures). With [`Duration::ZERO`] the lane
    /// neither interrupts nor measures. The setting has no effect on other kernels, and while
    /// the lane does not compute.
    ///
    /// Interrupts begin two periods after the lane begins to compute, up to 0.1 s later if its jobs
    /// have only waited before. Several lanes interrupt each for itself. What libraries spawn with
    /// [`Handle::cpu_runtime`](crate::Handle::cpu_runtime) counts. What
    /// [`Handle::install`](crate::Handle::install), `rayon::spawn` and `spawn_blocking` run does not.
    ///
    /// It is the second-best remedy. The best is the kernel's argument `preempt=full`.
    ///
    /// # Errors
    ///
    /// [`build`](Self::build) fails with a period of less than 50 µs that is not zero, or of more
    /// than 100 ms.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let settings = twolane::CpuRuntime::builder()
    ///     .interrupt_cores_every(Duration::from_micros(500));
    /// ```
    pub fn interrupt_cores_every(mut self, period: Duration) -> Self {
        self.interrupt_every = period;
        self
    }

    pub(super) fn check_interrupts(&self) -> Result<(), BuildError> {
        let asked = self.interrupt_every;
        match asked.is_zero() || (SHORTEST..=LONGEST).contains(&asked) {
            true => Ok(()),
            false => Err(BuildError::new(format!(
                "Builder::interrupt_cores_every({asked:?}): a period is {SHORTEST:?} to \
                 {LONGEST:?}; Duration::ZERO turns the interrupts off"
            ))),
        }
    }
}

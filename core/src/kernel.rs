//! What the Linux kernel does with the threads of both lanes. The guide has the figures:
//! `twolane::guide::kernels`.

use crate::os::preemption;

pub use crate::os::nice::take_short_slices;
pub use crate::os::preemption::Preemption;

/// Returns how soon a thread that wakes up gets a core that another thread computes on.
///
/// Linux before 6.13 and other modes than *lazy* preempt at once. Else the first lane that is
/// saturated has it measured, once per process, by some threads that take 50 to 700 ms. If the
/// kernel is lazy, the lane logs a warning and does what
/// [`Builder::interrupt_cores_every`](crate::Builder::interrupt_cores_every) describes.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::kernel;
/// let _cpu = twolane::CpuRuntime::new().unwrap();
/// if kernel::preemption() == kernel::Preemption::Lazy {
///     println!("boot with preempt=full");
/// }
/// # }
/// ```
pub fn preemption() -> Preemption {
    preemption::known().unwrap_or(Preemption::Unknown)
}

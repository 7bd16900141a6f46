//! A flag for code that takes one: a request that is gone ends a computation in a library.
//!
//! Libraries that compute for long take an `&AtomicBool`, or a closure that asks whether to go on. A job
//! has no such flag of its own: a `checkpoint` is a call, and the library does not call it. Whoever awaits
//! the job sets the flag by a guard, which is dropped with the request. Copy [`run`] and [`SetOnDrop`].
//!
//! It covers an awaiter that is dropped: a client that goes away, a `timeout`, `Task::within`. A shutdown
//! drops no awaiter: the library then runs to its end, and the shutdown waits for it, up to its limit.
//!
//! ```text
//! cargo run --release -p examples --example cancel_flag
//! ```
//!
//! To copy it: `cargo add twolane` and `cargo add tokio -F full`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::timeout;
use twolane::{CpuRuntime, Handle, JoinError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cpu = CpuRuntime::new()?;
    let search = run(cpu.handle(), |stop| {
        // Stands for the library.
        let mut steps = 0_u64;
        while !stop.load(Relaxed) {
            steps += 1;
        }
        println!("ends after {steps} steps");
    });
    assert!(timeout(Duration::from_millis(100), search).await.is_err());
    cpu.shutdown().await;
    Ok(())
}

/// Sets its flag when it is dropped.
pub struct SetOnDrop(pub Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Runs `f` on the lane, with a flag that is set once the future is dropped.
pub async fn run<T: Send + 'static>(
    cpu: &Handle,
    f: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, JoinError> {
    let flag = Arc::new(AtomicBool::new(false));
    let _set = SetOnDrop(flag.clone());
    cpu.spawn_cpu(move || f(&flag)).await
}

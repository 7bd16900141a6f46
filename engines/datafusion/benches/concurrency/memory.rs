//! The memory of a contender: the bounded pool that its queries share, and its process.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};

/// DataFusion's pool, which keeps the most that was reserved at a time.
#[derive(Debug)]
pub struct Pool {
    inner: FairSpillPool,
    most: AtomicUsize,
}

impl Pool {
    pub fn new(bytes: usize) -> Arc<Self> {
        let (inner, most) = (FairSpillPool::new(bytes), AtomicUsize::new(0));
        Arc::new(Self { inner, most })
    }

    /// Queries of it spill to `folder`.
    pub fn environment(self: &Arc<Self>, folder: &Path) -> Result<Arc<RuntimeEnv>> {
        let environment = RuntimeEnvBuilder::new().with_memory_pool(self.clone());
        environment.with_temp_file_path(folder).build_arc()
    }

    pub fn forget_most(&self) {
        self.most.store(0, Relaxed);
    }

    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    fn note(&self) {
        self.most.fetch_max(self.inner.reserved(), Relaxed);
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.inner.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.inner.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.inner.grow(reservation, additional);
        self.note();
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.inner.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.inner.try_grow(reservation, additional)?;
        self.note();
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.inner.memory_limit()
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Has [`most_resident`] count from now on. Without `/proc` there is nothing to do.
pub fn forget_most_resident() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that was resident at a time, in bytes. `None` where there is no `/proc`.
pub fn most_resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

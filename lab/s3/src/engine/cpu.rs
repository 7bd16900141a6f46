//! Where the CPU part of a flush or compaction runs.

#[derive(Clone, Copy, Debug)]
pub enum Cpu {
    /// Where the future is polled.
    Here,
    SpawnBlocking,
}

impl Cpu {
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self {
            Self::Here => work(),
            Self::SpawnBlocking => tokio::task::spawn_blocking(work)
                .await
                .expect("it neither panics nor is cancelled"),
        }
    }
}

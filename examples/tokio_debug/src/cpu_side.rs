//! The CPU side of a contender: where its jobs run.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};

use crate::twolane_side::{TwolaneSide, TwolaneSpawner};

pub type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

pub enum CpuSide {
    /// A second Tokio runtime, as published.
    Tokio(Runtime),
    Twolane(TwolaneSide),
}

#[derive(Clone)]
pub enum Spawner {
    Tokio(Handle),
    Twolane(TwolaneSpawner),
}

impl CpuSide {
    pub fn spawner(&self) -> Spawner {
        match self {
            Self::Tokio(runtime) => Spawner::Tokio(runtime.handle().clone()),
            Self::Twolane(side) => Spawner::Twolane(side.spawner()),
        }
    }

    /// The Tokio runtime that jobs of this side live in, if it is not the I/O side's.
    pub fn own_runtime(&self) -> Option<&Handle> {
        match self {
            Self::Tokio(runtime) => Some(runtime.handle()),
            Self::Twolane(_) => None,
        }
    }

    /// Drops what is not done and waits for the threads.
    pub fn shutdown(self) {
        match self {
            Self::Tokio(runtime) => runtime.shutdown_timeout(Duration::from_secs(5)),
            Self::Twolane(side) => side.shutdown(),
        }
    }
}

impl Spawner {
    pub fn spawn(&self, job: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(handle) => drop(handle.spawn(job)),
            Self::Twolane(spawner) => spawner.spawn(Box::pin(job)),
        }
    }
}

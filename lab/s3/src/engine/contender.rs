//! What makes each contender different: its runtimes, and its store's connector.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use object_store_0_14::ObjectStore;
use object_store_0_14::aws::AmazonS3Builder;
use tokio::runtime::Runtime;
use twolane::io::IoConnector;
use twolane::{CpuRuntime, Niceness, Priority};

use super::client::Connector;
use super::cpu::Cpu;
use super::lsm::Error;
use crate::server::Access;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contender {
    OneRuntime,
    SpawnBlocking,
    TwoRuntimes,
    Spawned,
    Twolane,
}

impl Contender {
    pub const ALL: [Self; 5] = [
        Self::OneRuntime,
        Self::SpawnBlocking,
        Self::TwoRuntimes,
        Self::Spawned,
        Self::Twolane,
    ];

    pub fn is_peer(self) -> bool {
        self != Self::Twolane
    }

    pub fn key(self) -> &'static str {
        match self {
            Self::OneRuntime => "one_runtime",
            Self::SpawnBlocking => "spawn_blocking",
            Self::TwoRuntimes => "two_runtimes",
            Self::Spawned => "spawned_connector",
            Self::Twolane => "twolane",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::OneRuntime => "one runtime for all",
            Self::SpawnBlocking => "one runtime, CPU parts in spawn_blocking",
            Self::TwoRuntimes => "two runtimes, one store",
            Self::Spawned => "two runtimes, requests spawned on the first",
            Self::Twolane => "twolane",
        }
    }
}

/// The runtimes and the store of one contender, new for each slice.
pub struct World {
    pub store: Arc<dyn ObjectStore>,
    pub cpu: Cpu,
    flushes: Lane,
    compactions: Lane,
    // In the order in which they end.
    lane: Option<CpuRuntime>,
    runtimes: Vec<Runtime>,
}

enum Lane {
    Tokio(tokio::runtime::Handle),
    Cpu(twolane::Handle),
}

impl Lane {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(runtime) => drop(runtime.spawn(future)),
            Self::Cpu(handle) => handle.spawn(future).detach(),
        }
    }
}

impl World {
    /// `idle_class` is for twolane's compactions, and needs the feature.
    pub fn new(contender: Contender, access: &Access, idle_class: bool) -> Result<Self, Error> {
        let first = runtime("first")?;
        let on_first = || Lane::Tokio(first.handle().clone());
        let store = store_builder(access);
        let plain = |store: AmazonS3Builder| store.with_http_connector(Connector::default());
        let mut lane = None;
        let mut second = None;
        let mut cpu = Cpu::Here;
        let (store, flushes, compactions) = match contender {
            Contender::OneRuntime => (plain(store), on_first(), on_first()),
            Contender::SpawnBlocking => {
                cpu = Cpu::SpawnBlocking;
                (plain(store), on_first(), on_first())
            }
            Contender::TwoRuntimes | Contender::Spawned => {
                let second = second.insert(runtime("second")?);
                let store = if contender == Contender::Spawned {
                    let spawned_on = Some(first.handle().clone());
                    store.with_http_connector(Connector { spawned_on })
                } else {
                    plain(store)
                };
                (store, on_first(), Lane::Tokio(second.handle().clone()))
            }
            Contender::Twolane => {
                let io = first.handle().clone();
                // A client waits for a flush, and it is short: as urgent as
                // I/O. A compaction can wait for a quiet second.
                let mut niceness = Niceness::default().of(Priority::High, 1);
                if idle_class {
                    niceness = niceness.idle_class_for_low(true);
                }
                let settings = CpuRuntime::builder().niceness(niceness);
                let lane = lane.insert(settings.io_handle(io).build()?);
                let handle = lane.handle().clone();
                let connector = IoConnector::new(Connector::default(), &handle);
                let at = |priority| Lane::Cpu(handle.with_priority(priority));
                (
                    store.with_http_connector(connector),
                    at(Priority::High),
                    at(Priority::Low),
                )
            }
        };
        Ok(Self {
            store: Arc::new(store.build()?),
            cpu,
            flushes,
            compactions,
            lane,
            runtimes: std::iter::once(first).chain(second).collect(),
        })
    }

    pub fn spawn_flush(&self, flush: impl Future<Output = ()> + Send + 'static) {
        self.flushes.spawn(flush);
    }

    pub fn spawn_compaction(&self, compaction: impl Future<Output = ()> + Send + 'static) {
        self.compactions.spawn(compaction);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What is left are connections: all work was awaited.
        drop(self.lane.take());
        for runtime in self.runtimes.drain(..) {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

fn runtime(name: &str) -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name(name)
        .enable_all()
        .build()
}

/// The settings that all contenders' stores have.
pub fn store_builder(access: &Access) -> AmazonS3Builder {
    let known = |(name, value): (String, String)| Some((name.parse().ok()?, value));
    let config = access.config().into_iter().filter_map(known);
    config.fold(AmazonS3Builder::new(), |builder, (key, value)| {
        builder.with_config(key, value)
    })
}

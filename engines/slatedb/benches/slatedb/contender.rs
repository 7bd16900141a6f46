//! How each contender gives slatedb its runtimes.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::client::ReqwestConnector;
use object_store::memory::InMemory;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use twolane::CpuRuntime;
use twolane::io::IoConnector;

use crate::engine::Runtimes;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contender {
    OneRuntime,
    /// A later version of slatedb, which yields.
    OneRuntimeCured,
    TwoRuntimes,
    TwoRuntimesNice16,
    /// All of the database on the second runtime.
    WholeNice16,
    /// The same, with the later version.
    WholeNice16Cured,
    /// As `TwoRuntimes`, with a lane.
    TwolaneCompaction,
    /// As `WholeNice16`, with a lane.
    Twolane,
    /// As `Twolane`, with the later version.
    TwolaneCured,
    /// The same, and the task that takes writes is on the service's runtime.
    TwolaneCuredWrites,
    /// How late timers are without a database.
    Floor,
}

impl Contender {
    /// With the version that yields.
    pub fn is_cured(self) -> bool {
        use Contender::*;
        matches!(
            self,
            OneRuntimeCured | WholeNice16Cured | TwolaneCured | TwolaneCuredWrites
        )
    }

    pub const ALL: [Self; 11] = [
        Self::OneRuntime,
        Self::OneRuntimeCured,
        Self::TwoRuntimes,
        Self::TwoRuntimesNice16,
        Self::WholeNice16,
        Self::WholeNice16Cured,
        Self::TwolaneCompaction,
        Self::Twolane,
        Self::TwolaneCured,
        Self::TwolaneCuredWrites,
        Self::Floor,
    ];

    pub fn key(self) -> &'static str {
        match self {
            Self::OneRuntime => "one_runtime",
            Self::OneRuntimeCured => "one_runtime_cured",
            Self::TwoRuntimes => "two_runtimes",
            Self::TwoRuntimesNice16 => "nice16",
            Self::WholeNice16 => "nice16_whole",
            Self::WholeNice16Cured => "nice16_whole_cured",
            Self::TwolaneCompaction => "twolane_compaction",
            Self::Twolane => "twolane",
            Self::TwolaneCured => "twolane_cured",
            Self::TwolaneCuredWrites => "twolane_cured_writes",
            Self::Floor => "floor",
        }
    }
}

/// The settings of a client of S3, by name; none: a store in memory.
pub type Access = Option<Vec<(String, String)>>;

/// The service's runtime, and what a contender has besides.
pub struct World {
    pub service: Runtime,
    pub runtimes: Runtimes,
    pub store: Arc<dyn ObjectStore>,
    lane: Option<CpuRuntime>,
    second: Option<Runtime>,
}

impl World {
    pub fn new(contender: Contender, access: &Access) -> Result<Self, Box<dyn std::error::Error>> {
        let service = runtime("service", 0)?;
        let own = service.handle().clone();
        let (mut lane, mut second) = (None, None);
        let mut connector = None;
        let mut second_at = |nice| -> std::io::Result<_> {
            let second = second.insert(runtime("second", nice)?);
            Ok(second.handle().clone())
        };
        let mut on_lane = || -> Result<_, Box<dyn std::error::Error>> {
            let builder = CpuRuntime::builder().io_handle(own.clone());
            let lane = lane.insert(builder.build()?);
            let cpu = lane.handle().clone();
            connector = Some(IoConnector::new(ReqwestConnector::default(), &cpu));
            Ok(cpu.tokio_handle()?)
        };
        let (opened_on, compaction) = match contender {
            Contender::OneRuntime | Contender::OneRuntimeCured | Contender::Floor => {
                (own.clone(), own.clone())
            }
            Contender::TwoRuntimes => (own.clone(), second_at(0)?),
            Contender::TwoRuntimesNice16 => (own.clone(), second_at(16)?),
            Contender::WholeNice16 | Contender::WholeNice16Cured => {
                let second = second_at(16)?;
                (second.clone(), second)
            }
            Contender::TwolaneCompaction => (own.clone(), on_lane()?),
            Contender::Twolane | Contender::TwolaneCured | Contender::TwolaneCuredWrites => {
                let lane = on_lane()?;
                (lane.clone(), lane)
            }
        };
        let store: Arc<dyn ObjectStore> = match access {
            None => Arc::new(InMemory::new()),
            Some(access) => {
                let known = access
                    .iter()
                    .filter_map(|(name, value)| Some((name.parse().ok()?, value)));
                let mut s3 = known.fold(AmazonS3Builder::new(), |s3, (name, value)| {
                    s3.with_config(name, value)
                });
                if let Some(connector) = connector {
                    s3 = s3.with_http_connector(connector);
                }
                Arc::new(s3.build()?)
            }
        };
        let writes = match contender {
            Contender::TwolaneCuredWrites => own,
            _ => opened_on.clone(),
        };
        let runtimes = Runtimes {
            opened_on,
            writes,
            compaction,
        };
        Ok(Self {
            service,
            runtimes,
            store,
            lane,
            second,
        })
    }

    pub fn end(self) {
        drop(self.lane);
        for runtime in [self.second, Some(self.service)].into_iter().flatten() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

fn runtime(name: &str, nice: i32) -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name(name)
        .on_thread_start(move || {
            if nice > 0 {
                rustix::process::nice(nice).expect("a higher nice value is always allowed");
            }
        })
        .enable_all()
        .build()
}

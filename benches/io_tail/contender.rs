//! The contenders, and where the jobs of each run.

use tokio::runtime::Handle;
use twolane::{Backend, Builder, CpuRuntime, Priority};

use crate::slice::Settings;
use crate::tail::lanes::Lane;

/// Jobs in flight for each core: enough that no thread waits for the feeder,
/// and the many that a service under load has in its blocking pool.
const FEW: usize = 4;
const MANY: usize = 32;

/// A piece between two yields takes a millisecond.
const PIECES: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contender {
    Idle,
    Awake,
    SameRuntime,
    SameRuntimeYielding,
    SpawnBlockingFew,
    SpawnBlockingMany,
    SecondRuntime,
    Rayon,
    SecondRuntimeMinusOne,
    TwolaneUnweighted,
    TwolaneRayon,
    TwolaneRuntime,
}

use Contender::*;

impl Contender {
    pub const ALL: [Self; 12] = [
        Idle,
        Awake,
        SameRuntime,
        SameRuntimeYielding,
        SpawnBlockingFew,
        SpawnBlockingMany,
        SecondRuntime,
        Rayon,
        SecondRuntimeMinusOne,
        TwolaneUnweighted,
        TwolaneRayon,
        TwolaneRuntime,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Idle => "idle",
            Awake => "awake",
            SameRuntime => "same_runtime",
            SameRuntimeYielding => "same_runtime_yield",
            SpawnBlockingFew => "spawn_blocking_4",
            SpawnBlockingMany => "spawn_blocking_32",
            SecondRuntime => "second_runtime",
            Rayon => "rayon",
            SecondRuntimeMinusOne => "second_runtime_minus_one",
            TwolaneUnweighted => "twolane_unweighted",
            TwolaneRayon => "twolane_rayon",
            TwolaneRuntime => "twolane_runtime",
        }
    }

    pub fn title(self, cores: usize) -> String {
        match self {
            Idle => "idle machine".to_owned(),
            Awake => "idle machine, kept awake".to_owned(),
            SameRuntime => "same runtime".to_owned(),
            SameRuntimeYielding => "same runtime, yields each ms".to_owned(),
            SpawnBlockingFew => format!("spawn_blocking, {} in flight", FEW * cores),
            SpawnBlockingMany => format!("spawn_blocking, {} in flight", MANY * cores),
            SecondRuntime => format!("second runtime, {cores} workers"),
            Rayon => format!("rayon pool, {cores} threads"),
            SecondRuntimeMinusOne => match cores.saturating_sub(1).max(1) {
                1 => "second runtime, 1 worker".to_owned(),
                workers => format!("second runtime, {workers} workers"),
            },
            TwolaneUnweighted => "twolane, weights off".to_owned(),
            TwolaneRayon => "twolane, Rayon".to_owned(),
            TwolaneRuntime => "twolane, Runtime".to_owned(),
        }
    }

    /// Where the jobs run; `None` for those that have no jobs.
    pub fn lane(self, io: &Handle, settings: &Settings) -> Option<Lane> {
        let cores = settings.cores;
        let few = FEW * cores;
        let twolane = |settings| Lane::twolane(io, settings, few);
        Some(match self {
            Idle | Awake => return None,
            SameRuntime => Lane::same_runtime(io, few),
            SameRuntimeYielding => Lane::same_runtime_yielding(io, few, PIECES),
            SpawnBlockingFew => Lane::spawn_blocking(io, few),
            SpawnBlockingMany => Lane::spawn_blocking(io, MANY * cores),
            SecondRuntime => Lane::second_runtime(cores, few),
            Rayon => Lane::rayon(cores, few),
            SecondRuntimeMinusOne => {
                let workers = cores.saturating_sub(1).max(1);
                Lane::second_runtime(workers, few)
            }
            TwolaneUnweighted => twolane(CpuRuntime::builder().without_nice()),
            TwolaneRayon => twolane(weighted(Backend::Rayon, settings)),
            TwolaneRuntime => twolane(weighted(Backend::Runtime, settings)),
        })
    }
}

/// The defaults, but for a weight that was asked for.
fn weighted(backend: Backend, settings: &Settings) -> Builder {
    let builder = CpuRuntime::builder().backend(backend);
    match settings.nice {
        // High may not be weaker; nothing runs there.
        Some(nice) => builder.nice(Priority::High, 0).nice(Priority::Normal, nice),
        None => builder,
    }
}

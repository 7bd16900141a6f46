//! The contenders, and where the jobs of each run. Called inside the quota.

use std::thread::available_parallelism;

use tokio::runtime::Handle;
use twolane::CpuRuntime;

use crate::tail::lanes::Lane;

/// Jobs in flight for each core of the machine, as in `io_tail`.
const IN_FLIGHT: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contender {
    IoAlone,
    SecondRuntimeCores,
    SecondRuntimeAvailable,
    TwolaneCoresUnpaced,
    TwolaneUnpaced,
    Twolane,
}

use Contender::*;

impl Contender {
    pub const ALL: [Self; 6] = [
        IoAlone,
        SecondRuntimeCores,
        SecondRuntimeAvailable,
        TwolaneCoresUnpaced,
        TwolaneUnpaced,
        Twolane,
    ];

    pub fn name(self) -> &'static str {
        match self {
            IoAlone => "io_alone",
            SecondRuntimeCores => "second_runtime_cores",
            SecondRuntimeAvailable => "second_runtime_available",
            TwolaneCoresUnpaced => "twolane_cores_unpaced",
            TwolaneUnpaced => "twolane_unpaced",
            Twolane => "twolane",
        }
    }

    pub fn title(self, cores: usize) -> String {
        match self {
            IoAlone => "I/O alone".to_owned(),
            SecondRuntimeCores => format!("second runtime, {cores} workers"),
            SecondRuntimeAvailable => "second runtime, available".to_owned(),
            TwolaneCoresUnpaced => format!("twolane, unpaced, {cores} threads"),
            TwolaneUnpaced => "twolane, unpaced".to_owned(),
            Twolane => "twolane".to_owned(),
        }
    }

    /// Where the jobs run; `None` for the one that has no jobs. `cores` are
    /// the machine's.
    pub fn lane(self, io: &Handle, cores: usize) -> Option<Lane> {
        let jobs = IN_FLIGHT * cores;
        let twolane = |settings| Lane::twolane(io, settings, jobs);
        let settings = CpuRuntime::builder();
        Some(match self {
            IoAlone => return None,
            SecondRuntimeCores => Lane::second_runtime(cores, jobs),
            SecondRuntimeAvailable => {
                let available = available_parallelism().map_or(1, usize::from);
                Lane::second_runtime(available, jobs)
            }
            TwolaneCoresUnpaced => twolane(settings.threads(cores).throttle_to_quota(false)),
            TwolaneUnpaced => twolane(settings.throttle_to_quota(false)),
            Twolane => twolane(settings),
        })
    }
}

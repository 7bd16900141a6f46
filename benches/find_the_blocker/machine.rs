//! What the machine does beside the service.

use std::time::Duration;

use twolane_benches::cgroup::Cgroup;
use twolane_benches::child::{self, Killed};
use twolane_benches::{BoxError, cores, not_here};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    Quiet,
    /// As many other processes compute as it has cores.
    Full,
    /// This process is in a cgroup that may use half a core.
    Throttled,
}

impl Machine {
    pub const ALL: [Self; 3] = [Self::Quiet, Self::Full, Self::Throttled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet machine",
            Self::Full => "full machine",
            Self::Throttled => "throttled cgroup",
        }
    }
}

/// It is in that state until this is dropped.
pub enum State {
    Quiet,
    Full { _hogs: Vec<Killed> },
    Throttled(Group),
}

impl State {
    /// An error: no cgroup can be made here, or entered.
    pub fn begin(machine: Machine) -> Result<Self, BoxError> {
        Ok(match machine {
            Machine::Quiet => Self::Quiet,
            Machine::Full => Self::Full {
                _hogs: (0..cores()).map(|_| hog()).collect(),
            },
            Machine::Throttled => Self::Throttled(Group::enter()?),
        })
    }

    /// How often the kernel has stopped the process so far.
    pub fn times_throttled(&self) -> Option<u64> {
        match self {
            Self::Throttled(group) => Some(group.0.throttling().throttled),
            _ => None,
        }
    }
}

fn hog() -> Killed {
    Killed(child::command(&HOG).spawn().expect("a process"))
}

/// The role of a process that computes, one for each core.
pub const HOG: &str = "hog";

/// A cgroup in which this process is.
pub struct Group(Cgroup);

const PERIOD: Duration = Duration::from_millis(100);

impl Group {
    fn enter() -> Result<Self, BoxError> {
        let cgroup =
            Cgroup::create(0.5, PERIOD).map_err(|why| not_here("cgroup of its own", why))?;
        cgroup.admit(std::process::id())?;
        Ok(Self(cgroup))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = self.0.dismiss(std::process::id()) {
            eprintln!("{error}");
        }
    }
}

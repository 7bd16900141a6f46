//! What the machine does beside the service.

use std::process::{Child, Command};
use std::time::Duration;

use twolane_benches::cgroup::Cgroup;
use twolane_benches::{child, cores};

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
    Full { _hogs: Hogs },
    Throttled(Group),
}

impl State {
    /// An error: no cgroup can be made here.
    pub fn begin(machine: Machine) -> Result<Self, String> {
        Ok(match machine {
            Machine::Quiet => Self::Quiet,
            Machine::Full => Self::Full {
                _hogs: Hogs((0..cores()).map(|_| hog().spawn().unwrap()).collect()),
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

/// Processes that compute, one for each core.
pub struct Hogs(Vec<Child>);

/// The role of one of them.
pub const HOG: &str = "hog";

fn hog() -> Command {
    child::command(&HOG)
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            // An error means that it has ended.
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// A cgroup in which this process is.
pub struct Group(Cgroup);

const PERIOD: Duration = Duration::from_millis(100);

impl Group {
    fn enter() -> Result<Self, String> {
        let cgroup = Cgroup::create(PERIOD / 2, PERIOD)?;
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

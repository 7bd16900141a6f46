//! What the machine does beside the service.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{fs, io};

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
    pub fn begin(machine: Machine) -> io::Result<Self> {
        Ok(match machine {
            Machine::Quiet => Self::Quiet,
            Machine::Full => Self::Full {
                _hogs: Hogs::start(),
            },
            Machine::Throttled => Self::Throttled(Group::enter()?),
        })
    }

    /// How often the kernel has stopped the process so far.
    pub fn times_throttled(&self) -> Option<u64> {
        match self {
            Self::Throttled(group) => group.times_throttled(),
            _ => None,
        }
    }
}

/// Processes that compute, one for each core.
pub struct Hogs(Vec<Child>);

impl Hogs {
    fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let program = std::env::current_exe().expect("a program has a path");
        let hog = |_| Command::new(&program).arg("--hog").spawn();
        Self(
            (0..cores)
                .map(hog)
                .map(|hog| hog.expect("a process"))
                .collect(),
        )
    }
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

/// A cgroup of version 1 or 2, in which this process is.
pub struct Group {
    path: PathBuf,
    /// Where the process came from.
    before: PathBuf,
}

const PERIOD_MICROS: u32 = 100_000;
const QUOTA_MICROS: u32 = PERIOD_MICROS / 2;

impl Group {
    fn enter() -> io::Result<Self> {
        let name = format!("find_the_blocker-{}", std::process::id());
        let second = Path::new("/sys/fs/cgroup");
        let first = second.join("cpu");
        let is_first = first.exists();
        let root = if is_first { &*first } else { second };
        let group = Self {
            path: root.join(name),
            before: root.join(own_path(is_first)?),
        };
        fs::create_dir(&group.path)?;
        // From here on an error drops `group`, which removes it.
        if is_first {
            group.set("cpu.cfs_period_us", PERIOD_MICROS)?;
            group.set("cpu.cfs_quota_us", QUOTA_MICROS)?;
        } else {
            // An error means that it is on, or shows below.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
            group.set("cpu.max", format!("{QUOTA_MICROS} {PERIOD_MICROS}"))?;
        }
        group.set("cgroup.procs", std::process::id())?;
        Ok(group)
    }

    fn set(&self, file: &str, value: impl ToString) -> io::Result<()> {
        fs::write(self.path.join(file), value.to_string())
    }

    fn times_throttled(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.path.join("cpu.stat")).ok()?;
        let mut times = stat
            .lines()
            .filter_map(|line| line.strip_prefix("nr_throttled "));
        times.next()?.parse().ok()
    }
}

/// Relative to the root of the cgroups.
fn own_path(is_first: bool) -> io::Result<String> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    // `4:cpu,cpuacct:/path`, or `0::/path`.
    let path = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_own = match is_first {
            true => controllers.split(',').any(|controller| controller == "cpu"),
            false => controllers.is_empty(),
        };
        is_own.then(|| path.trim_start_matches('/').to_owned())
    });
    path.ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Drop for Group {
    fn drop(&mut self) {
        let back = fs::write(
            self.before.join("cgroup.procs"),
            std::process::id().to_string(),
        );
        if let Err(error) = back.and_then(|()| fs::remove_dir(&self.path)) {
            eprintln!("{} is left behind: {error}", self.path.display());
        }
    }
}

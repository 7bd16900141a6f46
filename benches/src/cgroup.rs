//! A cgroup of our own with a CPU quota, below the one that we are in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PREFIX: &str = "twolane-bench-";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Removed when dropped: what is in it must have ended.
pub struct Cgroup {
    folder: PathBuf,
    version: Version,
}

/// What the kernel counted since the group was made.
#[derive(Clone, Copy, Debug)]
pub struct Throttling {
    /// Periods in which something ran.
    pub periods: u64,
    /// Those of them in which the quota was used up.
    pub throttled: u64,
    /// For how long its threads stood still, added up over the cores.
    pub time: Duration,
}

impl Cgroup {
    /// An error says why there can be none.
    pub fn create(cores: f64, period: Duration) -> Result<Self, String> {
        let (parent, version) = own()?;
        remove_stale(&parent);
        if version == Version::V2 {
            enable_cpu(&parent)?;
        }
        let name = format!("{PREFIX}{}-{cores}", std::process::id());
        let folder = parent.join(name);
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let made = Self { folder, version };
        let (quota, period) = (period.mul_f64(cores).as_micros(), period.as_micros());
        match version {
            Version::V1 => {
                made.write("cpu.cfs_period_us", &period.to_string())?;
                made.write("cpu.cfs_quota_us", &quota.to_string())?;
            }
            Version::V2 => made.write("cpu.max", &format!("{quota} {period}"))?,
        }
        Ok(made)
    }

    /// Moves a process into it.
    pub fn admit(&self, pid: u32) -> Result<(), String> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Moves one back to where the group is.
    pub fn dismiss(&self, pid: u32) -> Result<(), String> {
        self.write("../cgroup.procs", &pid.to_string())
    }

    pub fn throttling(&self) -> Throttling {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).unwrap();
        let field = |name: &str| -> u64 {
            let value = stat
                .lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            value.unwrap_or_else(|| panic!("cpu.stat has no `{name}`"))
        };
        Throttling {
            periods: field("nr_periods "),
            throttled: field("nr_throttled "),
            time: match self.version {
                Version::V1 => Duration::from_nanos(field("throttled_time ")),
                Version::V2 => Duration::from_micros(field("throttled_usec ")),
            },
        }
    }

    fn write(&self, file: &str, value: &str) -> Result<(), String> {
        let file = self.folder.join(file);
        fs::write(&file, value).map_err(|e| format!("{}: {e}", file.display()))
    }
}

impl Throttling {
    pub fn since(self, before: Self) -> Self {
        Self {
            periods: self.periods - before.periods,
            throttled: self.throttled - before.throttled,
            time: self.time - before.time,
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that was killed may be in it for another moment.
        let start = Instant::now();
        while let Err(error) = fs::remove_dir(&self.folder) {
            if start.elapsed() > Duration::from_secs(5) {
                eprintln!("{} is left behind: {error}", self.folder.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The folder of the cgroup that this process is in, in the hierarchy that has the cpu controller.
fn own() -> Result<(PathBuf, Version), String> {
    let read = |file: &str| fs::read_to_string(file).map_err(|e| format!("{file}: {e}"));
    let memberships = read("/proc/self/cgroup")?;
    let mounts = read("/proc/self/mountinfo")?;
    // "ID:CONTROLLERS:PATH"; that of v2 has no controllers.
    let path_where = |is_it: &dyn Fn(&str) -> bool| {
        memberships.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            is_it(controllers).then_some(path)
        })
    };
    let has_cpu = |list: &str| list.split(',').any(|name| name == "cpu");
    let (path, version) = match path_where(&has_cpu) {
        Some(path) => (path, Version::V1),
        None => {
            let path = path_where(&|controllers| controllers.is_empty());
            (path.ok_or("there are no cgroups here")?, Version::V2)
        }
    };
    // "... ROOT MOUNT_POINT ... - TYPE SOURCE OPTIONS"
    mounts
        .lines()
        .find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut after = after.split(' ');
            let (kind, _, options) = (after.next()?, after.next()?, after.next()?);
            let is_it = match version {
                Version::V1 => kind == "cgroup" && has_cpu(options),
                Version::V2 => kind == "cgroup2",
            };
            let mut before = before.split(' ').skip(3).filter(|_| is_it);
            let (root, mount_point) = (before.next()?, before.next()?);
            // A container may see the host's path, and a part of it mounted.
            let below = path.strip_prefix(root).unwrap_or(path);
            let folder = Path::new(mount_point).join(below.trim_start_matches('/'));
            folder.is_dir().then_some((folder, version))
        })
        .ok_or_else(|| format!("the cpu cgroup {path} is not mounted"))
}

/// In v2 a group's children have a controller only if it says so, and it may
/// say so only if no process is in it (the root excepted).
fn enable_cpu(parent: &Path) -> Result<(), String> {
    let file = parent.join("cgroup.subtree_control");
    let why = |e: io::Error| format!("no cpu controller for children, {}: {e}", file.display());
    let enabled = fs::read_to_string(&file).map_err(why)?;
    if enabled.split_whitespace().any(|name| name == "cpu") {
        return Ok(());
    }
    fs::write(&file, "+cpu").map_err(why)
}

/// Those of runs that were killed. One that is in use can't be removed.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

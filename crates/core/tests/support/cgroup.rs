//! A real control group to put a child process into, of version 1 or 2.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{fs, io};

use super::must_run;

const TOP: &str = "/sys/fs/cgroup";
/// Tells a child the path of its group.
const GROUP: &str = "TWOLANE_TEST_GROUP";

/// Its folder is removed with it, once no process is in it.
pub struct Group {
    folder: PathBuf,
    is_own: bool,
}

impl Group {
    /// One with this controller: `cpu`, or `pids`. `None`, and told, where the machine gives none.
    pub fn new(controller: &str) -> Option<Self> {
        Self::make(controller)
            .inspect_err(|error| must_run::not_run("cgroup", error))
            .ok()
    }

    fn make(controller: &str) -> io::Result<Self> {
        static GROUPS: AtomicUsize = AtomicUsize::new(0);
        let number = GROUPS.fetch_add(1, Relaxed);
        let name = format!("twolane-test-{}-{number}", std::process::id());
        let at = |what: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", what.display()))
        };
        let folder = parent(controller)
            .map_err(|error| at(Path::new(TOP), error))?
            .join(name);
        fs::create_dir(&folder).map_err(|error| at(&folder, error))?;
        let is_own = true;
        Ok(Self { folder, is_own })
    }

    /// In a child: the one whose path its parent has given it.
    pub fn of_child() -> Self {
        let folder = std::env::var_os(GROUP).unwrap().into();
        let is_own = false;
        Self { folder, is_own }
    }

    pub fn name_to(&self, child: &mut Command) {
        child.env(GROUP, &self.folder);
    }

    pub fn add(&self, process: u32) {
        self.write("cgroup.procs", process).unwrap();
    }

    /// So many cores. An error: the group above has less.
    pub fn limit_cores(&self, cores: Option<f64>) -> io::Result<()> {
        const PERIOD: f64 = 1e5;
        let micros = cores.map(|cores| (cores * PERIOD).round());
        if self.is_version_2() {
            let quota = micros.map_or("max".to_owned(), |micros| micros.to_string());
            return self.write("cpu.max", format!("{quota} {PERIOD}"));
        }
        self.write("cpu.cfs_period_us", PERIOD)?;
        self.write("cpu.cfs_quota_us", micros.unwrap_or(-1.0))
    }

    pub fn limit_threads(&self, threads: impl ToString) {
        self.write("pids.max", threads).unwrap();
    }

    fn is_version_2(&self) -> bool {
        self.folder.join("cgroup.controllers").exists()
    }

    fn write(&self, file: &str, value: impl ToString) -> io::Result<()> {
        fs::write(self.folder.join(file), value.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_own {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// The folder below which a group with this controller can be made.
fn parent(controller: &str) -> io::Result<PathBuf> {
    let version_1 = Path::new(TOP).join(controller);
    if version_1.join("cgroup.procs").exists() {
        return Ok(version_1);
    }
    let both = [Path::new(TOP).join("unified"), TOP.into()];
    let [hybrid, only] = both;
    let top = match hybrid.exists() {
        true => hybrid,
        false => only,
    };
    let controllers = fs::read_to_string(top.join("cgroup.controllers"))?;
    if !controllers.split_whitespace().any(|it| it == controller) {
        return Err(io::Error::other(format!("no controller {controller}")));
    }
    // In a container this is the container's own group, whose processes may forbid it.
    fs::write(top.join("cgroup.subtree_control"), format!("+{controller}"))?;
    Ok(top)
}

//! A real control group to put a child process into.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Removed with its last user, once no process is in it.
pub struct Group(PathBuf);

impl Group {
    /// Of version 1, with this controller; `None` where this user may make
    /// none.
    pub fn new(controller: &str) -> Option<Self> {
        static GROUPS: AtomicUsize = AtomicUsize::new(0);
        let number = GROUPS.fetch_add(1, Relaxed);
        let name = format!("twolane-test-{}-{number}", std::process::id());
        let group = Path::new("/sys/fs/cgroup").join(controller).join(name);
        match fs::create_dir(&group) {
            Ok(()) => Some(Self(group)),
            Err(error) => {
                eprintln!("skipped: no control group can be made here ({error})");
                None
            }
        }
    }

    /// One that another process has made.
    pub fn at(path: impl Into<PathBuf>) -> std::mem::ManuallyDrop<Self> {
        std::mem::ManuallyDrop::new(Self(path.into()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn set(&self, file: &str, value: impl ToString) {
        fs::write(self.0.join(file), value.to_string()).unwrap();
    }

    pub fn add(&self, process: u32) {
        self.set("cgroup.procs", process);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

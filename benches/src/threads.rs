//! The threads of this process: what a contender leaves behind would compute
//! during the next one's turn.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// twolane's threads that are the process's and not a lane's.
const STAY: [&str; 4] = [
    "giveway-starter",
    "twolane-ticker",
    "giveway-ticker",
    "giveway-tick",
];
const PATIENCE: Duration = Duration::from_secs(20);

/// The threads at one moment, id and name.
pub struct Threads(BTreeMap<String, String>);

impl Threads {
    /// Empty where there is no such list; then nothing is waited for.
    pub fn now() -> Self {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        let ids = tasks.filter_map(|task| task.ok()?.file_name().into_string().ok());
        let named = ids.filter_map(|id| {
            let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?;
            Some((id, name.trim_end().to_owned()))
        });
        Self(named.collect())
    }

    /// Waits until there are none but these.
    ///
    /// # Panics
    /// If some stay.
    pub fn wait_for_others_to_end(&self) {
        let start = Instant::now();
        loop {
            let mut now = Self::now().0;
            now.retain(|id, name| !self.0.contains_key(id) && !STAY.contains(&name.as_str()));
            if now.is_empty() {
                return;
            }
            let left: Vec<_> = now.values().collect();
            assert!(start.elapsed() < PATIENCE, "threads left behind: {left:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

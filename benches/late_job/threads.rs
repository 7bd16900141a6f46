//! The threads of this process: those that a contender leaves behind would
//! compute during the next one's turn.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// twolane's one thread that is the process's and not a lane's.
const STAYS: &str = "twolane-ticker";

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

    /// Until there are none but these; says so if that takes too long.
    pub fn wait_for_others_to_end(&self) {
        let patience = Instant::now() + Duration::from_secs(5);
        loop {
            let mut now = Self::now().0;
            now.retain(|id, name| !self.0.contains_key(id) && name != STAYS);
            if now.is_empty() {
                return;
            }
            if Instant::now() > patience {
                eprintln!("late_job: threads left behind: {:?}", now.values());
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

//! In which ways this process, or its kernel, treats threads otherwise than weights expect. Refused
//! nice values are found later.

use std::fs;
use std::sync::OnceLock;

use crate::log;
use crate::platform;

static FOUND: OnceLock<Vec<String>> = OnceLock::new();

/// Returns in which ways this process, or its kernel, treats threads otherwise than a
/// [`Weight`](crate::Weight) expects. Empty before [`start`](crate::start), which logs each once.
///
/// The process was started niced; a thread of another scheduling policy made the first call; a
/// `sched_ext` scheduler runs.
///
/// # Examples
///
/// ```
/// giveway::start().unwrap();
/// giveway::surroundings().iter().for_each(|found| eprintln!("{found}"));
/// ```
pub fn surroundings() -> &'static [String] {
    FOUND.get().map_or(&[], |found| found)
}

/// `base_nice`: what the process was started with.
pub(crate) fn detect(base_nice: i32) {
    if FOUND.get().is_some() {
        return;
    }
    let extension = extension(fs::read_to_string("/sys/kernel/sched_ext/state").ok());
    let found = [started_niced(base_nice), policy(), extension];
    // A subscriber may call this crate, so not inside.
    if FOUND.set(found.into_iter().flatten().collect()).is_ok() {
        surroundings().iter().for_each(|text| log::warn(text));
    }
}

fn started_niced(base_nice: i32) -> Option<String> {
    (base_nice > 0).then(|| {
        format!(
            "the process was started at nice {base_nice}, and 19 is the highest: weights \
             differ by less, and threads keep the kernel's slices; start it at nice 0"
        )
    })
}

/// Of the thread that makes the first call: its threads inherit it (`starter.rs`).
fn policy() -> Option<String> {
    platform::odd_policy().map(|policy| {
        format!(
            "the thread that starts the others has the scheduling policy {policy}, which they \
             inherit: nice values mean less there, or nothing; start them with SCHED_OTHER"
        )
    })
}

/// `state`: the file of that name of `sched_ext`.
fn extension(state: Option<String>) -> Option<String> {
    let text = "a sched_ext scheduler may decide which thread gets a core, and need not heed nice \
                values";
    (state?.trim() == "enabled").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_by_its_value() {
        assert_eq!(started_niced(0), None);
        assert_eq!(started_niced(-5), None);
        assert!(started_niced(11).unwrap().contains("nice 11"));
        let state = |text: &str| extension(Some(text.to_owned()));
        assert_eq!((extension(None), state("disabled\n")), (None, None));
        assert!(state("enabled\n").unwrap().contains("sched_ext"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_policy_that_is_not_the_usual_one_is_told() {
        use thread_priority::NormalThreadSchedulePolicy::Batch;
        use thread_priority::{
            ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
        };

        std::thread::spawn(|| {
            assert_eq!(policy(), None);
            let batch = ThreadSchedulePolicy::Normal(Batch);
            // It reports an error though it has done so: the priority is none of that policy's.
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, batch);
            assert!(policy().unwrap().contains("Batch"), "{:?}", policy());
        })
        .join()
        .unwrap();
    }
}

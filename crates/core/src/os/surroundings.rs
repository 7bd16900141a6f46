//! In which ways this process, or its kernel, treats threads otherwise than the lanes expect.
//!
//! Found when the first lane is built. Each is logged once per process, and stands in the `Debug`
//! output of a handle. Refused nice values are found later, and lazy preemption as well
//! (`preemption/`).

use std::fs;
use std::sync::OnceLock;

use super::platform;
use crate::trace;

static FOUND: OnceLock<Vec<String>> = OnceLock::new();

/// What is known. Empty before the first lane is built.
pub(crate) fn known() -> &'static [String] {
    FOUND.get().map_or(&[], |found| found)
}

/// `base_nice`: what the process was started with.
pub(super) fn look(base_nice: i32) {
    if FOUND.get().is_some() {
        return;
    }
    let extension = extension(fs::read_to_string("/sys/kernel/sched_ext/state").ok());
    let found = [started_niced(base_nice), policy(), extension];
    // A subscriber may build a lane, so not inside.
    if FOUND.set(found.into_iter().flatten().collect()).is_ok() {
        known().iter().for_each(|text| trace::warn(text));
    }
}

fn started_niced(base_nice: i32) -> Option<String> {
    (base_nice > 0).then(|| {
        format!(
            "the process was started at nice {base_nice}, and 19 is the highest: the priorities \
             differ by less, and threads keep the kernel's slices; start it at nice 0"
        )
    })
}

/// Of the thread that builds the first lane: its threads inherit it, and so do those of the lanes
/// that are built on such threads later (`starter.rs`).
fn policy() -> Option<String> {
    platform::odd_policy().map(|policy| {
        format!(
            "the thread that builds the lane has the scheduling policy {policy}, which the lane's \
             threads inherit: nice values mean less there, or nothing; build it with SCHED_OTHER"
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

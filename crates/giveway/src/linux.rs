//! What the crate asks of Linux for a thread or the process. `elsewhere.rs` has the same functions,
//! which do nothing.

use std::time::Duration;
use std::{fs, io};

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use thread_priority::{
    DeadlineFlags, NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};

/// The CPU time of all threads of this process, including threads that have ended.
pub(crate) fn cpu_of_process() -> Option<Duration> {
    clock_gettime(ClockId::ProcessCPUTime).try_into().ok()
}

/// The CPU time of this thread.
pub(crate) fn cpu_of_thread() -> Option<Duration> {
    clock_gettime(ClockId::ThreadCPUTime).try_into().ok()
}

/// The cores that this thread may run on, whatever the quota. Empty if they are not known.
pub(crate) fn own_cores() -> Vec<usize> {
    let mask = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU)
        .filter(|core| mask.is_set(*core))
        .collect()
}

pub(crate) fn bind_to(core: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}

/// The same of the process: of all its threads together, since each may be bound to one core.
pub(crate) fn cores() -> Option<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let threads =
        tasks.filter_map(|task| Pid::from_raw(task.ok()?.file_name().to_str()?.parse().ok()?));
    // An error: the thread has ended.
    let masks = threads.filter_map(|thread| sched_getaffinity(Some(thread)).ok());
    let mut masks = Vec::from_iter(masks);
    // Mostly all are equal.
    masks.dedup();
    let is_for_any = |core: &usize| masks.iter().any(|mask| mask.is_set(*core));
    u32::try_from((0..CpuSet::MAX_CPU).filter(is_for_any).count()).ok()
}

/// The core on which this thread runs.
#[inline]
pub(crate) fn core() -> usize {
    sched_getcpu()
}

/// Moves this thread off these cores, and returns where it is then. It has the mask of before as its
/// own then: it does not follow a cgroup that gets more cores. An error if it may run on no other.
pub(crate) fn leave_cores(are_taken: impl Fn(&usize) -> bool) -> io::Result<usize> {
    let mask = sched_getaffinity(None)?;
    let (mut others, cores) = (mask, 0..CpuSet::MAX_CPU);
    cores.filter(are_taken).for_each(|core| others.unset(core));
    let has_any = others != CpuSet::new();
    has_any.then_some(()).ok_or(io::ErrorKind::NotFound)?;
    sched_setaffinity(None, &others)?;
    let core = sched_getcpu();
    sched_setaffinity(None, &mask)?;
    Ok(core)
}

/// Returns `main` for a thread that has the CPU mask of this one, whichever thread spawns it: a new
/// thread inherits the cores of the thread that spawns it. Does nothing about it on machines with
/// more than 1,024 cores.
pub(crate) fn hand_down_cores(main: impl FnOnce() + Send) -> impl FnOnce() + Send {
    let mask = sched_getaffinity(None).ok();
    move || {
        // Not if they are equal: a thread that has set its mask keeps it when its cgroup gets
        // more cores.
        if let Some(mask) = mask.filter(|mask| sched_getaffinity(None) != Ok(*mask)) {
            // An error means that the cgroup has lost those cores.
            let _ = sched_setaffinity(None, &mask);
        }
        main();
    }
}

/// The nice value of this thread.
pub(crate) fn nice() -> i32 {
    // Linux applies this call to the calling thread, not to its process.
    getpriority_process(None).unwrap_or(0)
}

pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    Ok(setpriority_process(None, nice)?)
}

/// The release of the kernel: (6, 12) of 6.12.
pub(crate) fn release() -> (u32, u32) {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_str().unwrap_or_default();
    let numbers = release.split(['.', '-', '+']);
    let mut numbers = numbers.map_while(|it| it.parse().ok());
    let is_known = numbers.next().zip(numbers.next());
    is_known.filter(|_| !cfg!(miri)).unwrap_or_default()
}

/// Asks for slices of this length. Without effect before Linux 6.12, in silence; refused in a process
/// that was started niced, without privileges.
pub(crate) fn set_slice(slice: Duration) -> io::Result<()> {
    /// `SCHED_FLAG_KEEP_POLICY`: the kernel takes the attributes and not the policy.
    const KEEP_POLICY: u64 = 8;
    const THIS_THREAD: thread_priority::ThreadId = 0;
    // The one policy for which thread-priority passes a run time to the kernel.
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Deadline);
    let attributes = ThreadPriority::Deadline {
        runtime: slice,
        deadline: Duration::ZERO,
        period: Duration::ZERO,
        flags: DeadlineFlags::from_bits_retain(KEEP_POLICY),
    };
    let set = set_thread_priority_and_policy(THIS_THREAD, attributes, policy);
    set.map_err(|refused| io::Error::other(format!("no slice of {slice:?}: {refused:?}")))
}

pub(crate) fn join_idle_class() -> io::Result<()> {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    match thread_schedule_policy() == Ok(idle) {
        true => Ok(()),
        false => Err(io::Error::other(format!("not of the idle class: {set:?}"))),
    }
}

/// The scheduling policy of this thread, if it is not the usual one.
pub(crate) fn odd_policy() -> Option<String> {
    let usual = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    let policy = thread_schedule_policy().ok()?;
    (policy != usual).then(|| format!("{policy:?}"))
}

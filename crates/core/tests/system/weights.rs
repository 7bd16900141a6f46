//! Which weight does a thread have? (Nice values; Linux.)

use std::fs;
use std::process::Command;
use std::sync::{Arc, Barrier};

use crate::support::wait::wait_until;
use crate::support::{Lanes, cpu_lane, lanes, lanes_with, time_limit, use_all};
use twolane_core::{CpuRuntime, Handle, Niceness, Priority};

const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];
/// As documented at `Niceness`.
const DEFAULT: [i32; 3] = [8, 16, 19];

/// `SCHED_IDLE`, as the kernel numbers it; what is not is `SCHED_OTHER`.
const IDLE: i32 = 5;
const OTHER: i32 = 0;

/// Where a value stands in a task's `stat`: "ID (NAME) STATE ...", counted from
/// the state.
const NICE: usize = 16;
pub(crate) const POLICY: usize = 38;

fn value_in(stat: &str, nth: usize) -> i32 {
    let after_name = stat.rsplit_once(')').unwrap().1;
    let value = after_name.split_whitespace().nth(nth).unwrap();
    value.parse().unwrap()
}

pub(crate) fn my_value(nth: usize) -> i32 {
    value_in(&fs::read_to_string("/proc/thread-self/stat").unwrap(), nth)
}

fn my_nice() -> i32 {
    my_value(NICE)
}

/// The nice values of the threads of this process that begin with `prefix`.
fn nice_of_threads(prefix: &str) -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let all = tasks.filter_map(|task| {
        // Another test's thread may end meanwhile.
        let task = task.ok()?.path();
        let name = fs::read_to_string(task.join("comm")).ok()?;
        let stat = fs::read_to_string(task.join("stat")).ok()?;
        Some((name.trim_end().to_owned(), value_in(&stat, NICE)))
    });
    let named = all.filter(|(name, _)| name.starts_with(prefix));
    named.map(|(_, nice)| nice).collect()
}

fn by_priority(cpu: &CpuRuntime, nth: usize) -> [i32; 3] {
    ALL.map(|priority| {
        let handle = cpu.handle().with_priority(priority);
        handle.spawn_cpu(move || my_value(nth)).wait().unwrap()
    })
}

fn nice_by_priority(cpu: &CpuRuntime) -> [i32; 3] {
    by_priority(cpu, NICE)
}

#[test]
fn each_priority_has_its_own() {
    let base = my_nice();
    let Lanes { cpu, io } = lanes(1);
    let expected = DEFAULT.map(|nice| (base + nice).min(19));
    assert_eq!(nice_by_priority(&cpu), expected);
    // The I/O lane's own are untouched.
    let on_io = io.block_on(io.spawn(async { my_nice() })).unwrap();
    assert_eq!(on_io, base);
    // It shows.
    let debug = format!("{cpu:?}");
    let pairs: Vec<_> = ALL.into_iter().zip(expected).collect();
    assert!(debug.contains(&format!("nice: {pairs:?}")), "{debug}");
}

#[test]
fn the_builder_sets_them_or_switches_them_off() {
    let base = my_nice();
    let set = lanes_with(1, |lane| {
        let niceness = Niceness::off().of(Priority::Normal, 3);
        lane.niceness(niceness.of(Priority::Low, 3))
    });
    let expected = [base, base + 3, base + 3].map(|nice| nice.min(19));
    assert_eq!(nice_by_priority(&set.cpu), expected);
    let off = lanes_with(1, |lane| lane.niceness(Niceness::off()));
    assert_eq!(nice_by_priority(&off.cpu), [base; 3]);
}

/// What runs before a job does has the weight already; and a hook may change it
/// for good.
#[test]
fn start_hooks_run_with_it() {
    let base = my_nice();
    let (seen, hooks) = std::sync::mpsc::channel();
    let hook = move || seen.send(my_nice()).unwrap();
    let lanes = lanes_with(1, |lane| lane.on_thread_start(hook));
    let [high, normal, low] = DEFAULT.map(|nice| (base + nice).min(19));
    // In the order in which they start: the others are used now.
    use_all(&lanes.cpu);
    let seen: Vec<_> = hooks.iter().take(3).collect();
    assert_eq!(seen, [normal, high, low]);
}

/// The kernel treats a core that runs only such threads as free.
#[test]
fn low_is_of_the_idle_class_if_asked_for() {
    let default = lanes(1);
    assert_eq!(by_priority(&default.cpu, POLICY), [OTHER; 3]);
    let asked = lanes_with(1, |lane| {
        lane.niceness(Niceness::default().idle_class_for_low(true))
    });
    assert_eq!(by_priority(&asked.cpu, POLICY), [OTHER, OTHER, IDLE]);
    assert_eq!(nice_by_priority(&asked.cpu)[2], 19);
    // No other thread is.
    assert_eq!(my_value(POLICY), OTHER);
}

/// A thread inherits the weight of its maker, and can't go back. A lane that is
/// built inside a job must not suffer.
#[test]
fn what_is_made_in_a_job_is_not_born_niced() {
    let base = my_nice();
    let Lanes { cpu, io } = lanes(1);
    let low = cpu.handle().with_priority(Priority::Low);
    let handle = io.handle().clone();
    let in_job = low.spawn(async move {
        let inner = cpu_lane(1, &handle);
        let high = inner.handle().with_priority(Priority::High);
        let high = high.spawn_cpu(my_nice).await.unwrap();
        // The outer lane's and the inner one's (and other tests'). Each names itself.
        wait_until(|| nice_of_threads("cpu-control").len() >= 2);
        (high, nice_of_threads("cpu-control"))
    });
    let (high, controls) = in_job.wait().unwrap();
    assert_eq!(high, (base + DEFAULT[0]).min(19));
    assert!(controls.iter().all(|nice| *nice == base));
}

/// The thread that `yield_if_due` counts by must not wait for the lane, nor must those that tick,
/// which are there on Linux 6.12 and later.
#[test]
fn the_threads_of_the_process_are_not_niced() {
    let base = my_nice();
    let Lanes { cpu, io: _io } = lanes(1);
    let low = cpu.handle().with_priority(Priority::Low);
    let yields = low.spawn(twolane_core::yield_if_due());
    yields.wait().unwrap();
    assert_eq!(nice_of_threads("twolane-ticker"), [base]);
    for name in ["giveway-ticker", "giveway-tick"] {
        let tick = nice_of_threads(name);
        assert!(tick.iter().all(|nice| *nice == base), "{tick:?}");
    }
}

async fn nice_of_blocking_thread() -> i32 {
    tokio::task::spawn_blocking(my_nice).await.unwrap()
}

/// As documented at `Niceness`: what a job makes inherits its weight, as Tokio's blocking pool does, which
/// grows on the caller's thread, and a child process. The remedy is `spawn_io`: then a thread of the
/// I/O lane makes it.
#[test]
fn what_a_job_makes_by_spawn_io_is_not_niced() {
    let base = my_nice();
    let Lanes { cpu, io: _io } = lanes(1);
    let low = cpu.handle().with_priority(Priority::Low);
    assert_eq!(low.spawn_cpu(nice_of_child).wait().unwrap(), 19);
    let job = low.spawn(async {
        let blocking = twolane_core::spawn_io(nice_of_blocking_thread());
        let child = twolane_core::spawn_io(async { nice_of_child() });
        [blocking.await.unwrap(), child.await.unwrap()]
    });
    assert_eq!(job.wait().unwrap(), [base; 2]);
}

/// Its own nice value, which `nice` prints.
fn nice_of_child() -> i32 {
    let child = Command::new("nice").output().unwrap();
    let text = String::from_utf8(child.stdout).unwrap();
    text.trim().parse().unwrap()
}

/// Tokio's workers come out of the blocking pool. One that has not started yet might
/// take the task that a test gives to that pool, and leave it its own place.
fn until_both_workers_run(io: &tokio::runtime::Runtime) {
    let both = Arc::new(Barrier::new(2));
    let meet = [both.clone(), both].map(|both| io.spawn(async move { both.wait() }));
    for worker in meet {
        io.block_on(worker).unwrap();
    }
}

/// The documented residue (at `Niceness`): called plainly in a job,
/// `spawn_blocking` makes a thread of the I/O runtime that has the job's weight until
/// Tokio lets it go. If this fails, the docs can be bettered.
#[test]
fn blocking_threads_made_plainly_in_a_job_inherit() {
    let Lanes { cpu, io } = lanes(1);
    until_both_workers_run(&io);
    let low = cpu.handle().with_priority(Priority::Low);
    let below = low.spawn(nice_of_blocking_thread()).wait().unwrap();
    assert_eq!(below, 19);
    // It may not be back in the pool yet.
    wait_until(|| io.block_on(nice_of_blocking_thread()) == 19);
}

/// What the threads of the blocking pool of the lane's own runtime weigh does not depend on which thread was
/// the first to need them.
#[test]
fn blocking_threads_of_the_lanes_tokio_runtime_have_their_priority_s() {
    let base = my_nice();
    let Lanes { cpu, io: _io } = lanes(1);
    for (priority, nice) in ALL.into_iter().zip(DEFAULT) {
        let inside = async {
            let runtime = tokio::runtime::Handle::current();
            (runtime, Handle::current().priority())
        };
        let inside = twolane_core::in_cpu_context(inside);
        let inside = cpu.handle().with_priority(priority).spawn(inside);
        let (runtime, at) = inside.wait().unwrap();
        assert_eq!(at, priority);
        // From this plain thread, which is not niced.
        let blocking = runtime.spawn_blocking(my_nice);
        let blocking = runtime.block_on(blocking).unwrap();
        assert_eq!(blocking, (base + nice).min(19), "{priority:?}");
    }
}

/// All of this once more, where the process itself was started with a weight.
#[test]
fn in_a_process_that_is_niced() {
    let _limit = time_limit();
    if my_nice() > 0 {
        return;
    }
    for nice in ["5", "17"] {
        let tests = std::env::current_exe().unwrap();
        let run = Command::new("nice")
            .args(["-n", nice])
            .arg(tests)
            .arg("weights::")
            .output();
        let run = run.unwrap();
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "nice -n {nice}: {output}");
    }
}

//! With a scout: what starts at once, what waits, and what becomes of a job that computes on?

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use twolane::{Backend, Handle, Priority, Task};

use crate::computing::compute_for;
use crate::support::wait::wait_until;
use crate::support::{Lanes, lanes_with, thread_name, time_limit, with_both};

/// With one thread.
fn with_scout(backend: Backend) -> Lanes {
    lanes_with(backend, 1, |builder| builder.enable_scout())
}

/// A job that keeps its thread until it is told to end, and the name of that thread.
struct Busy {
    task: Task<()>,
    end: mpsc::Sender<()>,
    thread: String,
}

impl Busy {
    fn start(cpu: &Handle, name: &str) -> Self {
        let ((end, wait), (tell, started)) = (mpsc::channel(), mpsc::channel());
        let task = cpu.with_name(name).spawn_cpu(move || {
            tell.send(thread_name()).unwrap();
            wait.recv().unwrap();
        });
        let thread = started.recv().unwrap();
        Self { task, end, thread }
    }

    fn end(self) {
        self.end.send(()).unwrap();
        self.task.wait().unwrap();
    }
}

/// The lane's one thread, and nothing else.
fn busy_thread(cpu: &Handle) -> Busy {
    let mut others = Vec::new();
    for n in 0.. {
        let busy = Busy::start(cpu, &format!("scout: busy {n}"));
        if busy.thread == "cpu-0" {
            others.into_iter().for_each(Busy::end);
            return busy;
        }
        others.push(busy);
    }
    unreachable!()
}

/// A site that is known to be long.
fn long_site(cpu: &Handle, name: &str) -> Handle {
    let site = cpu.with_name(name);
    let computes = || compute_for(Duration::from_millis(5));
    site.spawn_cpu(computes).wait().unwrap();
    site
}

/// A site that is known to be short.
fn short_site(cpu: &Handle, name: &str) -> Handle {
    let site = cpu.with_name(name);
    for _ in 0..32 {
        site.spawn_cpu(|| ()).wait().unwrap();
    }
    site
}

fn nice_of_this_thread() -> i32 {
    // On Linux it is the thread's own.
    rustix::process::getpriority_process(None).unwrap()
}

#[test]
fn an_unknown_job_starts_although_the_thread_is_busy() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let busy = busy_thread(&cpu);
        let unknown = cpu.with_name("scout: unknown");
        let name = unknown.spawn_cpu(thread_name).wait().unwrap();
        assert_eq!(name, "cpu-scout");
        assert_eq!(unknown.spawn(async { 7 }).wait().unwrap(), 7);
        busy.end();
    });
}

/// It has the weight of `High` until then.
#[test]
fn a_job_that_computes_on_is_lowered() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let busy = busy_thread(&cpu);
        let cpu = cpu.with_name("scout: computes on");
        let high = cpu.with_priority(Priority::High);
        let high = high.spawn_cpu(nice_of_this_thread).wait().unwrap();
        let computes = || {
            let before = nice_of_this_thread();
            while nice_of_this_thread() == before {}
            let after = nice_of_this_thread();
            // On a busy machine that may be soon: long enough for its site to be known.
            compute_for(Duration::from_millis(5));
            (before, after)
        };
        let (before, after) = cpu.spawn_cpu(computes).wait().unwrap();
        assert_eq!(before, high);
        busy.end();
        // The site is known: its next job is the thread's.
        let (name, normal) = cpu
            .spawn_cpu(|| (thread_name(), nice_of_this_thread()))
            .wait()
            .unwrap();
        assert_eq!((name.as_str(), after), ("cpu-0", normal));
    });
}

/// As many as the lane has threads. Then the next one waits for one of them.
#[test]
fn no_more_are_lowered_than_there_are_threads() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let busy = busy_thread(&cpu);
        let [lowered, on_scout] =
            ["scout: second", "scout: third"].map(|name| Busy::start(&cpu, name));
        let has_run = Arc::new(AtomicBool::new(false));
        let runs = has_run.clone();
        let fourth = cpu.with_name("scout: fourth");
        let fourth = fourth.spawn_cpu(move || runs.store(true, SeqCst));
        // Meanwhile the control thread has looked at the third.
        let high = cpu.with_priority(Priority::High);
        for _ in 0..1_000 {
            high.spawn_cpu(|| ()).wait().unwrap();
        }
        assert_eq!(cpu.metrics().running, 3);
        assert!(!has_run.load(SeqCst));
        lowered.end();
        // The third is lowered now, and the next scout takes the fourth.
        fourth.wait().unwrap();
        on_scout.end();
        busy.end();
    });
}

/// The scout that follows a lowered one is looked at, too, without a further submission.
#[test]
fn each_scout_in_turn_is_lowered() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 2, |builder| builder.enable_scout());
        let cpu = lanes.cpu.handle();
        let (mut busy, mut others) = (Vec::new(), Vec::new());
        for n in 0.. {
            let next = Busy::start(&cpu, &format!("scout: busy {n}"));
            match next.thread.as_str() {
                "cpu-scout" => others.push(next),
                _ => busy.push(next),
            }
            if busy.len() == 2 {
                break;
            }
            others.drain(..).for_each(Busy::end);
        }
        let (end, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let long = ["scout: first", "scout: second"].map(|name| {
            let wait = wait.clone();
            cpu.with_name(name).spawn_cpu(move || {
                let _ = wait.lock().unwrap().recv();
            })
        });
        assert_eq!(
            cpu.with_name("scout: last").spawn_cpu(|| 1).wait().unwrap(),
            1
        );
        drop(end);
        for task in long {
            task.wait().unwrap();
        }
        busy.into_iter().chain(others).for_each(Busy::end);
    });
}

#[test]
fn all_jobs_of_a_short_site_pass() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let short = short_site(&cpu, "scout: short");
        let busy = busy_thread(&cpu);
        let all: Vec<_> = (0..1_000).map(|n| short.spawn_cpu(move || n)).collect();
        for (n, task) in all.into_iter().enumerate() {
            assert_eq!(task.wait().unwrap(), n);
        }
        busy.end();
    });
}

/// On the scout, and in the queue once their site is known to be long.
#[test]
fn jobs_of_one_site_start_in_their_order() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let busy = busy_thread(&cpu);
        let site = cpu.with_name("scout: in order");
        let started = Arc::new(Mutex::new(Vec::new()));
        let spawn = |n: usize, computes: Duration| {
            let started = started.clone();
            site.spawn_cpu(move || {
                started.lock().unwrap().push(n);
                compute_for(computes);
            })
        };
        for n in 0..10 {
            spawn(n, Duration::ZERO).wait().unwrap();
        }
        // The others are in the scout's queue when this one makes the site a long one.
        let long = spawn(10, Duration::from_millis(20));
        let mut others: Vec<_> = (11..15).map(|n| spawn(n, Duration::ZERO)).collect();
        long.wait().unwrap();
        others.extend((15..20).map(|n| spawn(n, Duration::ZERO)));
        busy.end();
        for task in others {
            task.wait().unwrap();
        }
        // The thread, the scout and one that was lowered may take them.
        let started = started.lock().unwrap();
        assert_eq!(started.len(), 20);
        assert_in_order(&started, 3);
    });
}

/// A thread that has taken a job notes it a moment later, when others may have noted theirs: a
/// job passes fewer than there are threads.
fn assert_in_order(started: &[usize], threads: usize) {
    for (at, nth) in started.iter().enumerate() {
        let passed = started[at + 1..].iter().filter(|later| *later < nth);
        assert!(passed.count() < threads, "{started:?}");
    }
}

/// Is woken by itself, in its first poll.
struct WokenOnce(bool);

impl Future for WokenOnce {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A worker that puts its job back takes one whose push has woken the scout, and no other worker.
/// The other worker has to learn of what was put back.
#[test]
fn what_is_put_back_does_not_wait_for_a_job_of_the_scout() {
    with_both(|backend| {
        let lanes = lanes_with(backend, 2, |builder| builder.enable_scout());
        let cpu = lanes.cpu.handle();
        for n in 0..200 {
            let is_pushed = Arc::new(AtomicBool::new(false));
            let (has_ended, wait) = mpsc::channel::<()>();
            let goes_on = is_pushed.clone();
            // It is woken in its own step, or yields.
            let step = async move || match n % 2 {
                0 => WokenOnce(false).await,
                _ => twolane::yield_now().await,
            };
            let yields = cpu.with_name("scout: yields").spawn(async move {
                let _ends = has_ended;
                while !goes_on.load(SeqCst) {
                    step().await;
                }
                for _ in 0..3 {
                    step().await;
                }
            });
            let waits = cpu.with_name(&format!("scout: waits {n}"));
            let waits = waits.spawn_cpu(move || wait.recv().is_err());
            is_pushed.store(true, SeqCst);
            assert!(waits.wait().unwrap());
            yields.wait().unwrap();
        }
    });
}

/// The thread takes from both queues in turn.
#[test]
fn a_flood_of_short_jobs_does_not_starve_a_long_one() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let short = short_site(&cpu, "scout: flood");
        let long = long_site(&cpu, "scout: long");
        let busy = busy_thread(&cpu);
        let has_begun = Arc::new(AtomicBool::new(false));
        let begins = has_begun.clone();
        let long = long.spawn_cpu(move || begins.store(true, SeqCst));
        let under_way = Arc::new(AtomicUsize::new(0));
        let flood = || {
            while !has_begun.load(SeqCst) {
                wait_until(|| under_way.load(SeqCst) < 100 || has_begun.load(SeqCst));
                under_way.fetch_add(1, SeqCst);
                let under_way = under_way.clone();
                let job = move || under_way.fetch_sub(1, SeqCst);
                short.spawn_cpu(job).detach();
            }
        };
        thread::scope(|scope| {
            scope.spawn(flood);
            scope.spawn(flood);
            busy.end();
            long.wait().unwrap();
        });
    });
}

/// In the scout's queue, on the scout, on a lowered thread.
#[test]
fn a_shutdown_ends_all_of_it() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let busy = busy_thread(&cpu);
        let [lowered, on_scout] =
            ["scout: second", "scout: third"].map(|name| Busy::start(&cpu, name));
        let completed = cpu.metrics().completed;
        let queued = cpu.with_name("scout: queued").spawn_cpu(|| ());
        let cancelled = cpu.with_name("scout: cancelled").spawn_cpu(|| ());
        cancelled.abort();
        assert!(cancelled.wait().unwrap_err().is_cancelled());
        lanes.cpu.shutdown_background();
        assert!(queued.wait().unwrap_err().is_shutdown());
        [busy, lowered, on_scout].into_iter().for_each(Busy::end);
        assert!(block_on(lanes.cpu.shutdown()).is_empty());
        let jobs = cpu.metrics();
        assert_eq!(jobs.completed - completed, 3);
        assert_eq!((jobs.cancelled, jobs.dropped), (1, 1));
    });
}

/// Without names the lines of the program are the sites: that one is long says nothing of others.
#[test]
fn lines_are_sites() {
    with_both(|backend| {
        let lanes = with_scout(backend);
        let cpu = lanes.cpu.handle();
        let busy = busy_thread(&cpu);
        let (end, wait) = mpsc::channel::<()>();
        let stuck = cpu.spawn_cpu(move || wait.recv());
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
        drop(end);
        assert!(stuck.wait().unwrap().is_err());
        busy.end();
    });
}

/// It computes on the scout's thread what it splits.
#[test]
fn a_rayon_join_works_on_the_scout() {
    let _limit = time_limit();
    let lanes = with_scout(Backend::Rayon);
    let cpu = lanes.cpu.handle();
    let busy = busy_thread(&cpu);
    let (spawned, has_run) = mpsc::channel();
    let splits = cpu.with_name("scout: splits").spawn_cpu(move || {
        rayon::spawn(move || spawned.send(thread_name()).unwrap());
        rayon::join(thread_name, thread_name)
    });
    let scout = || "cpu-scout".to_owned();
    assert_eq!(splits.wait().unwrap(), (scout(), scout()));
    assert_eq!(has_run.recv().unwrap(), scout());
    busy.end();
}

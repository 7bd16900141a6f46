//! What of the submitter's surroundings does a job see: its span and
//! subscriber, yes; its task-locals, no.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::log::{Log, Logs, two_polls};
use crate::support::turns::current_thread;
use crate::support::{Lanes, PanicsOnDrop, cpu_lane, gives, lanes, lasts, suspended, thread_name};
use tracing::Subscriber;
use tracing::subscriber::with_default;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use twolane_core::{Handle, JobContext, Task};

/// A job's events must be found where its request's are. The subscriber is a
/// scoped one: no thread of either lane has it from elsewhere.
#[test]
fn the_span_and_the_subscriber_come_along() {
    let Lanes { cpu, io: _io } = lanes(2);
    let in_request = |f: &dyn Fn()| {
        let ((), lines) = Log::during(|| tracing::info_span!("request").in_scope(f));
        lines
    };
    let twice = ["request: first", "request: second"];

    let lines = in_request(&|| cpu.spawn_cpu(|| tracing::info!("here")).wait().unwrap());
    assert_eq!(lines, ["request: here"], "a closure");
    let lines = in_request(&|| cpu.spawn(two_polls()).wait().unwrap());
    assert_eq!(lines, twice, "a future");
    let lines = in_request(&|| cpu.handle().spawn_io(two_polls()).wait().unwrap());
    assert_eq!(lines, twice, "a future on the I/O lane");
    let lines = in_request(&|| {
        let over = cpu.spawn(async {
            let there = twolane_core::spawn_io(async {
                twolane_core::spawn_cpu(|| tracing::info!("back")).await
            });
            there.await.unwrap().unwrap();
        });
        over.wait().unwrap();
    });
    assert_eq!(lines, ["request: back"], "over both lanes");
}

/// What is logged while a cancelled job's captures are dropped, on another
/// thread and much later, belongs to the request too.
#[test]
fn destructors_run_inside_the_span() {
    let Lanes { cpu, io: _io } = lanes(1);
    let ((), lines) = Log::during(|| {
        let (dropped, wait) = std::sync::mpsc::channel();
        let never = || lasts(Logs(dropped.clone())).0;
        let span = tracing::info_span!("request").entered();
        let (on_cpu, on_io) = (cpu.spawn(never()), cpu.handle().spawn_io(never()));
        drop(span);
        drop((on_cpu, on_io));
        wait.recv().unwrap();
        wait.recv().unwrap();
    });
    assert_eq!(lines, ["request: dropped"; 2]);
}

/// A rayon child on another worker has no span of its own accord; what it
/// captures of its job gives it one.
#[test]
fn a_rayon_child_takes_the_span_from_its_job_context() {
    let Lanes { cpu, io: _io } = lanes(2);
    let ((), lines) = Log::during(|| {
        let _span = tracing::info_span!("request").entered();
        let job = cpu.handle().spawn_cpu_with(move |job| {
            // A thread that knows nothing of the job or the lanes.
            std::thread::scope(|scope| {
                let stranger = scope.spawn(|| {
                    tracing::info!("no subscriber hears this");
                    job.in_span(|| tracing::info!("stranger"));
                });
                stranger.join().unwrap();
            });

            let both_have_begun = std::sync::Barrier::new(2);
            let child = || {
                both_have_begun.wait();
                job.in_span(|| tracing::info!("child"));
                thread_name()
            };
            let (left, right) = rayon::join(child, child);
            assert_ne!(left, right);
            Ok(())
        });
        job.wait().unwrap();
    });
    let child = "request: child";
    assert_eq!(lines, ["request: stranger", child, child]);
}

/// Two requests at a time on the same threads: neither sees the other's span,
/// and no span stays behind on a thread.
#[test]
fn spans_do_not_leak_between_jobs() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (disabled, lines) = Log::during(|| {
        let first = tracing::info_span!("first").in_scope(|| cpu.spawn(two_polls()));
        let second = tracing::info_span!("second").in_scope(|| cpu.spawn(two_polls()));
        first.wait().unwrap();
        second.wait().unwrap();
        let none = cpu.spawn_cpu(|| tracing::Span::current().is_disabled());
        none.wait().unwrap()
    });
    assert!(disabled);
    let mut sorted = lines.clone();
    sorted.sort();
    let expected = [
        "first: first",
        "first: second",
        "second: first",
        "second: second",
    ];
    assert_eq!(sorted, expected, "{lines:?}");
}

/// The usual program in development: no subscriber listens.
#[test]
fn without_a_subscriber_everything_works() {
    let Lanes { cpu, io: _io } = lanes(1);
    let job = cpu.spawn(async {
        let span = tracing::info_span!("unheard");
        let nested = span.in_scope(|| twolane_core::spawn_io(two_polls()));
        nested.await.unwrap();
        tracing::Span::current().is_disabled()
    });
    assert!(job.wait().unwrap());
    let in_span = |job: &JobContext| Ok(job.in_span(|| tracing::Span::current().is_disabled()));
    let job = cpu.handle().spawn_cpu_with(in_span);
    assert!(job.wait().unwrap());
}

tokio::task_local! {
    static TENANT: u32;
}

/// A job is a task of its own, as with `tokio::spawn`: task-locals stay with
/// the task that set them. What a job needs of them, it captures.
#[test]
fn task_locals_are_not_inherited() {
    let Lanes { cpu, io } = lanes(1);
    let tenant = || TENANT.try_with(|tenant| *tenant).ok();
    let seen = io.block_on(TENANT.scope(7, async {
        assert_eq!(tenant(), Some(7));
        let closure = cpu.spawn_cpu(tenant).await.unwrap();
        let future = cpu.spawn(async move { tenant() }).await.unwrap();
        let io = cpu.handle().spawn_io(async move { tenant() });
        [closure, future, io.await.unwrap()]
    }));
    assert_eq!(seen, [None; 3]);

    // One that the job sets itself is its own, through all its polls.
    let own = cpu.spawn(TENANT.scope(8, async move {
        tokio::task::yield_now().await;
        tenant()
    }));
    assert_eq!(own.wait().unwrap(), Some(8));
}

/// `spawn_cpu(|| async { .. })` compiles and computes nothing. The only test
/// of this process that does it: it is warned of once.
#[test]
fn a_closure_that_returns_an_async_block_is_warned_of_once() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (unpolled, lines) = Log::during(|| {
        cpu.spawn_cpu(gives(1)).wait().unwrap();
        cpu.spawn_cpu(|| async { 2 }).detach();
        cpu.spawn_cpu(|| async { 3 }).wait().unwrap()
    });
    let [warning] = lines.as_slice() else {
        panic!("one warning: {lines:?}");
    };
    assert!(warning.starts_with("twolane: "), "{warning}");
    assert!(
        warning.contains("`spawn`"),
        "it names the remedy: {warning}"
    );
    // It is a future still, and was never polled.
    assert_eq!(cpu.spawn(unpolled).wait().unwrap(), 3);
}

/// Panics when a span is entered, once it is told to.
#[derive(Clone, Default)]
struct PanicsOnEnter(Arc<AtomicBool>);

impl<S: Subscriber> Layer<S> for PanicsOnEnter {
    fn on_enter(&self, _span: &tracing::Id, _context: Context<'_, S>) {
        assert!(!self.0.load(SeqCst), "planned");
    }
}

/// The captures were dropped where no panic of theirs is caught, by the job or by the drop of the task
/// of a `spawn_io`, and what was cancelled ended as one that had panicked.
#[test]
fn a_subscriber_that_panics_at_the_drop_of_a_job_or_a_spawn_io_changes_no_error() {
    // The job has begun. No thread has driven the I/O lane yet.
    let begins: [fn(&Handle) -> Task<()>; 2] = [
        |cpu| suspended(cpu, PanicsOnDrop),
        |cpu| cpu.spawn_io(lasts(PanicsOnDrop).0),
    ];
    for begin in begins {
        let io = current_thread();
        let cpu = cpu_lane(1, io.handle());
        let panics = PanicsOnEnter::default();
        let error = with_default(Registry::default().with(panics.clone()), || {
            let task = tracing::info_span!("request").in_scope(|| begin(cpu.handle()));
            panics.0.store(true, SeqCst);
            task.abort();
            io.block_on(task).unwrap_err()
        });
        assert!(error.is_cancelled(), "{error}");
    }
}

/// Ends each span with a panic.
struct PanicsOnClose;

impl<S: Subscriber> Layer<S> for PanicsOnClose {
    fn on_close(&self, _span: tracing::Id, _context: Context<'_, S>) {
        panic!("planned");
    }
}

/// The future had made its output, but its task ended by the panic: the awaiter was told that the
/// I/O runtime was gone.
#[test]
fn a_subscriber_that_panics_at_a_span_s_end_loses_no_output_of_spawn_io() {
    let io = current_thread();
    let cpu = cpu_lane(1, io.handle());
    let subscriber = Registry::default().with(PanicsOnClose);
    let output = with_default(subscriber, || {
        let span = tracing::info_span!("request");
        let (go_on, wait) = tokio::sync::oneshot::channel();
        let task = span.in_scope(|| cpu.handle().spawn_io(async move { wait.await.unwrap() }));
        // The task has the last one.
        drop(span);
        go_on.send(42).unwrap();
        io.block_on(task)
    });
    assert_eq!(output.unwrap(), 42);
}

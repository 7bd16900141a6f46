//! What reaches the log because no task would carry it?

mod support;

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use futures::StreamExt;
use futures::executor::block_on;
use support::wait::wait_until;
use support::{BOTH, Dropped, Lanes, Stuck, lanes, time_limit};
use tracing::span::Id;
use tracing::{Event, Subscriber, field};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use twolane::{CpuIteratorExt, CpuStreamExt, HandleExt, Priority, Task};

/// The process's own subscriber: the lane's helpers have no other.
struct Tap;

static LISTENER: Mutex<Option<Sender<String>>> = Mutex::new(None);
static ONE_TEST: Mutex<()> = Mutex::new(());
static INSTALL: Once = Once::new();

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `LEVEL place: message, name=value ...` of each event of the crate.
struct Log {
    lines: Receiver<String>,
    _one_test: MutexGuard<'static, ()>,
}

impl Log {
    fn listen() -> Self {
        let one_test = lock(&ONE_TEST);
        INSTALL.call_once(|| {
            let subscriber = Registry::default().with(Tap);
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        let (listener, lines) = mpsc::channel();
        *lock(&LISTENER) = Some(listener);
        Self {
            lines,
            _one_test: one_test,
        }
    }

    fn next(&self) -> String {
        self.lines.recv().unwrap()
    }

    fn is_silent(&self) -> bool {
        self.lines.try_recv().is_err()
    }
}

const PANICS_WHEN_CLOSED: &str = "panics when closed";

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Tap {
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let name = context.span(&id).map(|span| span.name());
        assert_ne!(name, Some(PANICS_WHEN_CLOSED));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        struct Text(String);
        impl field::Visit for Text {
            fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
                let text = match field.name() {
                    "message" => format!("{value:?} "),
                    name => format!("{name}={value:?} "),
                };
                self.0.push_str(&text);
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let place = match context.event_span(event) {
            Some(span) => span.name(),
            None => event.metadata().target(),
        };
        let line = format!("{} {place}: {}", event.metadata().level(), text.0);
        if let Some(listener) = &*lock(&LISTENER) {
            let _ = listener.send(line);
        }
    }
}

/// The panic hook prints it to stderr; a service reads its log.
#[test]
fn a_panic_that_no_task_will_carry() {
    let _limit = time_limit();
    let log = Log::listen();
    let expect_panic = |text: &str| {
        let line = log.next();
        assert!(
            line.starts_with("ERROR request: a job without an awaiter panicked")
                && line.contains(text),
            "{line}"
        );
    };
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let span = tracing::info_span!("request");
        let _request = span.enter();
        cpu.spawn_cpu(|| panic!("detached")).detach();
        expect_panic("detached");
        let panics = async { panic!("a future") };
        cpu.spawn(panics).detach();
        expect_panic("a future");

        // Its task is dropped while it runs.
        let Stuck { task, .. } = Stuck::<()>::start(&cpu.handle());
        drop(task);
        expect_panic("RecvError");

        // Unread, but there: then it is told where the task is dropped.
        let task = cpu.spawn_cpu(|| panic!("unread"));
        wait_until(|| task.is_finished());
        drop(task);
        expect_panic("unread");

        // What a `spawn_io` has made, and its task is dropped.
        let task = cpu.handle().spawn_io(async { PanicsOnDrop });
        wait_until(|| task.is_finished());
        drop(task);
        let line = log.next();
        assert!(
            line.contains("the destructor of an unread output panicked"),
            "{line}"
        );
        assert!(line.contains("of the output"), "{line}");

        // One that is read is the reader's business.
        let read = cpu.spawn_cpu(|| panic!("read")).wait();
        assert!(read.unwrap_err().is_panic());
        assert!(log.is_silent());
        assert!(cpu.shutdown().wait().is_empty());
    }
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("of the output");
    }
}

/// A panic in a stream whose consumer drops it before it comes to the panic. The reader of
/// one that was read does with it what it wants.
#[test]
fn a_panic_in_a_stream_that_is_dropped_before_it_is_read() {
    let _limit = time_limit();
    let log = Log::listen();
    let expect_panic = |text: &str| {
        let line = log.next();
        let place = "ERROR twolane: a job without an awaiter panicked";
        let of_span = "ERROR request: a job without an awaiter panicked";
        assert!(
            line.starts_with(place) || line.starts_with(of_span),
            "{line}"
        );
        assert!(line.contains(text), "{line}");
    };
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let span = tracing::info_span!("request");
        let _request = span.enter();
        let until_idle = || wait_until_idle(&cpu.handle());
        for taken in 0..3 {
            // It runs until it has panicked; the source is dropped then.
            let (dropped, source_dropped) = mpsc::channel();
            let sentinel = Dropped(dropped);
            let source = (0..4).inspect(move |_| _ = &sentinel);
            let stage = |n| assert_ne!(n, 2, "of a stage");
            let mut stream = source.on_cpu(&cpu.handle()).map(stage).buffered(WINDOW);
            source_dropped.recv().unwrap();
            until_idle();
            for _ in 0..taken {
                block_on(stream.next()).unwrap().unwrap();
            }
            drop(stream);
            expect_panic("of a stage");
        }

        let source = (0..4).inspect(|&n| assert_ne!(n, 2, "of the source"));
        let mut stream = source.on_cpu(&cpu.handle()).map(|n| n).buffered(WINDOW);
        block_on(stream.next()).unwrap().unwrap();
        block_on(stream.next()).unwrap().unwrap();
        until_idle();
        drop(stream);
        expect_panic("of the source");

        // The stage runs while the stream is dropped.
        let (let_go, wait) = mpsc::channel::<()>();
        let (started, starts) = mpsc::channel();
        let wait = Mutex::new(wait);
        let stream = CpuStreamExt::on_cpu(futures::stream::iter([1]), &cpu.handle())
            .map(move |_| {
                started.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
                panic!("too late");
            })
            .buffered(WINDOW);
        let stream: twolane::stream::Buffered<()> = stream;
        starts.recv().unwrap();
        drop(stream);
        let_go.send(()).unwrap();
        expect_panic("too late");

        let mut read = (0..4)
            .on_cpu(&cpu.handle())
            .map(|n| assert_ne!(n, 0))
            .buffered(WINDOW);
        assert!(block_on(read.next()).unwrap().unwrap_err().is_panic());
        drop(read);
        assert!(cpu.shutdown().wait().is_empty());
        assert!(log.is_silent());
    }
}

/// A job's span ends with the job's last reference, which is here the lane's. What
/// the subscriber panics with there is the log's, and the lane goes on.
#[test]
fn a_subscriber_that_panics_when_a_jobs_span_closes() {
    let _limit = time_limit();
    let log = Log::listen();
    let expect_panic = || {
        let line = log.next();
        let expected = "ERROR twolane: what a job left behind panicked";
        assert!(line.starts_with(expected), "{line}");
    };
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let (let_go, wait) = mpsc::channel();
        cpu.spawn_cpu(move || wait.recv().unwrap()).detach();
        let span = tracing::info_span!(PANICS_WHEN_CLOSED);
        span.in_scope(|| cpu.spawn_cpu(|| ()).detach());
        drop(span);
        let span = tracing::info_span!(PANICS_WHEN_CLOSED);
        span.in_scope(|| cpu.spawn(async {}).detach());
        drop(span);
        let_go.send(()).unwrap();
        expect_panic();
        expect_panic();
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
        assert!(log.is_silent());
    }
}

/// With their number, in one line, while every thread is stuck.
#[test]
fn detached_jobs_that_a_shutdown_drops() {
    let _limit = time_limit();
    let log = Log::listen();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let low = cpu.handle().with_priority(Priority::Low);
        let (resting, rests) = mpsc::channel();
        cpu.spawn(async move {
            resting.send(()).unwrap();
            std::future::pending::<()>().await;
        })
        .detach();
        rests.recv().unwrap();
        let (stuck, let_go) = Stuck::start(&cpu.handle()).split();
        let (low_stuck, let_low_go) = Stuck::start(&low).split();
        for _ in 0..10 {
            cpu.spawn_cpu(|| ()).detach();
            low.spawn_cpu(|| ()).detach();
        }
        // These are told, or want to hear nothing.
        let awaited: Vec<_> = (0..5).map(|_| cpu.spawn_cpu(|| ())).collect();
        drop(cpu.spawn_cpu(|| ()));
        let cancelled = cpu.spawn_cpu(|| ());
        let abort = cancelled.abort_handle();
        cancelled.detach();
        abort.abort();
        // This one runs to its end.
        stuck.detach();

        let over = cpu.shutdown();
        let line = log.next();
        let expected = "WARN twolane: detached jobs were dropped";
        assert!(line.starts_with(expected), "{line}");
        assert!(line.contains("jobs=21 "), "{line}");
        for task in awaited {
            assert!(task.wait().unwrap_err().is_shutdown());
        }
        let_go.send(()).unwrap();
        let_low_go.send(()).unwrap();
        low_stuck.wait().unwrap();
        assert!(over.wait().is_empty());
        assert!(log.is_silent(), "{backend:?}");
    }
}

/// As lost as one that never ran: its checkpoint has ended it before it had its result.
#[test]
fn a_detached_closure_that_a_shutdown_cuts_short() {
    let _limit = time_limit();
    let log = Log::listen();
    for backend in BOTH {
        for detached_at_once in [true, false] {
            let Lanes { cpu, io: _io } = lanes(backend, 1);
            let (started, running) = mpsc::channel();
            let task: Task<()> = cpu.spawn_cpu_with(move |job| {
                started.send(()).unwrap();
                loop {
                    job.checkpoint()?;
                    std::thread::yield_now();
                }
            });
            running.recv().unwrap();
            if detached_at_once {
                task.detach();
                assert!(cpu.shutdown().wait().is_empty());
            } else {
                assert!(cpu.shutdown().wait().is_empty());
                assert!(log.is_silent());
                task.detach();
            }
            let line = log.next();
            assert!(
                line.contains("detached jobs were dropped"),
                "{backend:?}: {line}"
            );
            assert!(log.is_silent());
        }
    }
}

/// A task that is detached afterwards can't have seen it either.
#[test]
fn jobs_that_are_detached_when_it_is_too_late() {
    let _limit = time_limit();
    let log = Log::listen();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let (stuck, let_go) = Stuck::start(&cpu.handle()).split();
        let [queued, cancelled]: [Task<()>; 2] = [(); 2].map(|()| cpu.spawn_cpu(|| ()));
        cancelled.abort();
        let over = cpu.shutdown();
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        assert!(over.wait().is_empty());
        assert!(log.is_silent());
        queued.detach();
        assert!(log.next().contains("jobs=1 "));
        cpu.spawn_cpu(|| ()).detach();
        assert!(log.next().contains("jobs=1 "));
        cancelled.detach();
        drop(cpu.spawn_cpu(|| ()));
        assert!(log.is_silent());
    }
}

/// The value of an `IoOwned` has a destructor that no task can report on.
#[test]
fn the_drop_of_a_value_on_the_io_lane() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("of a destructor");
        }
    }
    struct Connection(Sender<()>);
    impl Drop for Connection {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let _limit = time_limit();
    let log = Log::listen();
    for backend in BOTH {
        let Lanes { cpu, io } = lanes(backend, 1);
        let handle = cpu.handle();
        let expect_panic = || {
            let line = log.next();
            let expected = "ERROR twolane: the destructor of a value on the I/O lane panicked";
            assert!(line.starts_with(expected), "{line}");
            assert!(line.contains("of a destructor"), "{line}");
        };
        drop(handle.io_owned(Panics));
        expect_panic();
        let (dropped, drops) = mpsc::channel();
        drop(handle.io_owned(Connection(dropped.clone())));
        drops.recv().unwrap();
        assert!(log.is_silent());

        let connection = handle.io_owned(Connection(dropped));
        let panics = handle.io_owned(Panics);
        drop(io);
        let expect_warning = |name: &str| {
            let line = log.next();
            let expected = "WARN twolane: a value of an IoOwned is dropped after the end";
            assert!(line.starts_with(expected) && line.contains(name), "{line}");
        };
        drop(connection);
        drops.recv().unwrap();
        expect_warning("Connection");
        drop(panics);
        expect_warning("Panics");
        expect_panic();
        assert!(log.is_silent());
    }
}

/// Each of these was logged as a detached job that had been lost ("keep the tasks of jobs that
/// matter"), though the user had detached nothing: the lane's own jobs, which drop the
/// states of a stream or move the items of a bridge. A reader has the error from its
/// bridge, and nothing is missing where a value is dropped.
#[test]
fn a_shutdown_with_streams_says_nothing_of_detached_jobs() {
    let _limit = time_limit();
    let log = Log::listen();
    let mut alarms = Vec::new();
    for backend in BOTH {
        for (name, case) in STREAM_ENDS {
            let lanes = lanes(backend, 1);
            case(&lanes);
            assert!(lanes.cpu.shutdown().wait().is_empty());
            alarms.extend(log.lines.try_iter().map(|line| (backend, name, line)));
        }
    }
    assert!(alarms.is_empty(), "{alarms:#?}");

    // A job that the user has detached is reported, beside any of them.
    let Lanes { cpu, io: _io } = lanes(BOTH[0], 1);
    let (stuck, let_go) = Stuck::start(&cpu.handle()).split();
    let numbers = stream_with_states(&cpu.handle());
    cpu.spawn_cpu(|| ()).detach();
    let over = cpu.shutdown();
    drop(numbers);
    let_go.send(()).unwrap();
    stuck.wait().unwrap();
    assert!(over.wait().is_empty());
    assert!(log.next().contains("jobs=1 "));
    assert!(log.is_silent());
}

type StreamEnd = (&'static str, fn(&Lanes));

const STREAM_ENDS: [StreamEnd; 9] = [
    ("states, dropped after the shutdown", |lanes| {
        let numbers = read_to_its_end(lanes);
        lanes.cpu.shutdown().wait();
        drop(numbers);
    }),
    ("states, dropped while the shutdown is held", |lanes| {
        let numbers = read_to_its_end(lanes);
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        let over = lanes.cpu.shutdown();
        drop(numbers);
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        over.wait();
    }),
    ("inputs, dropped while the shutdown is held", |lanes| {
        let (pulled, pulls) = mpsc::channel();
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        let source = futures::stream::iter(0..4).map(move |n| {
            pulled.send(()).unwrap();
            n.to_string()
        });
        let lengths = CpuStreamExt::on_cpu(source, &lanes.cpu.handle()).map(|n: String| n.len());
        let lengths: twolane::stream::Buffered<usize> = lengths.buffered(WINDOW);
        pulls.iter().take(4).for_each(drop);
        let over = lanes.cpu.shutdown();
        drop(lengths);
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        over.wait();
    }),
    ("a bridge from the CPU lane, unread, cut off", |lanes| {
        let endless = futures::stream::pending::<()>();
        let mut items = lanes.cpu.handle().stream_from_cpu(endless, 1, |()| 1);
        lanes.cpu.shutdown().wait();
        assert!(block_on(items.next()).unwrap().is_err());
    }),
    ("a bridge from the CPU lane, read, cut off", |lanes| {
        let source = futures::stream::iter([1]).chain(futures::stream::pending());
        let mut items = lanes.cpu.handle().stream_from_cpu(source, 1, |_| 1);
        block_on(items.next()).unwrap().unwrap();
        lanes.cpu.shutdown().wait();
        assert!(block_on(items.next()).unwrap().is_err());
    }),
    ("its reader, dropped before the shutdown", |lanes| {
        let endless = futures::stream::repeat(1);
        let mut items = lanes.cpu.handle().stream_from_cpu(endless, 1, |_| 1);
        block_on(items.next()).unwrap().unwrap();
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        drop(items);
        let over = lanes.cpu.shutdown();
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        over.wait();
    }),
    ("a bridge that comes after the shutdown", |lanes| {
        lanes.cpu.shutdown().wait();
        let cpu = lanes.cpu.handle();
        let mut back = cpu.stream_from_cpu(futures::stream::iter([1]), 1, |_| 1);
        assert!(block_on(back.next()).unwrap().is_err());
        let mut there = cpu.stream_from_io(futures::stream::iter([1]), 1, |_| 1);
        assert!(block_on(there.next()).unwrap().is_err());
    }),
    ("a bridge from the I/O lane", |lanes| {
        let source = futures::stream::iter([1]).chain(futures::stream::pending());
        let mut items = lanes.cpu.handle().stream_from_io(source, 1, |_| 1);
        block_on(items.next()).unwrap().unwrap();
        lanes.cpu.shutdown().wait();
        drop(items);
    }),
    ("a value of the I/O lane", |lanes| {
        let (dropped, drops) = mpsc::channel();
        let value = lanes.cpu.handle().io_owned(Dropped(dropped));
        lanes.cpu.shutdown().wait();
        drop(value);
        drops.recv().unwrap();
    }),
];

const WINDOW: usize = 8;

fn wait_until_idle(cpu: &twolane::Handle) {
    wait_until(|| cpu.metrics().queued + cpu.metrics().running == 0);
}

/// Its workers have states that a destructor frees.
fn stream_with_states(cpu: &twolane::Handle) -> twolane::stream::Buffered<usize> {
    let numbers = CpuStreamExt::on_cpu(futures::stream::iter(0..4), cpu);
    let numbers = numbers.map_init(String::new, |_: &mut String, n: usize| n);
    numbers.buffered(WINDOW)
}

fn read_to_its_end(lanes: &Lanes) -> twolane::stream::Buffered<usize> {
    let mut numbers = stream_with_states(&lanes.cpu.handle());
    for n in 0..4 {
        assert_eq!(block_on(numbers.next()).unwrap().unwrap(), n);
    }
    assert!(block_on(numbers.next()).is_none());
    // Its worker may still be on its way out, with the state in its hands.
    wait_until_idle(&lanes.cpu.handle());
    numbers
}

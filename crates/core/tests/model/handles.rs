//! What a handle carries, by the way in which it was got: each cell of that table, by a job that is
//! submitted there.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::{self, Stream};
use twolane_core::io::Bridged;
use twolane_core::{Handle, JoinError, JoinErrorKind, Priority, Task};

use crate::calls::{Carries, Got};
use crate::support::{Lanes, lanes_with, thread_name};

/// As the documentation has it: of `with_deadline`, `with_name`, `with_priority`, `without_limit`,
/// `spawn_io`, and `current`.
fn is_carried(got: Got, carries: Carries) -> bool {
    match carries {
        Carries::High | Carries::Low => true,
        // "Inside the jobs themselves the current handle has no name", and no key.
        Carries::Name | Carries::Key => !IN_JOBS.contains(&got) && got != Got::InStreamFromCpu,
        // "It applies to the jobs and permits of this handle": to the one in which another would be
        // submitted, too, which then never starts.
        Carries::DeadlinePassed => got == Got::Direct || IN_JOBS.contains(&got),
        Carries::DeadlineAhead => got == Got::Direct,
        // What a job submits needs no permit at all.
        Carries::NoLimit => true,
    }
}

const IN_JOBS: [Got; 3] = [Got::InJob, Got::InFuture, Got::InFutureByIo];

const ALL: [Carries; 7] = [
    Carries::High,
    Carries::Low,
    Carries::Name,
    Carries::Key,
    Carries::DeadlineAhead,
    Carries::DeadlinePassed,
    Carries::NoLimit,
];

const WAYS: [Got; 10] = [
    Got::Direct,
    Got::Entered,
    Got::ProcessDefault,
    Got::InSpawnIo,
    Got::InIoSpawn,
    Got::InJob,
    Got::InFuture,
    Got::InFutureByIo,
    Got::InStreamFromIo,
    Got::InStreamFromCpu,
];

fn carrying(cpu: &Handle, carries: Carries) -> Handle {
    let hour = Duration::from_secs(3_600);
    match carries {
        Carries::High => cpu.with_priority(Priority::High),
        Carries::Low => cpu.with_priority(Priority::Low),
        Carries::Name => cpu.with_name("carried"),
        Carries::Key => cpu.with_key("carried"),
        Carries::DeadlineAhead => cpu.with_deadline(Instant::now() + hour),
        Carries::DeadlinePassed => cpu.with_deadline(Instant::now()),
        Carries::NoLimit => cpu.without_limit(),
    }
}

/// A permit that was got there.
struct Seen {
    has_deadline: bool,
    has_key: bool,
}

/// Submits there.
fn submit(by: &Handle) -> (Task<String>, Seen) {
    let permit = format!("{:?}", by.try_reserve());
    let seen = Seen {
        has_deadline: permit.contains("deadline: Some"),
        has_key: permit.contains("\"carried\""),
    };
    (by.spawn_cpu(thread_name), seen)
}

fn submit_by_current() -> (Task<String>, Seen) {
    submit(&Handle::current())
}

fn submits() -> impl Stream<Item = (Task<String>, Seen)> + Send {
    stream::once(async { submit_by_current() })
}

fn read<T>(mut stream: Bridged<T>) -> T {
    block_on(stream.next()).expect("one item").unwrap()
}

/// With the thread that the job ran on.
fn seen(handle: &Handle, got: Got) -> Result<(String, Seen), JoinError> {
    let (task, seen) = match got {
        Got::Direct => submit(handle),
        Got::Entered => {
            let _entered = handle.enter();
            submit_by_current()
        }
        Got::ProcessDefault => {
            Handle::set_process_default(Some(handle.clone()));
            let submitted = submit_by_current();
            Handle::set_process_default(None);
            submitted
        }
        Got::InSpawnIo => handle.spawn_io(async { submit_by_current() }).wait()?,
        Got::InIoSpawn => handle.io().spawn(async { submit_by_current() }).wait()?,
        Got::InJob => handle.spawn_cpu(submit_by_current).wait()?,
        Got::InFuture => handle.spawn(async { submit_by_current() }).wait()?,
        Got::InFutureByIo => {
            let by_io = async { twolane_core::spawn_io(async { submit_by_current() }).await };
            handle.spawn(by_io).wait()??
        }
        Got::InStreamFromIo => read(handle.stream_from_io(submits(), 1, |_| 1)),
        Got::InStreamFromCpu => read(handle.stream_from_cpu(submits(), 1, |_| 1)),
    };
    task.wait().map(|thread| (thread, seen))
}

fn check(Lanes { cpu, io: _io }: &Lanes, got: Got, carries: Carries) {
    let handle = carrying(cpu.handle(), carries);
    let full = (carries == Carries::NoLimit).then(|| cpu.handle().try_reserve().unwrap());
    let seen = seen(&handle, got);
    drop(full);
    let is_carried = is_carried(got, carries);
    if let Err(error) = &seen {
        assert_eq!(error.kind(), JoinErrorKind::Expired, "{error}");
    }
    let is_refused = is_carried && carries == Carries::DeadlinePassed;
    assert_eq!(seen.is_err(), is_refused);
    let Ok((thread, permit)) = seen else {
        return;
    };
    let expected = match carries {
        Carries::High => "cpu-high-0",
        Carries::Low => "cpu-low-0",
        _ => "cpu-0",
    };
    assert_eq!(thread, expected);
    let has_deadline = is_carried && carries == Carries::DeadlineAhead;
    assert_eq!(permit.has_deadline, has_deadline);
    assert_eq!(permit.has_key, is_carried && carries == Carries::Key);
    let sites = cpu.handle().call_sites();
    let all: u64 = sites.iter().map(|site| site.jobs).sum();
    let named = sites.iter().filter(|site| site.site == "carried");
    let named: u64 = named.map(|site| site.jobs).sum();
    // All jobs of the cell have the name, but for one that a job has submitted.
    let unnamed = u64::from(!is_carried);
    let expected = match carries {
        Carries::Name => all - unnamed,
        _ => 0,
    };
    assert_eq!(named, expected);
}

/// A deadline went along where the documentation says that it does not: a process whose default
/// handle had one refused each call of a free function for ever, once it had passed, and so did a
/// future of `spawn_io`.
#[test]
fn a_handle_carries_what_the_documentation_says_however_it_was_got() {
    for got in WAYS {
        for carries in ALL {
            println!("{got:?}, {carries:?}");
            let lanes = lanes_with(1, |builder| builder.queue_limit(Priority::Normal, 1));
            check(&lanes, got, carries);
        }
    }
}

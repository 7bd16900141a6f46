//! `install`: does it run where it says, and never wait for itself?

use std::panic;
use std::sync::mpsc;

use crate::support::{Lanes, lanes, lanes_with, thread_name, use_all};
use twolane_core::{Handle, JoinErrorKind, Priority};

/// `install` is for plain threads: it borrows, runs on the lane's threads, and
/// carries a panic as an error.
#[test]
fn it_borrows() {
    let lanes = lanes(2);
    let words = ["a".to_owned(), "bc".to_owned()];
    let job = || (words.iter().map(String::len).sum::<usize>(), thread_name());
    let (total, name) = lanes.cpu.handle().install(job).unwrap();
    assert_eq!(total, 3);
    assert!(name.starts_with("cpu-"), "{name}");
    let error = lanes.cpu.handle().install(|| panic!("inside")).unwrap_err();
    assert_eq!(error.to_string(), "the job panicked: inside");
    lanes.cpu.shutdown().wait();
    assert!(lanes.cpu.handle().install(|| ()).unwrap_err().kind() == JoinErrorKind::Shutdown);
}

#[test]
fn it_brings_the_threads_of_its_priority() {
    let Lanes { cpu, io: _io } = lanes(1);
    let high = cpu.handle().with_priority(Priority::High);
    assert_eq!(high.install(thread_name).unwrap(), "cpu-high-0");
    // From a worker of another priority, which waits meanwhile.
    let low = cpu.handle().with_priority(Priority::Low);
    let nested = cpu.spawn_cpu(move || low.install(thread_name).unwrap());
    assert_eq!(nested.wait().unwrap(), "cpu-low-0");
}

/// The thread that it would wait for is the one that runs the hook.
#[test]
fn a_start_hook_may_not() {
    let (tell, told) = mpsc::channel();
    let hook = move || {
        let install = || Handle::current().install(|| 1);
        let error = panic::catch_unwind(install).unwrap_err();
        let text = error.downcast_ref::<&str>().copied().unwrap_or_default();
        tell.send(text.contains("`on_thread_start`")).unwrap();
    };
    let Lanes { cpu, io: _io } = lanes_with(1, |lane| lane.on_thread_start(hook));
    use_all(&cpu);
    // A thread of each priority.
    assert_eq!([(); 3].map(|()| told.recv().unwrap()), [true; 3]);
    assert_eq!(cpu.handle().install(|| 2).unwrap(), 2);
}

//! `cancel_flag`: does the library end, and when not?

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;

use twolane::CpuRuntime;

use crate::cancel_flag::run;
use crate::lanes_of;
use crate::support::Lanes;

#[test]
fn it_is_set_when_the_awaiter_is_gone_and_not_before() {
    let Lanes { cpu, io } = lanes_of(|| CpuRuntime::builder().worker_threads(1).build());
    let (begins, begun) = mpsc::channel();
    let (ends, ended) = mpsc::channel();
    let handle = cpu.handle().clone();
    let request = io.spawn(async move {
        let library = run(&handle, move |stop| {
            begins.send(stop.load(SeqCst)).unwrap();
            while !stop.load(SeqCst) {
                std::thread::yield_now();
            }
            ends.send(()).unwrap();
        });
        library.await.unwrap();
    });
    assert!(!begun.recv().unwrap());
    request.abort();
    ended.recv().unwrap();
    let whole = io.block_on(run(cpu.handle(), |stop| stop.load(SeqCst)));
    assert!(!whole.unwrap());
}

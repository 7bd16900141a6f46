//! The time limit of a test.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// A hang is a bug of the first rank: a test that holds this for longer than
/// three minutes takes the whole process down, by name. The states of its threads tell a hang from
/// a machine that is too busy: a niced thread that is runnable (`R`) and waits for a core may wait
/// for a second each time, and longer the more other processes compute.
pub fn time_limit() -> TimeLimit {
    time_limit_or(String::new)
}

fn time_limit_or(report: impl FnOnce() -> String + Send + 'static) -> TimeLimit {
    let (alive, watch) = mpsc::channel::<()>();
    let test = thread_name();
    std::thread::spawn(move || {
        // The test drops its end, in whatever way it ends.
        if watch.recv_timeout(Duration::from_secs(180)) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Not by `eprintln!`, which the harness would capture.
            let threads = threads();
            let _ = writeln!(std::io::stderr(), "the test {test} hangs\n{threads}");
            // It may hang, too.
            let (tell, told) = mpsc::channel();
            std::thread::spawn(move || tell.send(report()));
            let report = told.recv_timeout(Duration::from_secs(10));
            let report = report.unwrap_or_else(|_| "no report".to_owned());
            let _ = writeln!(std::io::stderr(), "{report}\naborting");
            std::process::abort();
        }
    });
    TimeLimit { _alive: alive }
}

thread_local! {
    static LIMIT: RefCell<Option<TimeLimit>> = const { RefCell::new(None) };
}

/// [`time_limit`], until this thread ends or builds another lane. Each test has a thread of its own;
/// one that builds its lane on another thread needs a limit besides.
pub fn limit_this_thread() {
    limit_this_thread_or(String::new);
}

/// The same in place of it, with more to tell of a hang.
pub fn limit_this_thread_or(report: impl FnOnce() -> String + Send + 'static) {
    LIMIT.set(Some(time_limit_or(report)));
}

/// A line for each thread of this process, where `/proc` tells of them.
fn threads() -> String {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks
        .filter_map(|task| thread_line(&task.ok()?.path()))
        .collect()
}

fn thread_line(task: &Path) -> Option<String> {
    let read = |file| fs::read_to_string(task.join(file)).ok();
    let (name, stat, times) = (read("comm")?, read("stat")?, read("schedstat")?);
    // The name comes before it, in parentheses, and may have any character.
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    let mut ms = times
        .split_whitespace()
        .map_while(|ns| Some(ns.parse::<u64>().ok()? / 1_000_000));
    let (computed, waited) = (ms.next()?, ms.next()?);
    let name = name.trim_end();
    Some(format!(
        "  {name}: {state}, computed for {computed} ms, waited for a core for {waited} ms\n"
    ))
}

pub struct TimeLimit {
    _alive: mpsc::Sender<()>,
}

pub fn thread_name() -> String {
    std::thread::current().name().unwrap_or("?").to_owned()
}

//! What names may hold, how much of them is kept, and what waits for them.
//!
//! Seen once: a name of 65,536 characters, and `call_sites().to_string()` panicked for good,
//! since the name's length was a width in a format. A newline in a name forged a line of the
//! table. Fifty names of 10 MB took 530 MiB for good. And a thread of `Low` that brought a
//! long name copied it under a lock that every submission by name waited for.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use crate::support::{child, lanes, on_both, time_limit};
use twolane::Backend;

/// As documented at `Handle::with_name`, in bytes.
const LONGEST: usize = 256;

#[test]
fn a_long_name_is_cut() {
    on_both(1, |lanes| {
        // Of one, two and four bytes each.
        for letter in ["x", "é", "🦀"] {
            let name = letter.repeat(65_536);
            lanes
                .cpu
                .handle()
                .with_name(&name)
                .spawn_cpu(|| ())
                .wait()
                .unwrap();
        }
        let just = "y".repeat(LONGEST);
        lanes
            .cpu
            .handle()
            .with_name(&just)
            .spawn_cpu(|| ())
            .wait()
            .unwrap();
        let sites = lanes.cpu.handle().call_sites();
        let table = sites.to_string();
        assert_eq!(table.lines().count(), 5, "{table}");
        for site in &sites {
            let name = &site.site;
            assert!(name.len() <= LONGEST && name.len() > LONGEST - 4, "{name}");
            assert_eq!(name.ends_with('…'), *name != just, "{name}");
        }
    });
}

#[test]
fn a_name_forges_no_line_of_the_table() {
    const FORGED: &str = "a\nforged line  Normal\r\u{1b}[2K\u{85}\u{2028}";
    let _limit = time_limit();
    let lanes = lanes(Backend::Rayon, 1);
    lanes
        .cpu
        .handle()
        .with_name(FORGED)
        .spawn_cpu(|| ())
        .wait()
        .unwrap();
    let sites = lanes.cpu.handle().call_sites();
    assert_eq!(sites[0].site, FORGED, "the name is what was given");
    let table = sites.to_string();
    assert_eq!(table.lines().count(), 2, "{table}");
    let is_control = |c: char| c.is_control() && c != '\n' || c == '\u{2028}';
    assert!(!table.contains(is_control), "{table:?}");
    assert!(table.contains(r"a\nforged line"), "{table}");
    // The columns stand below each other.
    let column = |line: usize, text: &str| {
        let line = table.lines().nth(line).unwrap();
        line[..line.rfind(text).unwrap()].chars().count()
    };
    assert_eq!(column(0, "priority"), column(1, "Normal"), "{table}");
}

/// A line of this process's `status`, in kB or plain.
fn status(of: &str, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{of}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// In a process of its own, whose memory is that of these names.
#[cfg(target_os = "linux")]
#[test]
fn names_are_not_kept_whole() {
    const NAMES: usize = 50;
    const LENGTH: usize = 10 << 20;
    let _limit = time_limit();
    if !child::is_child() {
        let kept = child::run("names::names_are_not_kept_whole", |_| (), |_| ());
        let kept: u64 = kept.parse().unwrap();
        assert!(kept < 32 << 10, "{kept} kB for {NAMES} names");
        return;
    }
    let lanes = lanes(Backend::Rayon, 1);
    let mut name = "x".repeat(LENGTH);
    lanes.cpu.handle().with_name(&name);
    let before = status("self", "VmRSS");
    for n in 0..NAMES {
        name.replace_range(..2, &format!("{n:02}"));
        lanes.cpu.handle().with_name(&name);
    }
    child::found(status("self", "VmRSS").saturating_sub(before));
}

/// The sleeps of a thread that looks a known name up, while another one brings new ones. In a
/// process of its own, whose table of names has room.
#[cfg(target_os = "linux")]
#[test]
fn no_submission_waits_for_a_name_that_another_thread_brings() {
    const NAMES: usize = 50;
    let _limit = time_limit();
    if !child::is_child() {
        let test = "names::no_submission_waits_for_a_name_that_another_thread_brings";
        let slept: u64 = child::run(test, |_| (), |_| ()).parse().unwrap();
        assert!(slept < 10, "{slept} sleeps");
        return;
    }
    let lanes = lanes(Backend::Rayon, 1);
    let cpu = lanes.cpu.handle();
    cpu.with_name("known");
    let (begin, is_over) = (Barrier::new(2), AtomicBool::new(false));
    let slept = thread::scope(|scope| {
        scope.spawn(|| {
            let mut name = "x".repeat(4 << 20);
            begin.wait();
            for n in 0..NAMES {
                name.replace_range(..3, &format!("{n:03}"));
                cpu.with_name(&name);
            }
            is_over.store(true, SeqCst);
        });
        begin.wait();
        let before = status("thread-self", "voluntary_ctxt_switches");
        while !is_over.load(SeqCst) {
            cpu.with_name("known");
        }
        status("thread-self", "voluntary_ctxt_switches") - before
    });
    child::found(slept);
}

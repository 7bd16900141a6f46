//! The stack of a thread that computes, taken by another thread of the process.
//!
//! The watcher opens a `perf_event` on the suspected thread, and the kernel samples it:
//! after each [`SAMPLES`]th part of the time that the watcher grants, counted in CPU time
//! of that thread, it writes the thread's registers and the innermost [`STACK`] bytes of
//! its stack to a ring buffer. The thread gets no signal, takes no lock and runs none of
//! our code, and a thread that sleeps gives no sample. Once the time is over the watcher
//! copies the samples and closes the event.
//!
//! [`Samples::resolve`] does the slow part. It may run on any thread but a worker of
//! the runtime, since it reads the program's file. It unwinds the samples by `.eh_frame`, which
//! Rust's compiler writes for every function, with frame pointers and without, and names
//! the functions by the symbol table, and by DWARF where the program has it. It keeps
//! nothing: the next call sees the libraries that are loaded then, and between two stalls
//! nothing of this is in memory. It takes longer the more debug information the program
//! has, and longest where it was compiled without optimization, and so this code as well.
//! Without line tables a
//! function that was inlined is not named: `debug = "line-tables-only"` in the profile
//! names it.
//!
//! Of all samples one is shown: one with the most frequent innermost function, and among
//! these the one that shares most of its functions with the others. Frames at its outer
//! end that start threads, poll tasks or serve connections are left out.
//!
//! The kernel refuses the event where `kernel.perf_event_paranoid` exceeds 2 (Debian and
//! Ubuntu set 3 and 4) and in containers whose seccomp profile forbids it (Docker's
//! default). A thread id that was reused in another process
//! gives no sample, because each sample carries the id of its process.

use std::collections::{HashMap, HashSet};
use std::time::Duration;
use std::{io, process, thread};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use super::images::{Frame, Images, REGISTERS, Registers};

/// As many as fit into the ring.
const SAMPLES: u32 = 7;
const STACK: u32 = 32 * 1024;
/// Below `kernel.perf_event_mlock_kb`, of which each user has 516 KiB a core.
const RING: usize = 256 * 1024;
const SHOWN: usize = 12;

/// Samples the stack of another thread of this process. Blocks the caller for `time`. Gives `None`
/// if the thread did not compute, was given no core, or has ended.
pub(crate) fn sample(thread: u32, time: Duration) -> io::Result<Option<Samples>> {
    let mut sampler = match open(thread, time / SAMPLES) {
        Err(error) if error.raw_os_error() == Some(NO_SUCH_THREAD) => return Ok(None),
        opened => opened?,
    };
    sampler.as_counter_mut().enable()?;
    thread::sleep(time);
    sampler.as_counter_mut().disable()?;
    let mut samples = Vec::new();
    while let Some(record) = sampler.next_record() {
        let Ok(Record::Sample(sample)) = record.parse_record() else {
            continue;
        };
        if sample.pid() != Some(process::id()) {
            continue;
        }
        let registers = sample.regs_user();
        let registers = registers.and_then(|taken| Registers::new(&taken.regs));
        if let (Some(registers), Some(stack)) = (registers, sample.stack_user()) {
            samples.push((registers, stack.to_vec()));
        }
    }
    Ok((!samples.is_empty()).then_some(Samples(samples)))
}

const NO_SUCH_THREAD: i32 = rustix::io::Errno::SRCH.raw_os_error();

fn open(thread: u32, period: Duration) -> io::Result<Sampler> {
    let period = period.max(Duration::from_micros(100)).as_nanos();
    // A clock, because virtual machines may have no hardware counters. The builder leaves
    // the kernel's own stack out, which an unprivileged process may not see.
    let mut event = Builder::new(Software::TASK_CLOCK);
    event.observe_pid(thread as i32).any_cpu();
    event.sample_period(period.try_into().unwrap_or(u64::MAX));
    event.sample(SampleFlag::TID | SampleFlag::REGS_USER | SampleFlag::STACK_USER);
    event.sample_regs_user(REGISTERS).sample_stack_user(STACK);
    event.build()?.sampled(RING)
}

/// What [`sample`] took, not yet unwound.
#[derive(Debug)]
pub(crate) struct Samples(Vec<(Registers, Vec<u8>)>);

impl Samples {
    /// Reads the files of the program and of its libraries. Gives a line for each function, the
    /// innermost first, without a newline at the end.
    pub(crate) fn resolve(self) -> Option<String> {
        let mut images = Images::load().ok()?;
        let samples = self.0.iter();
        let stacks = samples.map(|(registers, stack)| images.unwind(*registers, stack));
        let stacks: Vec<Vec<u64>> = stacks.collect();
        let names = images.names(stacks.concat());
        let stacks = stacks.iter().map(|stack| {
            let frames = stack.iter().flat_map(|address| &names[address]).cloned();
            frames.collect::<Vec<Frame>>()
        });
        Some(shown(&stacks.collect::<Vec<_>>())).filter(|stack| !stack.is_empty())
    }
}

/// The text of the one of these stacks that is shown.
fn shown(stacks: &[Vec<Frame>]) -> String {
    let mut leaves = HashMap::<&str, usize>::new();
    let mut counts = HashMap::<&str, usize>::new();
    for stack in stacks {
        if let Some(leaf) = stack.first() {
            *leaves.entry(&leaf.function).or_default() += 1;
        }
        let names: HashSet<&str> = stack.iter().map(|frame| &*frame.function).collect();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
    }
    let rank = |stack: &&Vec<Frame>| {
        let leaf = stack.first().map(|frame| leaves[&*frame.function]);
        let shared = stack.iter().map(|frame| counts[&*frame.function]);
        (leaf, shared.sum::<usize>())
    };
    let shown = stacks.iter().max_by_key(rank);
    let shown = without_runtime(shown.map_or(&[], Vec::as_slice));
    // The standard library's functions tell what is computed, at the inner end. Farther
    // out they are the iterators and closures that the program's functions call each
    // other through.
    let of_std = |frame: &Frame| frame.krate().is_none_or(|krate| STD.contains(&krate));
    let own = shown.iter().position(|frame| !of_std(frame));
    let (inner, outer) = shown.split_at(own.unwrap_or(shown.len()));
    let outer = outer.iter().filter(|frame| !of_std(frame));
    let mut frames: Vec<&Frame> = inner.iter().chain(outer).collect();
    // Recursion.
    frames.dedup_by(|inner, outer| inner.function == outer.function);
    let line = |frame: &&Frame| match counts[&*frame.function] {
        all if all == stacks.len() => frame.to_string(),
        some => format!("{frame}, in {some} of {} samples", stacks.len()),
    };
    let mut lines: Vec<String> = frames.iter().map(line).collect();
    // Of a deep stack both ends: what computes, and what called it.
    if let Some(hidden @ 1..) = lines.len().checked_sub(SHOWN) {
        let middle = SHOWN / 2..SHOWN / 2 + hidden;
        lines.splice(middle, [format!(".. {hidden} more")]);
    }
    lines.join("\n")
}

/// Without the outer frames that any program has. Where nothing else is there, since the
/// program's functions were inlined and line tables are missing, the server's frames are
/// kept; and all of them, where there are none of a server either.
fn without_runtime(frames: &[Frame]) -> &[Frame] {
    let outermost_but = |left_out: &[&[&str]]| {
        let left_out = left_out.concat();
        let own = |frame: &Frame| {
            frame
                .krate()
                .is_some_and(|krate| !left_out.contains(&krate))
        };
        frames.iter().rposition(own)
    };
    let end =
        outermost_but(&[&STD, &RUNTIMES, &SERVERS]).or_else(|| outermost_but(&[&STD, &RUNTIMES]));
    end.map_or(frames, |end| &frames[..=end])
}

const STD: [&str; 3] = ["alloc", "core", "std"];
#[rustfmt::skip]
const RUNTIMES: [&str; 6] = [
    "rayon", "rayon_core", "stallwatch", "tokio", "tracing", "twolane",
];
#[rustfmt::skip]
const SERVERS: [&str; 13] = [
    "axum", "axum_core", "futures", "futures_core", "futures_util", "h2", "hyper",
    "hyper_util", "tonic", "tower", "tower_http", "tower_layer", "tower_service",
];

#[cfg(test)]
mod tests;

//! Which jobs go by which site, and what is counted there? (What is advised for which
//! figures: beside the code.)

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, mpsc};

use crate::support::wait::wait_until;
use crate::support::{Stuck, child, gives, lanes, nothing, time_limit};
use futures::{StreamExt, stream};
use twolane_core::metrics::CallSite;
use twolane_core::{Handle, Priority};

/// The jobs of each site.
fn jobs(cpu: &Handle) -> BTreeMap<String, u64> {
    let sites = cpu.call_sites();
    let jobs = sites.iter().map(|site| (site.site.clone(), site.jobs));
    jobs.collect()
}

fn only(cpu: &Handle) -> CallSite {
    let mut sites = cpu.call_sites().into_iter();
    let site = sites.next().unwrap();
    assert!(sites.next().is_none());
    site
}

#[test]
fn a_line_is_a_site() {
    let (cpu, _lanes) = lanes(2).and_handle();
    assert!(cpu.call_sites().is_empty());
    let again = || (line!(), cpu.spawn_cpu(gives(1)).wait().unwrap());
    let (line, _) = again();
    again();
    let other = (line!(), cpu.spawn_cpu(gives(1)).wait().unwrap()).0;
    let expected = [(line, 2), (other, 1)];
    let expected = expected.map(|(line, jobs)| (format!("{}:{line}", file!()), jobs));
    assert_eq!(jobs(&cpu), BTreeMap::from(expected));
}

/// Each once, from a line of its own in this file.
#[test]
fn all_forms_know_their_caller() {
    let (cpu, lanes) = lanes(2).and_handle();
    let reserve = || cpu.reserve().wait().unwrap();
    cpu.spawn_cpu(nothing).wait().unwrap();
    cpu.spawn_cpu_with(|_| Ok(())).wait().unwrap();
    cpu.spawn(async {}).wait().unwrap();
    reserve().spawn_cpu(nothing).wait().unwrap();
    reserve().spawn_cpu_with(|_| Ok(())).wait().unwrap();
    reserve().spawn(async {}).wait().unwrap();
    {
        let _entered = cpu.enter();
        twolane_core::spawn_cpu(nothing).wait().unwrap();
    }
    let bridged = cpu.stream_from_cpu(stream::iter([1]), 8, |_| 1);
    assert_eq!(lanes.io.block_on(bridged.count()), 1);
    cpu.install(|| ()).unwrap();
    let jobs = jobs(&cpu);
    assert_eq!(jobs.len(), 9, "{jobs:?}");
    let is_here = |(site, jobs): (&String, &u64)| site.starts_with(file!()) && *jobs == 1;
    assert!(jobs.iter().all(is_here), "{jobs:?}");
}

/// A closure that hangs on a lane whose jobs are known to be short, or on a new one: who asks why the
/// next job does not begin finds it.
#[test]
fn what_runs_now_is_listed_with_its_time() {
    for jobs_before in [0, 100] {
        let lanes = lanes(1);
        let cpu = lanes.cpu.handle().with_name("sends");
        let job = |hang: Option<mpsc::Receiver<()>>| {
            cpu.spawn_cpu(move || hang.map(|hang| hang.recv().unwrap()))
        };
        for _ in 0..jobs_before {
            job(None).wait().unwrap();
        }
        let (let_go, hang) = mpsc::channel();
        let hangs = job(Some(hang));
        wait_until(|| cpu.call_sites().iter().any(|site| site.running == 1));
        let first = only(&cpu);
        let waits = cpu.with_name("waits").spawn_cpu(nothing);
        let sites = cpu.call_sites();
        let [sends, waiting] = &sites[..] else {
            panic!("{sites:?}");
        };
        assert_eq!((sends.site.as_str(), sends.running), ("sends", 1));
        assert!(sends.running_for > first.running_for, "{sites}");
        assert_eq!((waiting.running, waiting.running_for), (0, None));
        let_go.send(()).unwrap();
        hangs.wait().unwrap();
        waits.wait().unwrap();
        let sites = cpu.call_sites();
        let is_idle = |site: &CallSite| (site.running, site.running_for) == (0, None);
        assert!(sites.iter().all(is_idle), "{sites}");
    }
}

#[test]
fn a_name_replaces_the_line() {
    let (cpu, _lanes) = lanes(1).and_handle();
    let decode = cpu.with_name("decode");
    decode.spawn_cpu(nothing).wait().unwrap();
    decode.spawn(async {}).wait().unwrap();
    cpu.with_name("decode").spawn_cpu(nothing).wait().unwrap();
    cpu.with_name("encode").spawn_cpu(nothing).wait().unwrap();
    // The job's own handle has none.
    let nested = decode.spawn_cpu(|| Handle::current().spawn_cpu(nothing));
    nested.wait().unwrap().wait().unwrap();
    let mut jobs = jobs(&cpu);
    let named = ["decode", "encode"].map(|name| jobs.remove(name));
    assert_eq!(named, [Some(4), Some(1)]);
    let (line, one) = jobs.pop_first().unwrap();
    assert!(line.starts_with(file!()) && one == 1 && jobs.is_empty());

    // Each priority is an entry of its own.
    let low = decode.with_priority(Priority::Low);
    low.spawn_cpu(nothing).wait().unwrap();
    let of_low = |site: &CallSite| (site.site == "decode").then_some((site.priority, site.jobs));
    let mut found: Vec<_> = low.call_sites().iter().filter_map(of_low).collect();
    found.sort_by_key(|(_, jobs)| *jobs);
    assert_eq!(found, [(Priority::Low, 1), (Priority::Normal, 4)]);
}

/// More threads than a counter has shards. What never runs counts too: as in `Metrics`.
#[test]
fn counts_are_exact() {
    const THREADS: u64 = 12;
    const JOBS: u64 = 2_000;
    let (cpu, _lanes) = lanes(2).and_handle();
    let (ran, start) = (AtomicU64::new(0), Barrier::new(THREADS as usize));
    let odd = cpu.with_name("odd");
    let submit = |n: u64| {
        let task = match n % 4 {
            1 | 3 => odd.spawn_cpu(gives(1)),
            _ => cpu.spawn(async { 1 }),
        };
        if n % 4 == 3 {
            task.abort();
        }
        ran.fetch_add(task.wait().unwrap_or(0), Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                (0..JOBS).for_each(submit);
            });
        }
    });
    let jobs = jobs(&cpu);
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs["odd"], THREADS * JOBS / 2);
    assert_eq!(jobs.values().sum::<u64>(), THREADS * JOBS);
    assert_eq!(jobs.values().sum::<u64>(), cpu.metrics().submitted);
    assert!(ran.into_inner() >= THREADS * JOBS * 3 / 4);
    // Of each there are enough, and not nearly all.
    for site in &cpu.call_sites() {
        assert!(site.samples >= 32, "{site:?}");
        assert!(site.samples < site.jobs / 2, "{site:?}");
    }
}

#[test]
fn the_first_runs_are_all_timed() {
    let (cpu, _lanes) = lanes(1).and_handle();
    let running = Stuck::start(&cpu);
    let site = only(&cpu);
    assert_eq!((site.jobs, site.samples), (1, 0));
    assert_eq!(site.run_mean, None);
    running.end();
    let site = only(&cpu);
    assert_eq!(site.samples, 1);
    assert_eq!(site.run_mean, Some(site.total_run));

    // A future has a run for each poll, also if it panics in the last one.
    let yields = cpu.with_name("yields").spawn(async {
        for _ in 0..9 {
            twolane_core::yield_now().await;
        }
        panic!("planned");
    });
    yields.wait().unwrap_err();
    let sites = cpu.call_sites();
    let yields = sites.iter().find(|site| site.site == "yields").unwrap();
    assert_eq!((yields.jobs, yields.samples), (1, 10));
}

/// The table of the process is full for good: so it is another process's.
#[test]
fn names_by_mistake_do_not_fill_the_memory() {
    const NAMES: u64 = 5_000;
    let _limit = time_limit();
    let test = "call_sites::names_by_mistake_do_not_fill_the_memory";
    if !child::is_child() {
        assert_eq!(child::run(test, |_| (), |_| ()), "it holds");
        return;
    }
    let (cpu, _lanes) = lanes(2).and_handle();
    for n in 0..NAMES {
        let named = cpu.with_name(&format!("request {n}"));
        named.spawn_cpu(nothing).wait().unwrap();
    }
    let jobs = jobs(&cpu);
    assert!(jobs.len() <= 4_096, "{}", jobs.len());
    assert_eq!(jobs["request 0"], 1);
    assert_eq!(jobs.values().sum::<u64>(), NAMES);
    assert_eq!(jobs["other"], NAMES - (jobs.len() as u64 - 1));
    child::found("it holds");
}

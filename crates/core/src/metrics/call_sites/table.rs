//! What a level counts and times for each [`Name`].
//!
//! **Jobs** are counted one by one, at their submission. **Steps** (each run of a closure,
//! each poll of a future) are timed in samples: the first of a site, and then one in
//! [`ONE_IN`] that a thread runs, each with the weight of those that it stands for.
//!
//! The samples are chosen as if by chance: jobs often come in a pattern, and a sample of
//! each thirty-second would find the same kind of job each time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use giveway::cpu_time;
use once_cell::race::OnceBox;
use stallwatch::Name;

use super::CallSite;
use super::length::{self, Length, MeanTime};
use super::mean::Mean;
use crate::metrics::clock::now;
use crate::metrics::histogram::COARSE;
use crate::metrics::timings::Timings;
use crate::priority::Priority;

const ONE_IN: u64 = 32;
/// All steps of a site are samples until it has so many. Jobs of a second are few.
const FIRST: u64 = 64;

/// For the threads that submit.
const SHARDS: usize = 8;

/// A step that is a sample.
pub(crate) struct Sample<'a> {
    site: &'a Counters,
    weight: u64,
    wait: Option<u64>,
    pub(crate) begun: u64,
    /// The CPU time of the thread then, where the system tells it.
    cpu: Option<Duration>,
}

impl<'a> Sample<'a> {
    #[cold]
    fn begin(site: &'a Counters, weight: u64, queued_at: u64) -> Self {
        let begun = now();
        Self {
            site,
            weight,
            wait: (queued_at != 0).then(|| begun.saturating_sub(queued_at)),
            begun,
            cpu: cpu_time(),
        }
    }

    /// Ends the step. Returns for how much time it stands, and whether its site is long.
    pub(crate) fn end(&self) -> (Duration, bool) {
        let ran = now().saturating_sub(self.begun);
        let cpu = self.cpu.zip(cpu_time());
        let computed = cpu.map(|(begun, now)| now.saturating_sub(begun));
        self.add(ran);
        let computed = length_of(Duration::from_nanos(ran), computed);
        self.site.mean.add(computed.min(length::MOST));
        let time = match self.weight {
            1 => computed,
            steps => computed.min(length::MOST) * steps as u32,
        };
        (time, length::is_long(&self.site.mean))
    }

    fn add(&self, ran: u64) {
        let Self { site, weight, .. } = *self;
        match weight {
            1 => site.first.fetch_add(1, Relaxed),
            _ => site.later.fetch_add(1, Relaxed),
        };
        site.ran.fetch_add(ran.saturating_mul(weight), Relaxed);
        if let Some(timings) = &site.timings {
            timings.steps.add(ran, weight);
            if let Some(wait) = self.wait {
                timings.waits.add(wait, weight);
            }
        }
    }
}

#[derive(Default)]
struct Counters {
    /// By the submitter's shard.
    jobs: [CachePadded<AtomicU64>; SHARDS],
    /// The first samples. Each step reads it, so it has a line that is not written any more.
    first: CachePadded<AtomicU64>,
    /// The samples that stand for [`ONE_IN`].
    later: AtomicU64,
    mean: MeanTime,
    /// On a level with a limit in time: how long the steps take of late.
    time: Mean,
    /// How long the runs took that the samples stand for, in nanoseconds.
    ran: AtomicU64,
    /// If the lane has histograms.
    timings: Option<Box<Timings>>,
}

/// The sites of one level, in a table of 32 KB. A site that is used takes two cache lines, one for
/// each shard, and with histograms 2.7 KB.
pub(crate) struct Sites {
    has_histograms: bool,
    // Two threads may make the same one, and one of them drops its own. So no thread waits for
    // another one, which may have lost its core.
    counters: Box<[OnceBox<Counters>]>,
}

// Relaxed, here and below: a submission is counted before the job is queued, and a sample
// is added before the job's output is published. These order what an awaiter finds.
impl Sites {
    pub(crate) fn new(has_histograms: bool) -> Self {
        Self {
            has_histograms,
            counters: (0..Name::MOST).map(|_| OnceBox::new()).collect(),
        }
    }

    fn of(&self, site: Name) -> &Counters {
        let timings = || Box::new(Timings::new(COARSE));
        let new = || Counters {
            timings: self.has_histograms.then(timings),
            ..Counters::default()
        };
        self.counters[site.index() as usize].get_or_init(|| Box::new(new()))
    }

    /// Counts a job that is about to be queued. Returns how many were counted in its shard before.
    pub(crate) fn submitted(&self, site: Name, shard: usize) -> u32 {
        self.of(site).jobs[shard % SHARDS].fetch_add(1, Relaxed) as u32
    }

    /// Begins the step of that number of its thread, if it is a sample. `queued_at`: 0 if that is
    /// not known.
    #[inline]
    pub(crate) fn begin(&self, site: Name, nth: u32, queued_at: u64) -> Option<Sample<'_>> {
        let site = self.of(site);
        let weight = match site.first.load(Relaxed) {
            ..FIRST => 1,
            _ if length::is_long(&site.mean) => 1,
            _ if is_one_of_many(nth) => ONE_IN,
            _ => return None,
        };
        Some(Sample::begin(site, weight, queued_at))
    }

    /// What is known of the next step of that site.
    #[inline]
    pub(crate) fn length(&self, site: Name) -> Length {
        // The jobs of many sites, where the table of names is full.
        if site == Name::OTHER {
            return Length::Long;
        }
        let counters = self.of(site);
        length::length(&counters.mean, counters.first.load(Relaxed))
    }

    pub(crate) fn time(&self, site: Name) -> &Mean {
        &self.of(site).time
    }

    pub(crate) fn is_long(&self, site: Name) -> bool {
        length::is_long(&self.of(site).mean)
    }

    /// On a level with a limit in time: how long a step took. One that is far from short counts as
    /// a sample, so that a site which turns long is known after some steps, and not after hundreds.
    pub(crate) fn took(&self, site: Name, took: Duration) {
        let site = self.of(site);
        site.time.add(took);
        if took >= 8 * length::SHORT && !length::is_long(&site.mean) {
            site.mean.add(length::MOST);
        }
    }

    pub(crate) fn read(&self, priority: Priority, running: &[Running]) -> Vec<CallSite> {
        let counters = self.counters.iter().enumerate();
        let sites = counters.filter_map(|(index, counters)| {
            let site = Name::at(index as u32)?;
            Some(read(site, priority, counters.get()?, running))
        });
        sites.collect()
    }
}

/// A step, and how long it has lasted.
pub(crate) type Running = (Name, Duration);

fn read(site: Name, priority: Priority, counters: &Counters, running: &[Running]) -> CallSite {
    let running = running.iter().filter(|(running, _)| *running == site);
    let jobs = counters.jobs.iter().map(|jobs| jobs.load(Relaxed)).sum();
    let (first, later) = (counters.first.load(Relaxed), counters.later.load(Relaxed));
    let (runs, ran) = (first + later * ONE_IN, counters.ran.load(Relaxed));
    let timings = counters.timings.as_deref();
    let of_runs = timings.map(|of| of.steps.read()).unwrap_or_default();
    let of_waits = timings.map(|of| of.waits.read()).unwrap_or_default();
    CallSite {
        site: site.to_string(),
        priority,
        jobs,
        running: running.clone().count() as u64,
        running_for: running.map(|(_, lasted)| *lasted).max(),
        samples: first + later,
        total_run: Duration::from_nanos(ran),
        run_mean: ran.checked_div(runs).map(Duration::from_nanos),
        run_p50: of_runs.quantile(0.5),
        run_p99: of_runs.quantile(0.99),
        wait_p50: of_waits.quantile(0.5),
        wait_p99: of_waits.quantile(0.99),
    }
}

/// How long a step counts as that took so long, and computed so long if that is known.
fn length_of(ran: Duration, computed: Option<Duration>) -> Duration {
    /// On a busy machine real time tells how many threads want the core. A step that takes more
    /// than so many times its CPU time sleeps, or waits for a lock.
    const BUSY: u32 = 8;
    computed.map_or(ran, |computed| computed.max(ran / BUSY))
}

/// Of each [`ONE_IN`] numbers in a row about one, and of each arithmetic series too: the
/// multiples of the golden ratio are spread evenly.
fn is_one_of_many(nth: u32) -> bool {
    nth.wrapping_mul(0x9E37_79B9) < u32::MAX / ONE_IN as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(site: &Counters, weight: u64, wait: Option<u64>) -> Sample<'_> {
        Sample {
            site,
            weight,
            wait,
            begun: 0,
            cpu: None,
        }
    }

    #[test]
    fn the_jobs_of_many_sites_are_not_known_to_be_short() {
        let (sites, site) = (Sites::new(false), Name::named("one of few sites"));
        for _ in 0..100 {
            for site in [site, Name::OTHER] {
                Sample::begin(sites.of(site), 1, 0).end();
            }
        }
        assert_eq!(sites.length(site), Length::Short);
        assert_eq!(sites.length(Name::OTHER), Length::Long);
    }

    #[test]
    fn a_step_that_waits_is_as_long_as_one_that_computes() {
        let [tiny, long] = [20, 100_000].map(Duration::from_micros);
        assert_eq!(length_of(tiny, Some(tiny)), tiny);
        assert_eq!(length_of(8 * tiny, Some(tiny)), tiny);
        assert_eq!(length_of(long, Some(tiny)), long / 8);
        assert_eq!(length_of(long, Some(long)), long);
        assert_eq!(length_of(long, None), long);
    }

    #[test]
    fn samples_become_figures() {
        let (sites, site) = (Sites::new(true), Name::named("samples_become_figures"));
        let other = Name::named("samples_become_figures, other");
        for _ in 0..16 {
            sites.submitted(site, 0);
            sample(sites.of(site), 1, Some(50_000)).add(1_000);
        }
        for _ in 0..84 {
            sites.submitted(site, 1);
        }
        // These stand for the 84, more or less.
        sample(sites.of(site), ONE_IN, Some(50_000)).add(1_000);
        for _ in 0..15 {
            sample(sites.of(site), ONE_IN, None).add(500_000_000);
        }
        sites.submitted(other, 0);
        let read = sites.read(Priority::High, &[]);
        let [read, unused] = &read[..] else {
            panic!("{read:?}");
        };
        assert_eq!((read.jobs, read.samples), (100, 32));
        assert_eq!(read.site, "samples_become_figures");
        let total = (16 + ONE_IN) * 1_000 + 15 * ONE_IN * 500_000_000;
        assert_eq!(read.total_run, Duration::from_nanos(total));
        let within = |found: Option<Duration>, nanos: u64| {
            let found = found.unwrap().as_nanos() as u64;
            (nanos..=nanos + nanos / 4).contains(&found)
        };
        assert!(within(read.run_p50, 500_000_000) && within(read.run_p99, 500_000_000));
        assert!(within(read.wait_p50, 50_000) && within(read.wait_p99, 50_000));
        assert_eq!((unused.jobs, unused.samples, unused.run_p50), (1, 0, None));
    }

    /// One job in 32, also of those that come at each n-th place.
    #[test]
    fn samples_fit_no_pattern() {
        for step in 1..100_u32 {
            let samples = (0..32_000).filter(|n| is_one_of_many(n * step)).count();
            assert!((900..1_100).contains(&samples), "{step}: {samples}");
        }
    }

    #[test]
    fn what_stands_for_all_is_as_much_as_all() {
        let (sites, site) = (Sites::new(false), Name::named("what_stands_for_all"));
        let weights = (0..100_000).filter_map(|nth| {
            let sample = sites.begin(site, nth, 0)?;
            sample.end();
            Some(sample.weight)
        });
        let sum: u64 = weights.sum();
        assert!((99_000..101_000).contains(&sum), "{sum}");
    }

    #[test]
    fn a_sample_knows_how_long_it_waited() {
        let sites = Sites::new(true);
        let waited = |queued_at| {
            let sample = sites.begin(Name::named("a_sample"), 1, queued_at);
            sample.unwrap().wait
        };
        assert_eq!(waited(0), None);
        assert!(waited(now()).is_some());
        assert!(waited(1) >= waited(now()));
    }
}

//! What a level counts and times for each [`Name`].
//!
//! **Jobs** are counted one by one, at their submission. **Steps** (each run of a closure,
//! each poll of a future) are timed in samples: the first of a site, and then one in
//! [`ONE_IN`], each with the weight of those that it stands for. The decision for a job's
//! first step falls at its submission, since its wait begins there, and travels in the
//! job's [`Stamp`]. So a worker that runs a job which is no sample looks at one word and at
//! nothing of the site's.
//!
//! The samples are chosen as if by chance: jobs often come in a pattern, and a sample of
//! each thirty-second would find the same kind of job each time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use once_cell::race::OnceBox;
use stallwatch::Name;

use super::CallSite;
use super::length::{Length, MeanTime};
use crate::metrics::clock::now;
use crate::metrics::histogram::AtomicHistogram;
use crate::os::platform::cpu_of_thread;
use crate::priority::Priority;

const ONE_IN: u64 = 32;
/// A site's first jobs are all samples, for each shard that submits them. A later step of
/// a future is one while its site has fewer samples. Jobs of a second are few.
const FIRST: u64 = 64;

/// For the threads that submit.
const SHARDS: usize = 8;
const PAGE: usize = 64;

/// Whether a queued job's next step is a sample: in the job, beside its state.
///
/// Not decided, no, or the time at which the job was queued and the weight of the sample:
/// 31 bits in units of 4 µs, and one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u32);

impl Stamp {
    /// The job was woken in its own step, which has no thread to decide.
    pub(crate) const UNDECIDED: Self = Self(0);
    pub(crate) const NO: Self = Self(1);
    /// The first is 2: see above.
    const UNIT: u32 = 12;

    #[cold]
    fn now(weight: u64) -> Self {
        // Wraps around after 2.4 hours.
        let time = ((now() >> Self::UNIT) as u32) << 1;
        Self(time.max(2) | u32::from(weight > 1))
    }

    fn weight(self) -> u64 {
        if self.0 & 1 == 1 { ONE_IN } else { 1 }
    }

    /// The time from then to `now`. What is less than a unit counts as one.
    fn wait(self, now: u64) -> u64 {
        let units = ((now >> Self::UNIT) as u32).wrapping_sub(self.0 >> 1) & (u32::MAX >> 1);
        u64::from(units.max(1)) << Self::UNIT
    }
}

/// What a thread knows of the steps that it decides about.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    count: u64,
    /// A site of which there are samples enough, if only each [`ONE_IN`]th is one from now on.
    known: Name,
}

impl Steps {
    pub(crate) const fn new() -> Self {
        Self {
            count: 0,
            known: Name::OTHER,
        }
    }

    /// The weight of the next step of that site, if it is a sample.
    #[inline]
    fn weigh(&mut self, sites: &Sites, site: Name) -> Option<u64> {
        if site != self.known || site == Name::OTHER {
            if sites.has_few(site) {
                return Some(1);
            }
            self.known = site;
        }
        self.count = self.count.wrapping_add(1);
        is_one_of_many(self.count).then_some(ONE_IN)
    }
}

/// A step that is a sample.
pub(crate) struct Sample {
    weight: u64,
    wait: Option<u64>,
    begun: u64,
    /// The CPU time of the thread then, where the system tells it.
    cpu: Option<Duration>,
}

struct Counters {
    /// By the submitter's shard.
    jobs: [CachePadded<AtomicU64>; SHARDS],
    samples: AtomicU64,
    mean: MeanTime,
    /// The runs that the samples stand for, and their sum in nanoseconds.
    runs: AtomicU64,
    ran: AtomicU64,
    quantiles: Option<Box<Quantiles>>,
}

/// Of a lane that has histograms.
struct Quantiles {
    runs: AtomicHistogram,
    waits: AtomicHistogram,
}

impl Counters {
    fn new(has_quantiles: bool) -> Self {
        let quantiles = || Quantiles {
            runs: AtomicHistogram::coarse(),
            waits: AtomicHistogram::coarse(),
        };
        Self {
            jobs: [const { CachePadded::new(AtomicU64::new(0)) }; SHARDS],
            samples: AtomicU64::new(0),
            mean: MeanTime::new(),
            runs: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            quantiles: has_quantiles.then(|| Box::new(quantiles())),
        }
    }
}

type Page = [OnceBox<Counters>; PAGE];

/// The sites of one level. It grows by what is used: 1 KB for 64 sites, and for each one a cache
/// line, one for each shard, and with quantiles 2.7 KB.
pub(crate) struct Sites {
    has_quantiles: bool,
    // Two threads may make the same one, and one of them drops its own. So no thread waits for
    // another one, which may have lost its core.
    pages: Box<[OnceBox<Page>; Name::MOST / PAGE]>,
}

// Relaxed, here and below: a submission is counted before the job is queued, and a sample
// is added before the job's output is published. These order what an awaiter finds.
impl Sites {
    pub(crate) fn new(has_quantiles: bool) -> Self {
        let pages = Box::new([const { OnceBox::new() }; Name::MOST / PAGE]);
        Self {
            has_quantiles,
            pages,
        }
    }

    fn of(&self, site: Name) -> &Counters {
        let index = site.index() as usize;
        // Not out of bounds; and so the compiler knows.
        let page = &self.pages[index / PAGE % (Name::MOST / PAGE)];
        let page = page.get_or_init(|| Box::new([const { OnceBox::new() }; PAGE]));
        page[index % PAGE].get_or_init(|| Box::new(Counters::new(self.has_quantiles)))
    }

    /// Counts a job that is about to be queued.
    pub(crate) fn submitted(&self, site: Name, shard: usize) -> Stamp {
        let nth = self.of(site).jobs[shard % SHARDS].fetch_add(1, Relaxed);
        if nth < FIRST {
            Stamp::now(1)
        } else if is_one_of_many(nth) {
            Stamp::now(ONE_IN)
        } else {
            Stamp::NO
        }
    }

    /// For a future that was woken, and is about to be queued again.
    pub(crate) fn woken(&self, site: Name) -> Stamp {
        thread_local! {
            static WAKES: Cell<Steps> = const { Cell::new(Steps::new()) };
        }
        let mut wakes = WAKES.get();
        let weight = wakes.weigh(self, site);
        WAKES.set(wakes);
        weight.map_or(Stamp::NO, Stamp::now)
    }

    /// Begins a step, if it is a sample.
    #[inline]
    pub(crate) fn begin(&self, site: Name, queued: Stamp, steps: &mut Steps) -> Option<Sample> {
        let (weight, was_queued) = match queued {
            Stamp::UNDECIDED => (steps.weigh(self, site)?, false),
            stamp => (stamp.weight(), true),
        };
        Some(Self::sample(queued, weight, was_queued))
    }

    /// As [`begin`](Self::begin), for a job whose stamp was decided.
    pub(crate) fn begin_decided(queued: Stamp) -> Option<Sample> {
        (queued != Stamp::NO).then(|| Self::sample(queued, queued.weight(), true))
    }

    #[cold]
    fn sample(queued: Stamp, weight: u64, was_queued: bool) -> Sample {
        let begun = now();
        Sample {
            weight,
            wait: was_queued.then(|| queued.wait(begun)),
            begun,
            cpu: cpu_of_thread(),
        }
    }

    /// Ends the step.
    pub(crate) fn end(&self, site: Name, sample: &Sample) {
        let ran = now().saturating_sub(sample.begun);
        self.add(site, sample, ran);
        let cpu = sample.cpu.zip(cpu_of_thread());
        let computed = cpu.map(|(begun, now)| now.saturating_sub(begun));
        let length = length_of(Duration::from_nanos(ran), computed);
        self.of(site).mean.add(length);
    }

    /// What is known of the next step of that site.
    #[inline]
    pub(crate) fn length(&self, site: Name) -> Length {
        match site {
            // The jobs of many sites, where the table of names is full.
            Name::OTHER => Length::Long,
            site => self.of(site).mean.length(),
        }
    }

    fn add(&self, site: Name, sample: &Sample, ran: u64) {
        let counters = self.of(site);
        let weight = sample.weight;
        counters.samples.fetch_add(1, Relaxed);
        counters.runs.fetch_add(weight, Relaxed);
        counters.ran.fetch_add(ran.saturating_mul(weight), Relaxed);
        if let Some(quantiles) = &counters.quantiles {
            quantiles.runs.add(ran, weight);
            if let Some(wait) = sample.wait {
                quantiles.waits.add(wait, weight);
            }
        }
    }

    fn has_few(&self, site: Name) -> bool {
        self.of(site).samples.load(Relaxed) < FIRST
    }

    pub(crate) fn read(&self, priority: Priority) -> impl Iterator<Item = CallSite> {
        (0..Name::MOST).filter_map(move |index| {
            let page = self.pages[index / PAGE].get()?;
            let counters = page[index % PAGE].get()?;
            let site = Name::at(index as u32)?;
            Some(read(site, priority, counters))
        })
    }
}

fn read(site: Name, priority: Priority, counters: &Counters) -> CallSite {
    let jobs = counters.jobs.iter().map(|jobs| jobs.load(Relaxed)).sum();
    let samples = counters.samples.load(Relaxed);
    let (runs, ran) = (counters.runs.load(Relaxed), counters.ran.load(Relaxed));
    let quantiles = counters.quantiles.as_deref();
    let of_runs = quantiles.map(|of| of.runs.read()).unwrap_or_default();
    let of_waits = quantiles.map(|of| of.waits.read()).unwrap_or_default();
    CallSite {
        site: site.to_string(),
        priority,
        jobs,
        samples,
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
fn is_one_of_many(nth: u64) -> bool {
    nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / ONE_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(weight: u64, wait: Option<u64>) -> Sample {
        Sample {
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
                sites.end(site, &Sites::sample(Stamp::NO, 1, false));
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
            sites.add(site, &sample(1, Some(50_000)), 1_000);
        }
        for _ in 0..84 {
            sites.submitted(site, 1);
        }
        // These stand for the 84, more or less.
        sites.add(site, &sample(ONE_IN, Some(50_000)), 1_000);
        for _ in 0..15 {
            sites.add(site, &sample(ONE_IN, None), 500_000_000);
        }
        sites.submitted(other, 0);
        let read: Vec<_> = sites.read(Priority::High).collect();
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

    #[test]
    fn a_stamp_keeps_the_time_and_the_weight() {
        for weight in [1, ONE_IN] {
            let began = now();
            let stamp = Stamp::now(weight);
            assert!(stamp != Stamp::NO && stamp != Stamp::UNDECIDED);
            assert_eq!(stamp.weight(), weight);
            let hour = 3_600_000_000_000;
            let wait = stamp.wait(began + hour);
            assert!(wait <= hour + 4_096, "{wait}");
            // This thread may have slept between the two readings.
            assert!(wait >= hour - (now() - began) - 4_096, "{wait}");
        }
    }

    /// One job in 32, also of those that come at each n-th place.
    #[test]
    fn samples_fit_no_pattern() {
        for step in 1..100_u64 {
            let samples = (0..32_000).filter(|n| is_one_of_many(n * step)).count();
            assert!((900..1_100).contains(&samples), "{step}: {samples}");
        }
    }

    #[test]
    fn what_stands_for_all_is_as_much_as_all() {
        let (sites, site) = (Sites::new(false), Name::named("what_stands_for_all"));
        let weights = (0..100_000).map(|_| match sites.submitted(site, 0) {
            Stamp::NO => 0,
            stamp => stamp.weight(),
        });
        let sum: u64 = weights.sum();
        assert!((99_000..101_000).contains(&sum), "{sum}");
    }
}

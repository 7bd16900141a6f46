//! What a level counts and times for each [`Name`].
//!
//! **Jobs** are counted one by one, at their submission. **Steps** (each run of a closure,
//! each poll of a future) are timed in samples: the first of a site, and then one in
//! [`ONE_IN`] that a thread runs, each with the weight of those that it stands for.
//!
//! The samples are chosen as if by chance: jobs often come in a pattern, and a sample of
//! each thirty-second would find the same kind of job each time.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use once_cell::race::OnceBox;
use stallwatch::Name;

use super::CallSite;
use crate::pace::clock::nanos;
use crate::pace::length::{self, Length, MeanTime};
use crate::pace::{Mean, Took};
use crate::priority::Priority;

const ONE_IN: u64 = 32;
/// All steps of a site are samples until it has so many. Jobs of a second are few.
const FIRST: u64 = 64;

/// For the threads that submit.
const SHARDS: usize = 8;

/// A step that is a sample of its site.
#[derive(Clone, Copy)]
pub(crate) struct Sample<'a> {
    site: &'a Counters,
    /// For how many steps it stands.
    weight: u64,
}

impl Sample<'_> {
    /// Call when the step has ended. Returns for how long it and those that it stands for computed.
    pub(crate) fn add(self, took: &Took) -> Duration {
        let Self { site, weight } = self;
        match weight {
            1 => site.first.fetch_add(1, Relaxed),
            _ => site.later.fetch_add(1, Relaxed),
        };
        let ran = nanos(took.ran).saturating_mul(weight);
        site.ran.fetch_add(ran, Relaxed);
        site.held.add(took.held);
        let computed = took.computed.min(length::MOST);
        site.mean.add(computed);
        match weight {
            1 => took.computed,
            steps => computed * steps as u32,
        }
    }

    pub(crate) fn is_long(self) -> bool {
        length::is_long(&self.site.mean)
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
    /// How long steps hold a thread of late.
    held: Mean,
    /// How long the runs took that the samples stand for, in nanoseconds.
    ran: AtomicU64,
}

/// The sites of one level, in pages. A page is made when one of its sites is first used: most
/// programs use few. A site that is used takes two cache lines, and one more for each shard.
// Two threads may make the same page or the counters of the same site, and one of them drops its
// own. So no thread waits for another one, which may have lost its core.
pub(crate) struct Sites(Box<[OnceBox<Page>]>);

const PAGE: usize = 64;
type Page = [OnceBox<Counters>; PAGE];

// Relaxed, here and below: a submission is counted before the job is queued, and a sample
// is added before the job's output is published. These order what an awaiter finds.
impl Sites {
    pub(crate) fn new() -> Self {
        let pages = (0..Name::MOST).step_by(PAGE);
        Self(pages.map(|_| OnceBox::new()).collect())
    }

    fn of(&self, site: Name) -> &Counters {
        let site = site.index() as usize;
        let page = self.0[site / PAGE].get_or_init(|| array::from_fn(|_| OnceBox::new()).into());
        page[site % PAGE].get_or_init(Box::default)
    }

    /// Counts a job that is about to be queued. Returns how many were counted in its shard before.
    pub(crate) fn submitted(&self, site: Name, shard: usize) -> u32 {
        self.of(site).jobs[shard % SHARDS].fetch_add(1, Relaxed) as u32
    }

    /// Whether the step of that number of its thread is a sample. `all`: each step is one.
    #[inline]
    pub(crate) fn sample(&self, site: Name, nth: u32, all: bool) -> Option<Sample<'_>> {
        let site = self.of(site);
        let weight = match site.first.load(Relaxed) {
            ..FIRST => 1,
            _ if all || length::is_long(&site.mean) => 1,
            _ if is_one_of_many(nth) => ONE_IN,
            _ => return None,
        };
        Some(Sample { site, weight })
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

    /// How long a step of that site holds its thread. `None` if no sample has ended.
    pub(crate) fn held(&self, site: Name) -> Option<Duration> {
        self.of(site).held.get()
    }

    pub(crate) fn read(&self, priority: Priority, running: &[Running]) -> Vec<CallSite> {
        let pages = self.0.iter().enumerate();
        let pages = pages.filter_map(|(page, sites)| Some((page * PAGE, sites.get()?)));
        let counters = pages.flat_map(|(first, page)| (first..).zip(page));
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
    CallSite {
        site: site.to_string(),
        priority,
        jobs,
        running: running.clone().count() as u64,
        running_for: running.map(|(_, lasted)| *lasted).max(),
        samples: first + later,
        total_run: Duration::from_nanos(ran),
        run_mean: ran.checked_div(runs).map(Duration::from_nanos),
    }
}

/// Of each [`ONE_IN`] numbers in a row about one, and of each arithmetic series too: the
/// multiples of the golden ratio are spread evenly.
fn is_one_of_many(nth: u32) -> bool {
    nth.wrapping_mul(0x9E37_79B9) < u32::MAX / ONE_IN as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(ran: u64) -> Took {
        let ran = Duration::from_nanos(ran);
        Took {
            ran,
            held: ran,
            computed: ran,
        }
    }

    fn add(site: &Counters, weight: u64, ran: u64) {
        Sample { site, weight }.add(&took(ran));
    }

    #[test]
    fn the_jobs_of_many_sites_are_not_known_to_be_short() {
        let (sites, site) = (Sites::new(), Name::named("one of few sites"));
        for _ in 0..100 {
            for site in [site, Name::OTHER] {
                add(sites.of(site), 1, 1_000);
            }
        }
        assert_eq!(sites.length(site), Length::Short);
        assert_eq!(sites.length(Name::OTHER), Length::Long);
    }

    #[test]
    fn samples_become_figures() {
        let (sites, site) = (Sites::new(), Name::named("samples_become_figures"));
        let other = Name::named("samples_become_figures, other");
        for _ in 0..16 {
            sites.submitted(site, 0);
            add(sites.of(site), 1, 1_000);
        }
        for _ in 0..84 {
            sites.submitted(site, 1);
        }
        // These stand for the 84, more or less.
        add(sites.of(site), ONE_IN, 1_000);
        for _ in 0..15 {
            add(sites.of(site), ONE_IN, 500_000_000);
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
        let runs = 16 + 16 * ONE_IN;
        assert_eq!(read.run_mean, Some(Duration::from_nanos(total / runs)));
        assert_eq!((unused.jobs, unused.samples, unused.run_mean), (1, 0, None));
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
        let (sites, site) = (Sites::new(), Name::named("what_stands_for_all"));
        let weights = (0..100_000).filter_map(|nth| {
            let sample = sites.sample(site, nth, false)?;
            sample.add(&took(1_000));
            Some(sample.weight)
        });
        let sum: u64 = weights.sum();
        assert!((99_000..101_000).contains(&sum), "{sum}");
    }
}

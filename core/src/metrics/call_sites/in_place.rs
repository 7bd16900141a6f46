//! What is learned of a call site for [`run_cpu`](crate::Handle::run_cpu): whether its closures
//! cost less in place than a trip to the lane.
//!
//! In place a closure costs its own time, for which the caller's thread does nothing else. On the
//! lane it costs a *trip*: the time from the submission until the awaiter has the output, without
//! the closure's own. The closures of a site are computed in place while each took no longer
//! than [`TRIPS`] trips (a trip to the lane would add a fifth of the time and more), and no longer
//! than the builder's limit.
//!
//! - **The last closure decides**, not an average: one that took longer sends the next one to
//!   the lane. If that one was long too, or another one in place soon after, [`FIRST`] of them in
//!   a row have to be short until one is computed in place again.
//! - **A site of long and short closures is costly in place**: one of more than [`HELD_UP`] times
//!   the limit holds up the caller's thread, and other tasks wait. Each time that happens, four
//!   times as many have to be short in a row. After [`FORGIVEN`] times as many without one, a
//!   quarter as many.
//! - **Neither side is final.** The lane's closures tell both times. Of those in place one in
//!   [`PROBE`] goes to the lane, which tells what a trip takes now.
//!
//! The times are the thread's CPU time: a thread that loses its core inside a closure would seem
//! to compute a long one. To read that clock takes a system call. Where it would cost as much as
//! the closures, of a site whose last one took less than [`TINY`], it is real time; these are
//! seldom interrupted, and the site pays for it with a few trips.
//!
//! Relaxed, and without read-modify-writes: two threads that learn of one site at the same time
//! may lose a closure, which the next ones make up for.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// In nanoseconds.
const TINY: u32 = 8_000;
/// A closure may take as long as so many trips.
const TRIPS: u64 = 4;
/// So many in a row are short before one is computed in place.
const FIRST: u32 = 16;
const HELD_UP: u64 = 4;
const MOST: u32 = 1 << 16;
const FORGIVEN: u32 = 16;
const PROBE: u32 = 1 << 10;

/// Where a closure was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Caller,
    /// What the trip took beside, in nanoseconds.
    Lane(u64),
}

pub(crate) struct InPlace {
    /// How many in a row have been short.
    short: AtomicU32,
    /// How many have to be.
    wanted: AtomicU32,
    /// What a trip takes, in nanoseconds.
    trip: AtomicU32,
    /// What the last closure took.
    last: AtomicU32,
    /// How many were short since one in place was a little too long.
    since: AtomicU32,
}

impl InPlace {
    pub(crate) const fn new() -> Self {
        Self {
            short: AtomicU32::new(0),
            wanted: AtomicU32::new(FIRST),
            trip: AtomicU32::new(0),
            last: AtomicU32::new(0),
            since: AtomicU32::new(FIRST),
        }
    }

    /// Whether the next closure is computed in place.
    #[inline]
    pub(crate) fn is_cheaper(&self) -> bool {
        let short = self.short.load(Relaxed);
        short >= self.wanted.load(Relaxed) && short % PROBE != 0
    }

    /// Whether the CPU time of the next closure in place is worth a look.
    #[inline]
    pub(crate) fn takes_cpu_time(&self) -> bool {
        self.last.load(Relaxed) >= TINY
    }

    /// A closure has taken that long, in nanoseconds. `most`: the builder's limit.
    #[inline]
    pub(crate) fn ran(&self, time: u64, place: Place, most: u64) {
        if let Place::Lane(trip) = place {
            self.learn_trip(trip);
        }
        self.last.store(time.min(u32::MAX.into()) as u32, Relaxed);
        let wanted = self.wanted.load(Relaxed);
        let trip = u64::from(self.trip.load(Relaxed));
        if time <= trip.saturating_mul(TRIPS).min(most) {
            let short = self.short.load(Relaxed).wrapping_add(1);
            self.short.store(short, Relaxed);
            let since = self.since.load(Relaxed);
            self.since.store(since.saturating_add(1), Relaxed);
            if wanted > FIRST && short / FORGIVEN >= wanted {
                self.wanted.store(wanted / 4, Relaxed);
            }
        } else if place == Place::Caller
            && time <= most.saturating_mul(HELD_UP)
            && self.since.load(Relaxed) >= FIRST
        {
            // A tick of the kernel, perhaps: the lane computes the next one, and decides.
            self.short.store(wanted - 1, Relaxed);
            self.since.store(0, Relaxed);
        } else {
            self.since.store(FIRST, Relaxed);
            self.short.store(0, Relaxed);
            if place == Place::Caller {
                self.wanted.store((wanted * 4).min(MOST), Relaxed);
            }
        }
    }

    /// A quarter of one that takes less, a sixteenth of one that takes more: the awaiter may have
    /// been busy with something else. (Not more of the first: a worker that happens to spin makes
    /// a trip three times as short as it usually is.)
    fn learn_trip(&self, trip: u64) {
        let (new, old) = (
            trip.min(u32::MAX.into()),
            u64::from(self.trip.load(Relaxed)),
        );
        let learnt = match old {
            0 => new,
            old if new < old => old - (old - new) / 4,
            old => old + (new - old) / 16,
        };
        self.trip.store(learnt as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_NANOS: u64 = 50_000;

    fn learn(site: &InPlace, times: impl IntoIterator<Item = u64>) -> usize {
        let mut held_up = 0;
        for time in times {
            let place = match site.is_cheaper() {
                true => Place::Caller,
                false => Place::Lane(10_000),
            };
            held_up += usize::from(place == Place::Caller && time > MOST_NANOS);
            site.ran(time, place, MOST_NANOS);
        }
        held_up
    }

    #[test]
    fn short_ones_go_in_place_after_the_first_and_are_probed() {
        let site = InPlace::new();
        learn(&site, [1_000; FIRST as usize - 1]);
        assert!(!site.is_cheaper());
        learn(&site, [1_000]);
        assert!(site.is_cheaper());
        let mut probes = 0;
        for _ in 0..10 * PROBE {
            probes += usize::from(!site.is_cheaper());
            learn(&site, [1_000]);
        }
        assert_eq!(probes, 10);
    }

    #[test]
    fn what_takes_longer_than_a_trip_or_the_limit_goes_to_the_lane() {
        for (time, trip) in [(40_001, 10_000), (50_001, 10_000_000)] {
            let site = InPlace::new();
            for _ in 0..100 {
                assert!(!site.is_cheaper());
                site.ran(time, Place::Lane(trip), MOST_NANOS);
            }
        }
    }

    #[test]
    fn one_long_closure_after_a_thousand_short_ones_is_charged_at_once() {
        let site = InPlace::new();
        assert_eq!(learn(&site, [1_000; 1_000]), 0);
        assert_eq!(learn(&site, [1_000_000]), 1);
        assert!(!site.is_cheaper());
        // A site that has become long stalls no more.
        assert_eq!(learn(&site, [1_000_000; 1_000]), 0);
        // And one that has become short again is computed in place again.
        learn(&site, [1_000; 4 * FIRST as usize]);
        assert!(site.is_cheaper());
    }

    /// One that takes a little longer is checked by one on the lane.
    #[test]
    fn a_tick_of_the_kernel_costs_one_trip() {
        let site = InPlace::new();
        learn(&site, [30_000; 2 * FIRST as usize]);
        learn(&site, [90_000]);
        assert!(!site.is_cheaper());
        learn(&site, [30_000]);
        assert!(site.is_cheaper());
        // Not each second one.
        learn(&site, [90_000, 30_000]);
        assert!(!site.is_cheaper());
    }

    /// One in a hundred is long: the site learns it in a few stalls.
    #[test]
    fn a_site_of_both_kinds_stalls_a_few_times() {
        let site = InPlace::new();
        let times = (0..100_000).map(|n| if n % 100 == 99 { 10_000_000 } else { 1_000 });
        assert!(learn(&site, times) < 4);
        // And it is forgiven, in time.
        learn(&site, (0..2_000_000).map(|_| 1_000));
        assert_eq!(site.wanted.load(Relaxed), FIRST);
    }

    #[test]
    fn a_trip_that_was_slow_once_is_not_believed() {
        let site = InPlace::new();
        learn(&site, [1_000; FIRST as usize]);
        site.ran(1_000, Place::Lane(100_000), MOST_NANOS);
        assert!(site.trip.load(Relaxed) < 16_000);
        for _ in 0..100 {
            site.ran(1_000, Place::Lane(100_000), MOST_NANOS);
        }
        assert!(site.trip.load(Relaxed) > 90_000);
        site.ran(1_000, Place::Lane(1_000), MOST_NANOS);
        assert!(site.trip.load(Relaxed) < 80_000);
    }
}

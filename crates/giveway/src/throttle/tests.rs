//! Tests on clocks that only the test itself moves.

use super::*;
use Claim::{First, Leftover, Shared};

const CLAIMS: [Claim; 3] = [First, Shared, Leftover];

fn ms(n: f64) -> Duration {
    Duration::from_secs_f64(n / 1e3)
}

/// One core and a period of 100 ms: an income of 90 ms of CPU time per 100 ms, and 10
/// ms of credit.
struct Machine {
    throttle: Throttle,
    /// Of this thread.
    meter: Meter,
    /// How often the throttle has asked for the quota.
    asked: Cell<usize>,
    start: Instant,
    /// Wall, process, this thread.
    clocks: Cell<[Duration; 3]>,
    /// How many cores other threads use.
    others: f64,
    slept: Cell<Duration>,
    quota: Cell<Option<Quota>>,
}

impl Clocks for Machine {
    fn now(&self) -> Instant {
        self.start + self.clocks.get()[0]
    }
    fn of_process(&self) -> Option<Duration> {
        Some(self.clocks.get()[1])
    }
    fn of_thread(&self) -> Option<Duration> {
        Some(self.clocks.get()[2])
    }
    fn quota(&self) -> Option<Quota> {
        self.quota.get()
    }
    fn ask(&self, _: &Throttle) {
        self.asked.set(self.asked.get() + 1);
    }
    fn sleep(&self, time: Duration) {
        self.pass(time, Duration::ZERO);
        self.slept.set(self.slept.get() + time);
    }
}

/// Also where the platform has no such clock.
struct Still;

impl Clocks for Still {
    fn of_process(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
    fn quota(&self) -> Option<Quota> {
        None
    }
}

impl Machine {
    fn new() -> Self {
        Self::beside(0.0)
    }

    fn beside(others: f64) -> Self {
        Self::with(quota(1.0), others)
    }

    fn with(quota: Option<Quota>, others: f64) -> Self {
        let mut machine = Self {
            // For a moment.
            throttle: Throttle::by(&Still).unwrap(),
            meter: Meter::new(),
            asked: Cell::new(0),
            start: Instant::now(),
            clocks: Cell::new([Duration::ZERO; 3]),
            others,
            slept: Cell::default(),
            quota: Cell::new(quota),
        };
        machine.throttle = Throttle::by(&machine).unwrap();
        machine
    }

    fn pause(&self, claim: Claim, is_over: &dyn Fn() -> bool) {
        self.throttle.pause(self, &self.meter, claim, is_over);
    }

    fn pass(&self, wall: Duration, thread: Duration) {
        let [a, b, c] = self.clocks.get();
        let process = wall.mul_f64(self.others) + thread;
        self.clocks.set([a + wall, b + process, c + thread]);
    }

    fn others_use(&self, cpu: Duration) {
        let [a, b, c] = self.clocks.get();
        self.clocks.set([a, b + cpu, c]);
    }

    /// Runs a job of so many ms on this thread, after its pause. Returns the length of
    /// the pause in ms.
    fn job(&self, claim: Claim, computes: f64) -> f64 {
        self.slept.set(Duration::ZERO);
        self.pause(claim, &|| false);
        if self.asked.take() > 0 {
            self.throttle.read_again(self);
        }
        self.pass(ms(computes), ms(computes));
        self.slept.get().as_secs_f64() * 1e3
    }

    /// Runs such jobs for ten seconds. Returns the part of the time in which they ran.
    fn share_of_jobs(&self, claim: Claim, computes: f64) -> f64 {
        let [start, _, used] = self.clocks.get();
        while self.clocks.get()[0] < start + ms(10_000.0) {
            self.job(claim, computes);
        }
        let [now, _, used_now] = self.clocks.get();
        (used_now - used).as_secs_f64() / (now - start).as_secs_f64()
    }
}

fn quota(cores: f64) -> Option<Quota> {
    let period = ms(100.0);
    Some(Quota { cores, period })
}

fn is_about(found: f64, expected: f64) {
    let near = (found - expected).abs() < 0.02;
    assert!(near, "{found} instead of {expected}");
}

#[test]
fn each_claim_has_its_share() {
    for claim in CLAIMS {
        for computes in [0.05, 5.0, 60.0] {
            is_about(Machine::new().share_of_jobs(claim, computes), SHARE);
        }
    }
}

#[test]
fn what_others_use_is_taken_from_the_others() {
    is_about(Machine::beside(0.5).share_of_jobs(Shared, 5.0), SHARE - 0.5);
    is_about(
        Machine::beside(0.5).share_of_jobs(Leftover, 5.0),
        SHARE - 0.5,
    );
    is_about(Machine::beside(0.5).share_of_jobs(First, 5.0), SHARE);
}

/// This holds for small jobs and large ones.
#[test]
fn a_tenth_is_left_whatever_others_use() {
    for others in [0.9, 1.0, 3.0] {
        for computes in [0.05, 5.0, 60.0] {
            let share = |p| Machine::beside(others).share_of_jobs(p, computes);
            is_about(share(Shared), 0.1);
            is_about(share(Leftover), 0.1);
        }
    }
}

/// Eight threads pause at once. Each gets its part of the tenth.
#[test]
fn a_tenth_is_left_to_all_threads_together() {
    let machine = Machine::beside(1.0);
    machine.throttle.0.pausing.store(7, Ordering::Relaxed);
    let share = machine.share_of_jobs(Shared, 5.0);
    is_about(8.0 * share, 0.1);
    assert_eq!(machine.throttle.0.pausing.load(Ordering::Relaxed), 7);
}

/// The `First` job comes after `Leftover` has brought the bucket of the process into debt.
#[test]
fn the_first_does_not_pay_for_others() {
    let machine = Machine::new();
    machine.share_of_jobs(Leftover, 60.0);
    machine.others_use(ms(60.0));
    machine.meter.last.take();
    assert_eq!(machine.job(First, 1.0), 0.0);
    assert!(machine.job(Leftover, 1.0) > 0.0);
}

/// The credit is between the two thresholds.
#[test]
fn the_leftover_leaves_the_last_credit_to_the_shared() {
    let machine = Machine::new();
    machine.pause(Shared, &|| false);
    machine.pass(ms(1.0), Duration::ZERO);
    machine.others_use(ms(7.9));
    assert_eq!(machine.job(Shared, 1.0), 0.0);
    assert!(machine.job(Leftover, 0.0) > 0.0);
}

#[test]
fn a_pause_is_not_saved_up_beyond_a_burst() {
    let machine = Machine::new();
    machine.pass(ms(10_000.0), Duration::ZERO);
    assert_eq!(machine.job(Shared, 99.0), 0.0);
    assert_eq!(machine.job(Shared, 10.0), 0.0);
    assert!(machine.job(Shared, 1.0) > 0.0);
}

#[test]
fn a_pause_ends_when_it_no_longer_matters() {
    let machine = Machine::new();
    machine.job(Shared, 10.0);
    machine.others_use(ms(10_000.0));
    let asked = Cell::new(0);
    let is_over = || asked.replace(asked.get() + 1) == 3;
    machine.pause(Shared, &is_over);
    assert_eq!(asked.get(), 4);
}

#[test]
fn the_clocks_are_not_read_for_each_job() {
    struct NoCpuClock<'a>(&'a Machine);
    impl Clocks for NoCpuClock<'_> {
        fn now(&self) -> Instant {
            self.0.now()
        }
        fn of_process(&self) -> Option<Duration> {
            unreachable!("it was read")
        }
        fn of_thread(&self) -> Option<Duration> {
            unreachable!("it was read")
        }
        fn sleep(&self, _: Duration) {}
    }
    let machine = Machine::new();
    assert_eq!(machine.job(Shared, 0.1), 0.0);
    let throttle = &machine.throttle;
    throttle.pause(&NoCpuClock(&machine), &machine.meter, Shared, &|| false);
}

#[test]
fn a_taken_lock_is_not_waited_for_and_nothing_is_lost() {
    let machine = Machine::new();
    machine.job(First, 100.0);
    let taken = machine.throttle.0.buckets.lock().unwrap();
    assert_eq!(machine.job(First, 5.0), 0.0);
    assert_eq!(machine.job(First, 5.0), 0.0);
    drop(taken);
    // 5 ms of credit and 104.5 ms of income, for 110 ms of CPU time.
    is_about(machine.job(First, 0.0), 0.5 / SHARE);
}

/// The first ten seconds have at most two of the old quota.
#[test]
fn a_quota_that_changes_is_kept() {
    for claim in CLAIMS {
        let machine = Machine::with(None, 0.0);
        for cores in [None, Some(0.5), Some(1.0), Some(0.5), None, Some(1.0)] {
            // The next look is the one that is due after the quota has changed.
            machine.job(claim, 2_000.0);
            machine.job(claim, 1.0);
            machine.quota.set(cores.and_then(quota));
            if machine.throttle.cores().is_none() {
                // What is computed before a quota is seen is not charged.
                machine.job(claim, 2_000.0);
                assert_eq!(machine.job(claim, 1.0), 0.0);
                assert_eq!(machine.job(claim, 1.0), 0.0);
            }
            machine.share_of_jobs(claim, 5.0);
            assert_eq!(machine.throttle.cores(), cores);
            let expected = cores.map_or(1.0, |cores| cores * SHARE);
            is_about(machine.share_of_jobs(claim, 5.0), expected);
        }
    }
}

/// By another thread: a `First` job does not wait for files.
#[test]
fn every_two_seconds_the_quota_is_asked_for() {
    for quota in [None, quota(1.0)] {
        let machine = Machine::with(quota, 0.0);
        machine.quota.take();
        while machine.clocks.get()[0] < ms(20_500.0) {
            machine.pause(Shared, &|| false);
            machine.pass(ms(0.5), ms(0.5));
        }
        assert_eq!(machine.asked.get(), 10);
        assert_eq!(machine.throttle.cores(), quota.map(|quota| quota.cores));
    }
}

#[test]
fn without_a_quota_few_calls_look() {
    let due = |machine: &Machine| {
        (0..160)
            .filter(|_| machine.throttle.is_due(&machine.meter))
            .count()
    };
    assert_eq!(due(&Machine::with(None, 0.0)), 10);
    assert_eq!(due(&Machine::new()), 160);
}

#[test]
fn a_pause_that_panics_makes_no_later_one_longer() {
    let machine = Machine::new();
    machine.pause(Claim::Shared, &|| false);
    machine.pass(ms(300.0), ms(300.0));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        machine.pause(Claim::Shared, &|| panic!("the caller's own"));
    }));
    assert!(caught.is_err());
    assert_eq!(machine.throttle.0.pausing.load(Ordering::Relaxed), 0);
}

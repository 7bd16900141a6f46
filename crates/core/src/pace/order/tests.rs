//! The contract of [`Order`], by random calls and by a simulation of threads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::super::Shares;
use super::{Order, Turn};

fn order<K: Ord + Clone, T>() -> Order<K, T> {
    Order::new(Shares::new(1, None))
}

type Job = u64;

/// What the contract says, without virtual time.
#[derive(Default)]
struct Model {
    /// By name, and by whether they are short.
    queued: BTreeMap<(u8, bool), VecDeque<Job>>,
    under_way: Vec<Turn<u8>>,
    came: Job,
    began: BTreeSet<Job>,
    most_with_jobs: usize,
}

const MOST_KEYS: usize = 6;

fn step(order: &mut Order<u8, (u8, Job)>, model: &mut Model) {
    let name = fastrand::u8(0..10);
    match fastrand::u8(0..7) {
        0..=3 => {
            let (job, is_short) = (model.came, fastrand::bool());
            model.came += 1;
            order.push(&name, fastrand::u16(1..5), (name, job), is_short);
            let queue = model.queued.entry((name, is_short)).or_default();
            queue.push_back(job);
        }
        4..=5 => match order.next() {
            None => assert!(model.queued.values().all(VecDeque::is_empty)),
            Some(((name, job), is_short, turn)) => {
                let queue = model.queued.get_mut(&(name, is_short));
                let first = queue.and_then(VecDeque::pop_front);
                assert_eq!(Some(job), first, "a key's jobs of a kind keep their order");
                assert_eq!(turn.key, name);
                assert!(model.began.insert(job), "it began before");
                model.under_way.push(turn);
            }
        },
        _ => {
            if !model.under_way.is_empty() {
                let nth = fastrand::usize(..model.under_way.len());
                let turn = model.under_way.swap_remove(nth);
                let took = Duration::from_nanos(fastrand::u64(0..100_000_000));
                order.end(&turn, took, false);
            }
        }
    }
    let has_queued = |name: &u8| order.queued(name) > 0;
    let with_jobs = (0..10).filter(has_queued).count();
    model.most_with_jobs = model.most_with_jobs.max(with_jobs);
    assert!(order.keys.len() <= MOST_KEYS.max(model.most_with_jobs));
    let expected: usize = model.queued.values().map(VecDeque::len).sum();
    let queued: usize = order.all().map(|(_, queued, _)| queued).sum();
    assert_eq!(queued, expected, "none is lost");
}

#[test]
fn random_calls_keep_the_contract() {
    for seed in 0..200 {
        fastrand::seed(seed);
        let mut order = order();
        order.most_keys = MOST_KEYS;
        let mut model = Model::default();
        for _ in 0..2_000 {
            step(&mut order, &mut model);
        }
        // Whatever is left has its turn.
        while let Some(((name, job), is_short, turn)) = order.next() {
            let queue = model.queued.get_mut(&(name, is_short)).unwrap();
            assert_eq!(queue.pop_front(), Some(job));
            assert!(model.began.insert(job));
            order.end(&turn, Duration::from_nanos(1), false);
        }
        assert!(model.queued.values().all(VecDeque::is_empty), "seed {seed}");
    }
}

/// A tenant of the simulation.
struct Tenant {
    weight: u16,
    /// The next job's length, in nanoseconds, by the time.
    length: fn(u64) -> u64,
    /// Jobs that are queued at the start, and after each that ends.
    backlog: usize,
    served: u64,
}

impl Tenant {
    fn new(weight: u16, length: fn(u64) -> u64) -> Self {
        Self {
            weight,
            length,
            backlog: 8,
            served: 0,
        }
    }
}

/// Threads that take what is next, for so long.
fn simulate(threads: usize, tenants: &mut [Tenant], end: u64) {
    let mut order = order();
    let push = |order: &mut Order<usize, usize>, nth: usize, weight| {
        order.push(&nth, weight, nth, false);
    };
    for (nth, tenant) in tenants.iter().enumerate() {
        (0..tenant.backlog).for_each(|_| push(&mut order, nth, tenant.weight));
    }
    let mut running = BTreeMap::new();
    let (mut now, mut jobs) = (0, 0_u64);
    while now < end {
        while let Some((nth, _, turn)) = (running.len() < threads).then(|| order.next()).flatten() {
            let length = (tenants[nth].length)(now).max(1);
            running.insert((now + length, jobs), (nth, turn, length));
            jobs += 1;
        }
        let ((at, _), (nth, turn, length)) = running.pop_first().unwrap();
        now = at;
        tenants[nth].served += length;
        order.end(&turn, Duration::from_nanos(length), false);
        push(&mut order, nth, tenants[nth].weight);
    }
}

const MS: u64 = 1_000_000;

#[test]
fn shares_follow_the_weights_whatever_the_lengths() {
    fastrand::seed(7);
    for threads in [1, 2, 8] {
        let mut tenants = [
            Tenant::new(1, |_| MS),
            Tenant::new(1, |_| 100 * MS),
            Tenant::new(2, |_| fastrand::u64(1..20 * MS)),
            Tenant::new(4, |_| 5 * MS),
            // It pretends to be small, and then is not.
            Tenant::new(1, |_| {
                if fastrand::u8(..) < 16 {
                    200 * MS
                } else {
                    MS / 10
                }
            }),
        ];
        simulate(threads, &mut tenants, 100_000 * MS);
        let all: u64 = tenants.iter().map(|tenant| tenant.served).sum();
        let weights: u16 = tenants.iter().map(|tenant| tenant.weight).sum();
        for (nth, tenant) in tenants.iter().enumerate() {
            let share = tenant.served as f64 / all as f64 * f64::from(weights);
            let of_weight = share / f64::from(tenant.weight);
            assert!(
                (0.95..=1.05).contains(&of_weight),
                "{threads} threads, {nth}: {of_weight}"
            );
        }
    }
}

/// Short jobs of a key pass its long ones, and take nothing from another key.
#[test]
fn within_a_key_short_jobs_get_four_fifths() {
    let mut order: Order<u8, u64> = order();
    for (key, length, is_short) in [(0, MS, true), (0, 20 * MS, false), (1, 5 * MS, false)] {
        (0..10_000).for_each(|_| order.push(&key, 1, length, is_short));
    }
    let (mut of_short, mut of_long, mut of_other) = (0, 0, 0);
    while of_short + of_long + of_other < 10_000 * MS {
        let (length, is_short, turn) = order.next().unwrap();
        match (turn.key, is_short) {
            (1, _) => of_other += length,
            (_, true) => of_short += length,
            (_, false) => of_long += length,
        }
        order.end(&turn, Duration::from_nanos(length), is_short);
    }
    assert!((4_900 * MS..5_100 * MS).contains(&of_other), "{of_other}");
    assert!((3_800 * MS..4_200 * MS).contains(&of_short), "{of_short}");
}

/// Queues so many jobs of a key, of that weight.
fn queue(order: &mut Order<u32, u32>, key: u32, weight: u16, jobs: usize) {
    (0..jobs).for_each(|_| order.push(&key, weight, key, false));
}

fn next(order: &mut Order<u32, u32>) -> Turn<u32> {
    order.next().unwrap().2
}

fn end(order: &mut Order<u32, u32>, turn: &Turn<u32>, took: u64) {
    order.end(turn, Duration::from_nanos(took), false);
}

/// The next job runs. Returns whose it was.
fn turn(order: &mut Order<u32, u32>, took: u64) -> u32 {
    let turn = next(order);
    end(order, &turn, took);
    turn.key
}

/// How many turns others get before this key, if each takes so long.
fn turns_before(order: &mut Order<u32, u32>, key: u32, took: u64) -> usize {
    (0..)
        .take_while(|_| turn(order, took) != key)
        .take(1_000)
        .count()
}

#[test]
fn a_key_that_was_absent_has_no_credit() {
    let (mut order, busy, absent) = (order(), 1, 2);
    queue(&mut order, absent, 1, 1);
    turn(&mut order, 10 * MS);
    queue(&mut order, busy, 1, 100);
    (0..50).for_each(|_| assert_eq!(turn(&mut order, 10 * MS), busy));
    queue(&mut order, absent, 1, 100);
    let turns: Vec<_> = (0..40).map(|_| turn(&mut order, 10 * MS)).collect();
    let of_absent = turns.iter().filter(|key| **key == absent).count();
    assert!((19..=21).contains(&of_absent), "{turns:?}");
}

/// More of them come than there are turns.
#[test]
fn new_keys_without_end_starve_nobody() {
    let mut order = order();
    queue(&mut order, 0, 1, 1);
    queue(&mut order, 1, 1, 1);
    turn(&mut order, 100 * MS);
    queue(&mut order, 0, 1, 1);
    (2..5).for_each(|new| queue(&mut order, new, 1, 1));
    for new in 5.. {
        queue(&mut order, new, 1, 1);
        if turn(&mut order, 5 * MS) == 0 {
            break;
        }
        assert!(new < 500, "the old key waits behind each new one");
    }
}

#[test]
fn a_key_without_a_queue_is_a_debtor_until_the_others_have_had_as_much() {
    let mut order = order();
    queue(&mut order, 1, 1, 1);
    queue(&mut order, 2, 1, 100);
    assert!(!order.has_debtor());
    assert_eq!(turn(&mut order, 50 * MS), 1);
    assert!(order.has_debtor());
    let turns = (0..).take_while(|_| {
        assert_eq!(turn(&mut order, 5 * MS), 2);
        order.has_debtor()
    });
    assert_eq!(turns.count(), 9);
}

/// It ran while nobody waited, but for the last moment.
#[test]
fn a_debt_ends_when_nobody_waits() {
    let mut order = order();
    queue(&mut order, 1, 1, 1);
    let long = next(&mut order);
    queue(&mut order, 2, 1, 1);
    end(&mut order, &long, 600_000 * MS);
    turn(&mut order, MS);
    queue(&mut order, 2, 1, 500);
    queue(&mut order, 1, 1, 1);
    let before = turns_before(&mut order, 1, MS);
    assert!(before <= 1, "{before}");
}

/// Long jobs end while a key of short ones waits, which gets their turns at the price of long ones.
#[test]
fn long_jobs_of_one_key_do_not_put_a_second_one_before_a_third() {
    let mut order = order();
    for _ in 0..50 {
        queue(&mut order, 1, 1, 1);
        turn(&mut order, 10_000 * MS);
    }
    let mut long = Vec::new();
    for _ in 0..8 {
        queue(&mut order, 1, 1, 1);
        long.push(next(&mut order));
    }
    queue(&mut order, 2, 1, 2_000);
    let mut short = Vec::new();
    for turn in long {
        end(&mut order, &turn, 10_000 * MS);
        short.push(next(&mut order));
    }
    short.iter().for_each(|turn| end(&mut order, turn, MS));
    queue(&mut order, 3, 1, 1);
    let before = turns_before(&mut order, 3, MS);
    assert!(before <= 2, "{before}");
}

#[test]
fn keys_without_jobs_make_room() {
    let mut order = order();
    order.most_keys = 100;
    for key in 0..10_000_u32 {
        queue(&mut order, key, 1, 1);
        turn(&mut order, MS);
        assert_eq!(order.keys.len(), 100.min(key as usize + 1));
    }
    // It is known.
    queue(&mut order, 9_999, 1, 1);
    assert_eq!(order.keys.len(), 100);
}

#[test]
fn the_average_has_an_eighth_of_each_job_that_ran() {
    let mut order = order();
    queue(&mut order, 1, 1, 3);
    assert_eq!(order.queued(&1), 3);
    for (took, average) in [(80_000, 10_000), (80_000, 18_750), (0, 18_750)] {
        turn(&mut order, took);
        assert_eq!(order.mean, average);
    }
    assert_eq!(order.queued(&1), 0);
}

/// By what a job takes on average.
#[test]
fn the_jobs_that_run_are_charged_to_their_key() {
    let mut order = order();
    for _ in 0..50 {
        queue(&mut order, 0, 1, 1);
        turn(&mut order, 10 * MS);
    }
    queue(&mut order, 2, 1, 10);
    let longer = next(&mut order);
    queue(&mut order, 1, 1, 10);
    end(&mut order, &longer, 15 * MS);
    // Two jobs of the other are more than 15 ms.
    let turns: Vec<_> = (0..3).map(|_| next(&mut order).key).collect();
    assert_eq!(turns, [1, 1, 2]);
}

#[test]
fn a_charge_that_was_too_high_is_no_credit() {
    let mut order = order();
    // Jobs are long on average.
    for _ in 0..50 {
        queue(&mut order, 1, 1, 1);
        turn(&mut order, 1_000 * MS);
    }
    queue(&mut order, 1, 1, 508);
    let turns: Vec<_> = (0..8).map(|_| next(&mut order)).collect();
    turns.iter().for_each(|turn| end(&mut order, turn, MS));
    queue(&mut order, 2, 1, 1);
    let before = turns_before(&mut order, 2, 10 * MS);
    assert!(before <= 1, "{before}");
}

#[test]
fn a_key_that_is_forgotten_while_its_job_runs_has_no_credit() {
    let mut order = order();
    order.most_keys = 1;
    for _ in 0..50 {
        queue(&mut order, 1, 1, 1);
        turn(&mut order, 1_000 * MS);
    }
    queue(&mut order, 1, 1, 1);
    let running = next(&mut order);
    queue(&mut order, 2, 1, 1);
    turn(&mut order, MS);
    queue(&mut order, 1, 1, 500);
    end(&mut order, &running, MS);
    queue(&mut order, 2, 1, 1);
    let before = turns_before(&mut order, 2, 10 * MS);
    assert!(before <= 1, "{before}");
}

#[test]
fn a_weight_that_changes_while_a_job_runs_is_no_credit() {
    let mut order = order();
    for key in [1, 2] {
        queue(&mut order, key, 1, 1);
        turn(&mut order, 100 * MS);
    }
    queue(&mut order, 1, 1_000, 1);
    let running = next(&mut order);
    queue(&mut order, 1, 1, 500);
    queue(&mut order, 2, 1, 500);
    end(&mut order, &running, MS);
    let before = turns_before(&mut order, 2, 10 * MS);
    assert!(before <= 1, "{before}");
}

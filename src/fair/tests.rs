//! The contract of [`Order`], by random calls and by a simulation of threads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::error::FairError;
use super::order::Order;

type Job = u64;

/// What the contract says, without virtual time.
#[derive(Default)]
struct Model {
    queued: BTreeMap<u8, VecDeque<Job>>,
    under_way: Vec<(u8, u128)>,
    came: Job,
    began: BTreeSet<Job>,
}

const LIMITS: (usize, usize, usize) = (3, 4, 6);

fn step(order: &mut Order<u8, (u8, Job)>, model: &mut Model) {
    let (threads, max_queued, max_keys) = LIMITS;
    let name = fastrand::u8(0..10);
    match fastrand::u8(0..7) {
        0..=3 => {
            let full = model
                .queued
                .get(&name)
                .is_some_and(|queue| queue.len() == max_queued);
            let known = order.keys.contains_key(&name);
            let others = model
                .queued
                .values()
                .filter(|queue| !queue.is_empty())
                .count();
            match order.admit(&name, false) {
                Ok(()) => assert!(!full && (known || others < max_keys)),
                Err(FairError::KeyFull(_)) => return assert!(full),
                Err(FairError::KeysFull(_)) => return assert!(!known && others == max_keys),
                Err(FairError::Job(_)) => unreachable!("no lane is there"),
            }
            let job = model.came;
            model.came += 1;
            order.push(&name, fastrand::u32(1..5), (name, job));
            model.queued.entry(name).or_default().push_back(job);
        }
        4..=5 => match order.next() {
            None => {
                let nothing = model.queued.values().all(VecDeque::is_empty);
                assert!(nothing || model.under_way.len() == threads);
            }
            Some((_, charge, (name, job))) => {
                let first = model.queued.get_mut(&name).and_then(VecDeque::pop_front);
                assert_eq!(Some(job), first, "a key's jobs keep their order");
                assert!(model.began.insert(job), "it began before");
                model.under_way.push((name, charge));
                assert!(model.under_way.len() <= threads);
            }
        },
        _ => {
            if !model.under_way.is_empty() {
                let nth = fastrand::usize(..model.under_way.len());
                let (name, charge) = model.under_way.swap_remove(nth);
                order.end(&name, charge, fastrand::u128(0..100_000_000));
            }
        }
    }
    assert!(order.keys.len() <= max_keys.max(model.queued.len()));
    let expected: usize = model.queued.values().map(VecDeque::len).sum();
    assert_eq!(
        order
            .keys
            .values()
            .map(|(queue, _)| queue.len())
            .sum::<usize>(),
        expected,
        "none is lost"
    );
}

#[test]
fn random_calls_keep_the_contract() {
    for seed in 0..200 {
        fastrand::seed(seed);
        let mut order = Order::new(LIMITS.0);
        (order.max_queued, order.max_keys) = (LIMITS.1, LIMITS.2);
        let mut model = Model::default();
        for _ in 0..2_000 {
            step(&mut order, &mut model);
        }
        // Whatever is left has its turn.
        loop {
            while let Some((_, charge, (name, job))) = order.next() {
                model.queued.get_mut(&name).unwrap().pop_front();
                assert!(model.began.insert(job));
                model.under_way.push((name, charge));
            }
            let Some((name, charge)) = model.under_way.pop() else {
                break;
            };
            order.end(&name, charge, 1);
        }
        assert!(model.queued.values().all(VecDeque::is_empty), "seed {seed}");
    }
}

/// A tenant of the simulation.
struct Tenant {
    weight: u32,
    /// The next job's length, in nanoseconds, by the time.
    length: fn(u64) -> u64,
    /// Jobs that are queued at the start, and after each that ends.
    backlog: usize,
    served: u64,
}

impl Tenant {
    fn new(weight: u32, length: fn(u64) -> u64) -> Self {
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
    let mut order = Order::new(threads);
    let push = |order: &mut Order<usize, usize>, nth: usize, weight| {
        order.admit(&nth, false).unwrap();
        order.push(&nth, weight, nth);
    };
    for (nth, tenant) in tenants.iter().enumerate() {
        (0..tenant.backlog).for_each(|_| push(&mut order, nth, tenant.weight));
    }
    let mut running = BTreeMap::new();
    let (mut now, mut jobs) = (0, 0_u64);
    while now < end {
        while let Some((_, charge, nth)) = order.next() {
            let length = (tenants[nth].length)(now).max(1);
            running.insert((now + length, jobs), (nth, charge, length));
            jobs += 1;
        }
        let ((at, _), (nth, charge, length)) = running.pop_first().unwrap();
        now = at;
        tenants[nth].served += length;
        order.end(&nth, charge, length.into());
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
        let weights: u32 = tenants.iter().map(|tenant| tenant.weight).sum();
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

#[test]
fn a_key_that_was_absent_has_no_credit() {
    let mut order = Order::new(1);
    let (busy, absent) = ("busy", "absent");
    let jobs = |order: &mut Order<&'static str, &'static str>, key: &'static str, times: usize| {
        (0..times).for_each(|_| order.push(&key, 1, key));
    };
    let turn = |order: &mut Order<&'static str, &'static str>| {
        let (_, charge, name) = order.next().unwrap();
        order.end(&name, charge, 10 * u128::from(MS));
        name
    };
    jobs(&mut order, absent, 1);
    turn(&mut order);
    jobs(&mut order, busy, 100);
    (0..50).for_each(|_| assert_eq!(turn(&mut order), "busy"));
    jobs(&mut order, absent, 100);
    let turns: Vec<_> = (0..40).map(|_| turn(&mut order)).collect();
    let of_absent = turns.iter().filter(|name| **name == absent).count();
    assert!((19..=21).contains(&of_absent), "{turns:?}");
}

/// More of them come than there are turns.
#[test]
fn new_keys_without_end_starve_nobody() {
    let mut order = Order::new(1);
    order.push(&0, 1, 0);
    order.push(&1, 1, 1);
    turn(&mut order, 100 * MS);
    order.push(&0, 1, 0);
    (2..5).for_each(|new| order.push(&new, 1, new));
    for new in 5.. {
        order.admit(&new, false).unwrap();
        order.push(&new, 1, new);
        if turn(&mut order, 5 * MS) == 0 {
            break;
        }
        assert!(new < 500, "the old key waits behind each new one");
    }
}

/// It ran while nobody waited, but for the last moment.
#[test]
fn a_debt_ends_when_nobody_waits() {
    let mut order = Order::new(1);
    order.push(&1, 1, 1);
    let (_, charge, _) = order.next().unwrap();
    order.push(&2, 1, 2);
    order.end(&1, charge, 600_000 * u128::from(MS));
    turn(&mut order, MS);
    (0..500).for_each(|_| order.push(&2, 1, 2));
    order.push(&1, 1, 1);
    let before = turns_before(&mut order, 1, MS);
    assert!(before <= 1, "{before}");
}

/// Long jobs end while a key of short ones waits, which gets their turns at the price of long ones.
#[test]
fn long_jobs_of_one_key_do_not_put_a_second_one_before_a_third() {
    let mut order = Order::new(8);
    for _ in 0..50 {
        order.push(&1, 1, 1);
        turn(&mut order, 10_000 * MS);
    }
    let mut charges = Vec::new();
    for _ in 0..8 {
        order.push(&1, 1, 1);
        charges.push(order.next().unwrap().1);
    }
    (0..2_000).for_each(|_| order.push(&2, 1, 2));
    let mut turns = Vec::new();
    for charge in charges {
        order.end(&1, charge, 10_000 * u128::from(MS));
        turns.push(order.next().unwrap().1);
    }
    for charge in turns {
        order.end(&2, charge, MS.into());
    }
    order.push(&3, 1, 3);
    let before = turns_before(&mut order, 3, MS);
    assert!(before <= 2, "{before}");
}

#[test]
fn keys_without_jobs_make_room() {
    let mut order = Order::new(1);
    order.max_keys = 100;
    for key in 0..10_000_u32 {
        order.admit(&key, false).unwrap();
        order.push(&key, 1, ());
        let (_, charge, ()) = order.next().unwrap();
        order.end(&key, charge, MS.into());
        assert!(order.keys.len() <= 100);
    }
}

/// Gives and takes a turn. Returns whose it was.
fn turn(order: &mut Order<u32, u32>, took: u64) -> u32 {
    let (key, charge, name) = order.next().unwrap();
    order.end(&key, charge, took.into());
    name
}

/// How many turns others get before this key, if each takes so long.
fn turns_before(order: &mut Order<u32, u32>, key: u32, took: u64) -> usize {
    (0..)
        .take_while(|_| turn(order, took) != key)
        .take(1_000)
        .count()
}

#[test]
fn a_charge_that_was_too_high_is_no_credit() {
    let mut order = Order::new(8);
    // Jobs are long on average.
    for _ in 0..50 {
        order.push(&1, 1, 1);
        turn(&mut order, 1_000 * MS);
    }
    (0..508).for_each(|_| order.push(&1, 1, 1));
    let charges: Vec<_> = (0..8).map(|_| order.next().unwrap().1).collect();
    charges
        .into_iter()
        .for_each(|charge| order.end(&1, charge, MS.into()));
    order.push(&2, 1, 2);
    let before = turns_before(&mut order, 2, 10 * MS);
    assert!(before <= 1, "{before}");
}

#[test]
fn a_key_that_is_forgotten_while_its_job_runs_has_no_credit() {
    let mut order = Order::new(2);
    order.max_keys = 1;
    for _ in 0..50 {
        order.push(&1, 1, 1);
        turn(&mut order, 1_000 * MS);
    }
    order.push(&1, 1, 1);
    let (_, charge, _) = order.next().unwrap();
    order.admit(&2, false).unwrap();
    order.push(&2, 1, 2);
    turn(&mut order, MS);
    order.admit(&1, false).unwrap();
    (0..500).for_each(|_| order.push(&1, 1, 1));
    order.end(&1, charge, MS.into());
    order.push(&2, 1, 2);
    let before = turns_before(&mut order, 2, 10 * MS);
    assert!(before <= 1, "{before}");
}

#[test]
fn a_weight_that_changes_while_a_job_runs_is_no_credit() {
    let mut order = Order::new(1);
    for key in [1, 2] {
        order.push(&key, 1, key);
        turn(&mut order, 100 * MS);
    }
    order.push(&1, 1_000, 1);
    let (_, charge, _) = order.next().unwrap();
    for _ in 0..500 {
        order.push(&1, 1, 1);
        order.push(&2, 1, 2);
    }
    order.end(&1, charge, MS.into());
    let before = turns_before(&mut order, 2, 10 * MS);
    assert!(before <= 1, "{before}");
}

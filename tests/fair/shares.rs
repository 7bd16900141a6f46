//! Whose turn it is, and what a tenant is charged.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::{StreamExt, stream};
use twolane::{CpuStreamExt, JoinErrorKind};

use crate::support::Stuck;
use crate::{Keys, Notes, all, spin};

/// Plain jobs are a key of their own: they neither wait behind the queue of another one, nor does
/// another one behind theirs.
#[test]
fn a_flood_does_not_queue_before_the_others() {
    for flood in [Some("flood"), None] {
        let keys = Keys::on(1);
        let of = |key: Option<&str>| match key {
            Some(key) => keys.of(key),
            None => keys.plain().clone(),
        };
        let held = Stuck::start(&of(flood));
        let notes = Notes::new();
        let submit = |key| of(key).spawn_cpu(notes.job(0, key));
        let mut tasks: Vec<_> = (0..200).map(|_| submit(flood)).collect();
        let others = [Some("a"), Some("b"), Some("c"), None].into_iter();
        tasks.extend(others.filter(|key| *key != flood).map(submit));
        held.end();
        all(tasks);
        let notes = notes.read();
        let last = notes.iter().rposition(|key| *key != flood).unwrap();
        assert!(last < 8, "another one was number {last} of {}", notes.len());
    }
}

#[test]
fn the_jobs_of_a_key_keep_their_order() {
    let keys = Keys::on(1);
    let held = Stuck::start(&keys.of("a"));
    let notes = Notes::new();
    let tasks: Vec<_> = (0..100)
        .map(|n| keys.of("a").spawn_cpu(notes.job(0, n)))
        .collect();
    held.end();
    all(tasks);
    assert_eq!(notes.read(), Vec::from_iter(0..100));
}

/// While one of them ran, plain jobs counted as a key without a queue, and lost what they were due: on
/// two threads they got an eighth.
#[test]
fn plain_jobs_get_their_share_on_two_threads() {
    let keys = Keys::on(2);
    let held = [(); 2].map(|()| Stuck::start(&keys.of("a")));
    let ran = Arc::new(AtomicUsize::new(0));
    let plain = (0..800).map(|_| {
        let ran = ran.clone();
        keys.plain().spawn_cpu(move || {
            spin(20_000);
            ran.fetch_add(1, SeqCst);
        })
    });
    let plain: Vec<_> = plain.collect();
    let long = (0..40).map(|_| {
        let ran = ran.clone();
        keys.of("a").spawn_cpu(move || {
            spin(400_000);
            ran.load(SeqCst)
        })
    });
    let long: Vec<_> = long.collect();
    held.into_iter().for_each(Stuck::end);
    // As much work as the plain jobs: both end at about the same time.
    let at_the_end = all(long).into_iter().max();
    assert!(at_the_end > Some(400), "{at_the_end:?} of 800");
    all(plain);
}

/// Plain jobs were not charged while no job of a key was queued, so a key that came back after hours
/// still waited for what it had had more.
#[test]
fn a_key_owes_nothing_once_plain_jobs_have_had_as_much() {
    let keys = Keys::on(1);
    let cpu = keys.plain();
    // From here on there are always plain jobs in the queue: else the debt would end at once.
    let held = Stuck::start(&keys.of("other"));
    let long = keys.of("a").spawn_cpu(|| spin(4_000_000));
    let others: Vec<_> = (0..50).map(|_| cpu.spawn_cpu(|| spin(400_000))).collect();
    let (let_go, wait) = channel::<()>();
    let next_held = cpu.spawn_cpu(move || _ = wait.recv());
    held.end();
    all(others.into_iter().chain([long]));
    let notes = Notes::new();
    let submit = |cpu: &twolane::Handle, what| cpu.spawn_cpu(notes.job(400_000, what));
    let mut tasks: Vec<_> = (0..9).map(|_| submit(cpu, "plain")).collect();
    tasks.push(submit(&keys.of("a"), "a"));
    drop(let_go);
    next_held.wait().unwrap();
    all(tasks);
    let notes = notes.read();
    let at = notes.iter().position(|what| *what == "a");
    assert!(at.is_some_and(|at| at < 4), "{notes:?}");
}

/// It was charged what the job before it on its thread had taken.
#[test]
fn a_job_that_never_ran_is_not_charged() {
    let keys = Keys::on(1);
    let spin = || spin(400_000);
    for _ in 0..3 {
        let held = Stuck::start(&keys.of("other"));
        let plain = keys.plain().spawn_cpu(spin);
        held.end();
        plain.wait().unwrap();
        let late = keys.of("late").with_deadline(Instant::now());
        let held = Stuck::start(&keys.of("other"));
        let late = late.spawn(async {});
        drop(keys.of("gone").spawn_cpu(spin));
        held.end();
        assert_eq!(late.wait().unwrap_err().kind(), JoinErrorKind::Expired);
        keys.plain().spawn_cpu(|| ()).wait().unwrap();
    }
    let gone = keys.busiest().into_iter().find(|key| &*key.key == "gone");
    assert_eq!(gone.unwrap().computed, Duration::ZERO);
}

/// It gives back its turn.
#[test]
fn a_deadline_ends_a_job_that_is_queued() {
    let keys = Keys::on(1);
    // A submission after its deadline is refused: then once more, with more time.
    let times = [10, 10_000].map(Duration::from_millis);
    let was_queued = times.into_iter().any(|time| {
        let held = Stuck::start(&keys.of("a"));
        let deadline = Instant::now() + time;
        let late = keys.of("b").with_deadline(deadline).spawn_cpu(|| 1);
        let was_queued = !late.is_finished();
        while Instant::now() <= deadline {
            std::thread::yield_now();
        }
        held.end();
        assert_eq!(late.wait().unwrap_err().kind(), JoinErrorKind::Expired);
        assert_eq!(keys.of("b").spawn_cpu(|| 1).wait().unwrap(), 1);
        was_queued
    });
    assert!(was_queued, "it is refused each time");
}

/// On an idle lane its steps went on without the queue, and were not charged.
#[test]
fn a_future_that_wakes_itself_pays_for_each_step() {
    let keys = Keys::on(1);
    let mut steps = 0;
    let task = keys.of("a").spawn(poll_fn(move |cx| {
        spin(100_000);
        steps += 1;
        cx.waker().wake_by_ref();
        if steps < 50 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }));
    task.wait().unwrap();
    keys.of("b").spawn_cpu(|| spin(100_000)).wait().unwrap();
    let all = keys.busiest();
    assert!(all[0].computed > 10 * all[1].computed, "{all:?}");
}

#[test]
fn a_job_that_sleeps_pays_for_its_thread() {
    let keys = Keys::on(1);
    let sleep = || {
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        began.elapsed()
    };
    let slept = keys.of("a").spawn_cpu(sleep).wait().unwrap();
    let paid = keys.busiest()[0].computed;
    // A reading may be 10 µs old.
    assert!(
        paid * 8 + Duration::from_micros(10) >= slept,
        "{paid:?} of {slept:?}"
    );
}

#[test]
fn a_panic_is_an_error_and_is_charged_and_the_turn_comes_back() {
    let keys = Keys::on(1);
    for _ in 0..3 {
        let panics = || -> () {
            spin(2_000_000);
            panic!("on purpose")
        };
        let error = keys.of("a").spawn_cpu(panics).wait().unwrap_err();
        assert!(error.is_panic(), "{error}");
        let with = keys.of("a").spawn_cpu_with(move |_| {
            panics();
            Ok(())
        });
        assert!(with.wait().unwrap_err().is_panic());
    }
    assert_eq!(keys.of("b").spawn_cpu(|| 2).wait().unwrap(), 2);
    let usage = &keys.busiest()[0];
    assert_eq!(&*usage.key, "a");
    assert!(usage.computed > Duration::from_micros(100), "{usage:?}");
}

/// Whatever submits: each has the key's share, and goes by its place or name as a job without a key.
#[test]
fn all_ways_to_submit_have_the_key() {
    let keys = Keys::on(1);
    let (cpu, a) = (keys.plain(), keys.of("a"));
    let spin = || {
        spin(400_000);
        1
    };
    let computed = || {
        let busiest = keys.busiest();
        busiest.first().map_or(Duration::ZERO, |key| key.computed)
    };
    let mut before = computed();
    // A stream's reader may have its last item before the step has ended.
    let mut is_charged = |what: &str| {
        cpu.spawn_cpu(|| ()).wait().unwrap();
        let now = computed();
        assert!(now > before, "{what}");
        before = now;
    };
    a.spawn_cpu(spin).wait().unwrap();
    is_charged("spawn_cpu");
    let with = a.spawn_cpu_with(move |_| Ok(spin()));
    with.wait().unwrap();
    is_charged("spawn_cpu_with");
    a.spawn(async move { spin() }).wait().unwrap();
    is_charged("spawn");
    let permit = a.try_reserve().unwrap();
    permit.spawn_cpu(spin).wait().unwrap();
    is_charged("try_reserve");
    let permit = a.reserve().wait().unwrap();
    permit.spawn(async move { spin() }).wait().unwrap();
    is_charged("reserve");
    let items = || stream::iter(0..10);
    let items_of_lane = a.stream_from_cpu(items().map(move |_| spin()), 4, |_| 1);
    assert_eq!(block_on(items_of_lane.count()), 10);
    is_charged("stream_from_cpu");
    let outputs = items().on_cpu(&a).map(move |_| spin()).buffered(2);
    assert_eq!(block_on(outputs.count()), 10);
    is_charged("on_cpu");
    let in_time = a.with_deadline(Instant::now() + Duration::from_secs(60));
    let named = in_time.with_name("named").spawn_cpu(spin);
    named.wait().unwrap();
    is_charged("with_deadline, with_name");
    let _entered = a.enter();
    twolane::spawn_cpu(spin).wait().unwrap();
    is_charged("enter");
    let before = computed();
    let nested = cpu.spawn_io(async move { twolane::spawn_cpu(spin).await });
    nested.wait().unwrap().unwrap();
    assert_eq!(computed(), before, "the handle of `cpu` has no key");
    // The place of this call has jobs with a key alone.
    let place = format!("shares.rs:{}", line!() + 1);
    a.spawn_cpu(|| ()).wait().unwrap();
    let sites = cpu.call_sites().to_string();
    let are_there = sites.contains(&place) && sites.contains("named");
    assert!(are_there, "{sites}");
}

#[test]
fn the_busiest_keys_come_by_what_they_used() {
    let keys = Keys::on(1);
    for (n, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let spin = move || spin(n as u64 * 400_000);
        keys.of(key).spawn_cpu(spin).wait().unwrap();
    }
    let five = keys.busiest();
    assert_eq!(five.len(), 5);
    assert!(five.is_sorted_by(|one, next| one.computed >= next.computed));
    all((0..100).map(|key| keys.of(&key.to_string()).spawn_cpu(|| ())));
    let most = keys.busiest();
    assert_eq!(most.len(), 32);
    assert_eq!(most[0].key, five[0].key);
}

//! Which scheduling policy do a lane's threads have, and what says that nice values mean nothing
//! there? (Linux.)

use std::sync::{Arc, Mutex};
use std::thread;

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tracing::{Event, Level, Subscriber, field};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

use crate::support::{child, lanes, must_run, time_limit};
use crate::weights::{POLICY, my_value};

/// `SCHED_FIFO`, as the kernel numbers it.
const FIFO: i32 = 1;

fn my_policy() -> i32 {
    my_value(POLICY)
}

/// Makes this thread one of real time. An error if the process may not.
fn join_real_time() -> Result<(), thread_priority::Error> {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo)
}

/// Keeps the texts of the warnings that speak of a policy.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Text(String);
        impl field::Visit for Text {
            fn record_debug(&mut self, _: &field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?}"));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        if *event.metadata().level() == Level::WARN && text.0.contains("policy") {
            self.0.lock().unwrap().push(text.0);
        }
    }
}

/// In a process of its own, which is told once. A thread of real time runs until it blocks, so the
/// I/O lane waits for whole jobs.
#[test]
fn lanes_that_are_built_in_real_time_are_of_real_time_and_warn_once() {
    let _limit = time_limit();
    if thread::spawn(join_real_time).join().unwrap().is_err() {
        return must_run::not_run("real-time", "this process may not set SCHED_FIFO");
    }
    if !child::is_child() {
        let test = "policy::lanes_that_are_built_in_real_time_are_of_real_time_and_warn_once";
        let found = child::run(test, |_| (), |_| ());
        assert!(
            found.contains("Fifo") && found.contains("SCHED_OTHER"),
            "{found}"
        );
        return;
    }
    let warnings = Warnings::default();
    let subscriber = Registry::default().with(warnings.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let usual = my_policy();
    let built = thread::spawn(|| {
        join_real_time().unwrap();
        [(); 2].map(|()| lanes(1))
    });
    let built = built.join().unwrap();
    let later = [(); 2].map(|()| lanes(1));
    let texts = warnings.0.lock().unwrap().clone();
    assert_eq!(texts.len(), 1, "{texts:?}");
    for (lanes, policy) in [(&built, FIFO), (&later, usual)] {
        for lanes in lanes {
            assert_eq!(lanes.cpu.spawn_cpu(my_policy).wait().unwrap(), policy);
            assert!(format!("{:?}", lanes.cpu).contains(&texts[0]));
        }
    }
    child::found(&texts[0]);
}

/// The reverse: a lane that is built in real time after another one is none of real time.
#[test]
fn a_later_lane_that_is_built_in_real_time_has_the_first_ones_policy() {
    let first = [(); 2].map(|()| lanes(1));
    let of_first = first[0].cpu.spawn_cpu(my_policy).wait().unwrap();
    let later = thread::spawn(|| {
        join_real_time().ok()?;
        let later = [(); 2].map(|()| lanes(1));
        Some(later.map(|lanes| lanes.cpu.spawn_cpu(my_policy).wait().unwrap()))
    });
    match later.join().unwrap() {
        Some(later) => assert_eq!(later, [of_first; 2]),
        None => must_run::not_run("real-time", "this process may not set SCHED_FIFO"),
    }
}

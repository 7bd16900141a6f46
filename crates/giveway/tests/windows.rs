//! The priority of a thread that has a weight, as Windows tells it.

#![cfg(windows)]

use std::thread;
use std::time::Duration;

use giveway::{Weight, start};
use thread_priority::WinAPIThreadPriority::{self, BelowNormal, Idle, Lowest, Normal};
use thread_priority::get_current_thread_priority;

fn priority() -> WinAPIThreadPriority {
    let own = get_current_thread_priority().unwrap();
    own.try_into().unwrap()
}

/// The priority of a new thread that has had these weights.
fn after(weights: &[Weight]) -> WinAPIThreadPriority {
    start().unwrap();
    thread::scope(|scope| {
        let weighted = scope.spawn(|| {
            weights.iter().for_each(|weight| weight.apply().unwrap());
            priority()
        });
        weighted.join().unwrap()
    })
}

#[test]
fn steps_are_two_priorities() {
    let steps = [
        (0, Normal),
        (1, BelowNormal),
        (8, BelowNormal),
        (9, Lowest),
        (19, Lowest),
    ];
    for (steps, expected) in steps {
        let weight = Weight::raised_by(steps);
        assert_eq!(after(&[weight]), expected, "{steps}");
        let sliced = weight.with_slice(Duration::from_millis(6));
        assert_eq!(after(&[sliced]), expected, "{steps}");
    }
    assert_eq!(after(&[Weight::idle_class()]), Idle);
}

#[test]
fn a_weight_never_raises_a_priority() {
    let [high, normal] = [8, 16].map(Weight::raised_by);
    let idle = Weight::idle_class();
    assert_eq!(after(&[normal, high]), Lowest);
    assert_eq!(after(&[idle, normal, Weight::raised_by(0)]), Idle);
    assert_eq!(after(&[high, normal]), Lowest);
    assert_eq!(after(&[normal, idle]), Idle);
}

#[test]
fn a_thread_does_not_inherit_it() {
    let children = || {
        Weight::raised_by(16).apply().unwrap();
        let own = thread::scope(|scope| scope.spawn(priority).join().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        giveway::spawn("child", move || tell.send(priority()).unwrap()).unwrap();
        [own, told.recv().unwrap()]
    };
    start().unwrap();
    let children = thread::scope(|scope| scope.spawn(children).join().unwrap());
    assert_eq!(children, [Normal; 2]);
}

//! Which lane does a free function mean? One test in a binary of its own: the process's
//! default, and its absence, are seen by all that runs in the process.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use support::thread_name;
use twolane_core::{CpuRuntime, Handle, Priority};

fn named(name: &str, io: &tokio::runtime::Handle) -> CpuRuntime {
    let builder = CpuRuntime::builder().thread_name(name);
    builder
        .worker_threads(1)
        .io_handle(io.clone())
        .build()
        .unwrap()
}

/// The thread that a closure on the current handle runs on.
fn current() -> String {
    Handle::current().spawn_cpu(thread_name).wait().unwrap()
}

/// Entered, then own, then the default; and nothing is guessed.
#[test]
fn entered_comes_before_own_comes_before_the_default() {
    let _limit = support::time_limit();
    let io = tokio::runtime::Runtime::new().unwrap();
    let [left, right, default] = ["left", "right", "default"].map(|name| named(name, io.handle()));

    let panic = catch_unwind(|| twolane_core::spawn_cpu(|| 1)).unwrap_err();
    let text = panic.downcast::<String>().unwrap();
    assert!(text.contains("Handle::enter"), "{text}");
    assert!(text.contains("Handle::set_process_default"), "{text}");
    assert!(catch_unwind(|| twolane_core::spawn_io(async {})).is_err());
    assert!(Handle::try_current().is_err());

    let before = Handle::set_process_default(Some(default.handle().clone()));
    assert!(before.is_none());
    assert_eq!(current(), "default-0");
    {
        let (left, right) = (left.handle().clone(), right.handle().clone());
        let _left = left.enter();
        assert_eq!(current(), "left-0");
        {
            let _right = right.enter();
            assert_eq!(current(), "right-0");
        }
        assert_eq!(current(), "left-0");
    }
    assert_eq!(current(), "default-0");

    // It stayed current on the thread for ever: its guard panicked, and did not leave it.
    {
        let (left, right) = (left.handle(), right.handle());
        let (outer, inner) = (left.enter(), right.enter());
        catch_unwind(AssertUnwindSafe(|| drop(outer))).unwrap_err();
        assert_eq!(current(), "right-0");
        drop(inner);
    }
    assert_eq!(current(), "default-0");

    // Own before default; entered before own, be it another lane's or of another priority; and a
    // handle says where.
    let [right, low] = [
        right.handle().clone(),
        left.handle().with_priority(Priority::Low),
    ];
    for (other, name) in [(right, "right-0"), (low, "left-low-0")] {
        let high = left.handle().with_priority(Priority::High);
        let job = high.spawn(async move {
            // Here, and on the way over the I/O lane.
            let nested = || async {
                let own = twolane_core::spawn_cpu(thread_name).await.unwrap();
                let by_io = async { twolane_core::spawn_cpu(thread_name).await };
                [own, twolane_core::spawn_io(by_io).await.unwrap().unwrap()]
            };
            let entered = {
                let _other = other.enter();
                twolane_core::spawn_cpu(thread_name)
            };
            let by_handle = other.spawn(nested()).await.unwrap();
            (nested().await, by_handle, entered.await.unwrap())
        });
        let (own, by_handle, entered) = job.wait().unwrap();
        assert_eq!(own, ["left-high-0"; 2]);
        assert_eq!(by_handle, [name; 2]);
        assert_eq!(entered, name);
    }

    let mine = Handle::set_process_default(before).unwrap();
    assert_eq!(mine.spawn_cpu(thread_name).wait().unwrap(), "default-0");
    assert!(Handle::try_current().is_err());
}

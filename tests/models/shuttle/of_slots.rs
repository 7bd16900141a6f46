//! The owner and the tasks of an `IoOwned`: the code of `io/owned/slot.rs`. A task of the I/O lane is
//! one of shuttle's.

use std::sync::{Arc, LazyLock};

use shuttle::future::{block_on, spawn};
use shuttle::sync::Mutex as Log;
use shuttle::thread;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;

use crate::check;
use crate::slot::{Slot, lock};

/// Nothing runs there.
static IO: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());

type Uses = Arc<Log<Vec<&'static str>>>;

/// It notes its uses, and its end.
struct Value(Uses);

impl Value {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.note("dropped");
    }
}

fn owned() -> (Arc<Mutex<Slot<Value>>>, Uses) {
    let uses = Uses::default();
    let slot = Slot::new(Value(uses.clone()), IO.handle().clone());
    (Arc::new(Mutex::new(slot)), uses)
}

/// As `IoOwned::with`: its place in the queue is that of the call.
fn with(
    slot: &Arc<Mutex<Slot<Value>>>,
    begins: &'static str,
    ends: &'static str,
) -> impl Future<Output = ()> + Send + use<> {
    let lock = lock(slot);
    async move {
        let mut locked = lock.await;
        locked.get().note(begins);
        shuttle::future::yield_now().await;
        locked.get().note(ends);
    }
}

/// As the drop of an `IoOwned`.
fn last(slot: &Arc<Mutex<Slot<Value>>>) -> impl Future<Output = ()> + Send + use<> {
    let lock = lock(slot);
    async move { lock.await.drop_value() }
}

#[test]
fn tasks_have_the_value_in_the_order_of_the_calls_and_the_last_one_drops_it() {
    check(|| {
        let (slot, uses) = owned();
        let tasks = [
            spawn(with(&slot, "first", "end of the first")),
            spawn(with(&slot, "second", "end of the second")),
            spawn(last(&slot)),
        ];
        drop(slot);
        for task in tasks {
            block_on(task).unwrap();
        }
        let all = [
            "first",
            "end of the first",
            "second",
            "end of the second",
            "dropped",
        ];
        assert_eq!(*uses.lock().unwrap(), all);
    });
}

#[test]
fn a_task_that_is_aborted_keeps_no_other_one_from_the_value() {
    check(|| {
        let (slot, uses) = owned();
        let first = spawn(with(&slot, "first", "end of the first"));
        let second = spawn(with(&slot, "second", "end of the second"));
        let last = spawn(last(&slot));
        drop(slot);
        let aborts = thread::spawn(move || first.abort());
        block_on(second).unwrap();
        block_on(last).unwrap();
        aborts.join().unwrap();
        let uses = uses.lock().unwrap();
        let end = ["second", "end of the second", "dropped"];
        assert!(uses.ends_with(&end) && uses.len() <= 5, "{uses:?}");
    });
}

/// It was refused, or its runtime has dropped it before its first poll.
#[test]
fn without_the_last_task_the_slot_drops_the_value_once() {
    check(|| {
        let (slot, uses) = owned();
        let first = spawn(with(&slot, "first", "end of the first"));
        let refused = last(&slot);
        let drops = thread::spawn(move || drop((refused, slot)));
        block_on(first).unwrap();
        drops.join().unwrap();
        assert_eq!(
            *uses.lock().unwrap(),
            ["first", "end of the first", "dropped"]
        );
    });
}

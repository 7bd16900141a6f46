//! What each thread is inside of right now: a poll of a future, work of a pool, a span. The
//! watch (`run.rs`) reads it from another thread.
//!
//! **The protocol.** Each thread has a record. [`enter`] makes the record's count odd, and
//! the end of the returned guard makes it even again. Only the record's own thread writes,
//! so these are plain stores, and a reading of the clock at both ends of a poll. The watch looks at
//! all records up to a hundred times a second: an odd count that stays the same is one and the same poll. It takes the
//! names between two reads of the count, and discards them if the count has changed.
//!
//! **Obligations.** [safety] What the watch reads belongs to one poll: kind, outer name and
//! deadline are never those of two. [safety] Two reads with the same count are of the same poll.
//! [liveness] A poll that lasts is read.
//!
//! **What is inside of what.** A poll inside of another one, and a span inside of a poll or
//! a span, do not count of their own: they only give their name, so that a report has
//! both: of nested spans the culprit is the innermost one that is a request's route, or else the
//! innermost one. A poll inside of a span does. Before it and after it the span counts, each time
//! anew. So a span around a whole runtime, as `main` may have, hides no poll.
//!
//! While no runtime is watched, [`enter`] is one load.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Handle, Id, RuntimeFlavor};

use crate::name::Name;
use crate::record::{self, Kind, Record};
use crate::watching::{self, is_watched};

/// What a thread keeps of its record for itself. Its end takes the record out of the list.
struct Own {
    record: Arc<Record>,
    /// `None`: work of a pool.
    begun: Cell<Option<Instant>>,
    /// How many polls or jobs it is inside of.
    polls: Cell<u32>,
    /// How many spans.
    spans: Cell<u32>,
    /// The culprit among them: the innermost one that is a route, or else the innermost one.
    span: Cell<Span>,
    /// What the record has, since a thread may serve one runtime after the other.
    runtime: Cell<Option<Id>>,
    /// At which look the thread last asked for its runtime.
    asked: Cell<usize>,
    /// Of a multi-thread runtime.
    is_worker: Cell<bool>,
}

/// The name of a span, and whether that is the route of a request.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "spans"),
    allow(dead_code, reason = "`SpanWatch` alone enters one")
)]
pub(crate) struct Span {
    pub(crate) name: Name,
    pub(crate) is_route: bool,
}

impl Span {
    const NONE: Self = Self {
        name: Name::OTHER,
        is_route: false,
    };
}

impl Own {
    fn new() -> Self {
        Self {
            record: Record::of_this_thread(),
            begun: Cell::new(None),
            polls: Cell::new(0),
            spans: Cell::new(0),
            span: Cell::new(Span::NONE),
            runtime: Cell::new(None),
            asked: Cell::new(0),
            is_worker: Cell::new(false),
        }
    }

    /// The question clones a handle, whose count all threads of the runtime share. So the
    /// workers of a multi-thread runtime ask once from one look to the next. Any other thread may
    /// serve another runtime each time: so may one that drives a `current_thread` runtime. (A
    /// worker may in `block_in_place`. Until the next look, what it does there counts as its own
    /// runtime's.)
    fn enter_runtime(&self) {
        let looks = watching::looks();
        if self.asked.replace(looks) == looks && self.is_worker.get() {
            return;
        }
        self.set_runtime(Handle::try_current().ok().map(|handle| handle.id()));
    }

    fn set_runtime(&self, runtime: Option<Id>) {
        if self.runtime.replace(runtime) != runtime {
            // A forked child has a runtime of its own, and its thread another number.
            self.record.set_id();
            self.record.set_runtime(runtime);
        }
    }

    fn begin(&self, kind: Kind, name: Name, deadline: Option<Instant>) {
        self.record.begin(kind, name, deadline);
        self.begun.set((!kind.is_of_pool()).then(Instant::now));
    }

    fn end(&self) {
        if let Some(begun) = self.begun.get() {
            let took = begun.elapsed();
            self.record.add_named(took);
            if took >= record::long() {
                self.record.keep(begun, took, self.runtime.get());
            }
        }
        self.record.end();
    }

    fn enter_poll(&self, kind: Kind, name: Name, deadline: Option<Instant>) {
        let polls = self.polls.get();
        self.polls.set(polls + 1);
        if polls > 0 {
            self.record.set_inner(name);
            return;
        }
        if self.spans.get() > 0 {
            self.end();
        }
        if !kind.is_of_pool() {
            self.enter_runtime();
        }
        self.begin(kind, name, deadline);
    }

    fn leave_poll(&self) {
        self.polls.set(self.polls.get() - 1);
        if self.polls.get() == 0 {
            self.end();
            if self.spans.get() > 0 {
                self.begin_span();
            }
        }
    }

    #[cfg(feature = "spans")]
    fn enter_span(&self, span: Span) {
        let spans = self.spans.get();
        self.spans.set(spans + 1);
        if spans == 0 || span.is_route || !self.span.get().is_route {
            self.span.set(span);
        }
        if self.polls.get() > 0 {
            self.record.set_inner(span.name);
        } else if spans > 0 {
            self.record.set_names(self.span.get().name, span.name);
        } else {
            self.enter_runtime();
            self.begin_span();
        }
    }

    fn begin_span(&self) {
        let name = self.span.get().name;
        self.begin(Kind::SPAN, name, None);
    }

    #[cfg(feature = "spans")]
    fn leave_span(&self, before: Span) {
        // None: it was around the runtime.
        let Some(spans) = self.spans.get().checked_sub(1) else {
            return;
        };
        self.spans.set(spans);
        self.span.set(before);
        if self.polls.get() > 0 {
            return;
        }
        match spans {
            0 => self.end(),
            _ => self.record.set_names(before.name, before.name),
        }
    }

    /// The spans that the thread is inside of are around a runtime, and no poll.
    fn probed(&self) {
        if self.polls.get() == 0 && self.spans.replace(0) > 0 {
            self.record.end();
        }
        let runtime = Handle::try_current().ok();
        let is_multi_thread =
            |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        self.is_worker
            .set(runtime.as_ref().is_some_and(is_multi_thread));
        self.set_runtime(runtime.map(|runtime| runtime.id()));
        self.record.set_probed();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.record.remove();
    }
}

thread_local! {
    static OWN: Own = Own::new();
}

/// `None` while the thread ends.
fn with_own<R>(f: impl FnOnce(&Own) -> R) -> Option<R> {
    OWN.try_with(f).ok()
}

/// This thread is inside of a poll by this name until the guard is dropped. `None` while no
/// runtime of the process is watched.
///
/// [`watch`](crate::watch) calls it for each poll of a future. Call it yourself for code that is
/// no future of its own: the loop of an actor, a callback. It has to end before the next
/// `.await`: the watch takes what lies between for one poll.
///
/// # Cost
///
/// Two readings of the clock, some 0.1 µs; one load while nothing is watched.
///
/// # Examples
///
/// ```
/// use stallwatch::Name;
///
/// fn on_message(text: &str) -> usize {
///     let _in = stallwatch::enter(Name::named("on_message"));
///     text.len()
/// }
/// assert_eq!(on_message("hello"), 5);
/// ```
#[must_use]
#[inline]
pub fn enter(name: Name) -> Option<Entered> {
    if !is_watched() {
        return None;
    }
    enter_as(Kind::POLL, name, None)
}

/// Call only while something is watched.
pub(crate) fn enter_as(kind: Kind, name: Name, deadline: Option<Instant>) -> Option<Entered> {
    with_own(|own| {
        let before = own.record.inner();
        own.enter_poll(kind, name, deadline);
        Entered {
            before,
            not_send: PhantomData,
        }
    })
}

/// Call only while something is watched.
#[cfg(feature = "spans")]
pub(crate) fn enter_span(span: Span) -> Option<EnteredSpan> {
    with_own(|own| {
        let (before, culprit) = (own.record.inner(), own.span.get());
        own.enter_span(span);
        EnteredSpan { before, culprit }
    })
}

/// A probe runs on this thread.
pub(crate) fn probed() {
    with_own(Own::probed);
}

/// Returned by [`enter`]: its thread is inside of that until this is dropped.
///
/// # Examples
///
/// ```
/// use stallwatch::{Entered, Name, enter};
///
/// let outer: Option<Entered> = enter(Name::named("on_frame"));
/// let inner = enter(Name::named("decode"));
/// // A stall here has the culprit `on_frame`, and the span `decode`.
/// drop(inner);
/// // A stall here has no span.
/// drop(outer);
/// ```
// Small: each step of a job of the CPU lane has one, watched or not.
#[derive(Debug)]
pub struct Entered {
    /// The innermost one before.
    before: Name,
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        with_own(|own| {
            own.leave_poll();
            own.record.set_inner(self.before);
        });
    }
}

/// Its thread is inside of a span until this is dropped.
#[cfg(feature = "spans")]
pub(crate) struct EnteredSpan {
    /// The innermost one before, and the culprit among the spans.
    before: Name,
    culprit: Span,
}

#[cfg(feature = "spans")]
impl Drop for EnteredSpan {
    fn drop(&mut self) {
        with_own(|own| {
            own.leave_span(self.culprit);
            own.record.set_inner(self.before);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::watching::Watching;

    /// No look lies between.
    #[test]
    fn a_thread_that_ran_a_probe_may_serve_another_runtime() {
        let _watching = Watching::begin(Duration::MAX);
        let runtime = || Builder::new_current_thread().build().unwrap();
        let entered = |runtime: &Runtime, f: fn()| {
            runtime.block_on(async { f() });
            with_own(|own| own.record.runtime()).unwrap() == Some(runtime.handle().id())
        };
        assert!(entered(&runtime(), probed));
        assert!(entered(&runtime(), || drop(enter(Name::OTHER))));
    }
}

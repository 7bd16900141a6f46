//! What each thread is inside of right now: a poll of a future on the I/O lane, a job of
//! the CPU lane, a span. The watch (`watch/`) reads it from another thread.
//!
//! **The protocol.** Each thread has a record. [`enter`] makes the record's count odd, and
//! the end of the returned guard makes it even again. Only the record's own thread writes,
//! so these are plain stores. No clock is read. The watch looks at all records some fifty
//! times a second: an odd count that stays the same is one and the same poll. It takes the
//! names between two reads of the count, and discards them if the count has changed.
//!
//! **What is inside of what.** A poll inside of another one, and a span inside of a poll or
//! a span, do not count of their own: they only give their name, so that a report has
//! both. A poll inside of a span does. Before it and after it the span counts, each time
//! anew. So a span around a whole runtime, as `main` may have, hides no poll.
//!
//! While no lane is watched, [`enter`] is one load.

mod record;
mod watching;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use tokio::runtime::{Handle, Id};

use crate::site::Site;

pub(crate) use record::{Activity, Job, Kind, Record};
pub(crate) use watching::{Watching, is_watched};

/// What a thread keeps of its record for itself. Its end takes the record out of the list.
struct Own {
    record: Arc<Record>,
    /// How many polls or jobs it is inside of.
    polls: Cell<u32>,
    /// How many spans.
    spans: Cell<u32>,
    outermost_span: Cell<Site>,
    /// What the record has, since a thread may serve one runtime after the other.
    runtime: Cell<Option<Id>>,
    /// At which look the thread last asked for its runtime.
    asked: Cell<usize>,
}

impl Own {
    fn new() -> Self {
        Self {
            record: Record::of_this_thread(),
            polls: Cell::new(0),
            spans: Cell::new(0),
            outermost_span: Cell::new(Site::OTHER),
            runtime: Cell::new(None),
            asked: Cell::new(0),
        }
    }

    /// The question clones a handle, whose count all threads of the runtime share. So the
    /// workers, where the probes run, ask once from one look to the next. Any other thread
    /// may serve another runtime each time.
    fn enter_runtime(&self) {
        let looks = watching::looks();
        if self.asked.replace(looks) == looks && self.record.last_probe().is_some() {
            return;
        }
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        if self.runtime.replace(runtime) != runtime {
            // A forked child has a runtime of its own, and its thread another number.
            self.record.set_id();
            self.record.set_runtime(runtime);
        }
    }

    fn enter_poll(&self, kind: Kind, site: Site, job: Job) {
        let polls = self.polls.get();
        self.polls.set(polls + 1);
        if polls > 0 {
            self.record.set_inner(site);
            return;
        }
        if self.spans.get() > 0 {
            self.record.end();
        }
        if !kind.is_of_cpu_lane() {
            self.enter_runtime();
        }
        self.record.begin(kind, site, job);
        watching::wake();
    }

    fn leave_poll(&self) {
        self.polls.set(self.polls.get() - 1);
        if self.polls.get() == 0 {
            self.record.end();
            if self.spans.get() > 0 {
                self.begin_span();
            }
        }
    }

    fn enter_span(&self, site: Site) {
        let spans = self.spans.get();
        self.spans.set(spans + 1);
        if spans == 0 {
            self.outermost_span.set(site);
        }
        if spans > 0 || self.polls.get() > 0 {
            self.record.set_inner(site);
            return;
        }
        self.enter_runtime();
        self.begin_span();
        watching::wake();
    }

    fn begin_span(&self) {
        let site = self.outermost_span.get();
        self.record.begin(Kind::Span, site, Job::default());
    }

    fn leave_span(&self) {
        // None: it was around the runtime.
        let Some(spans) = self.spans.get().checked_sub(1) else {
            return;
        };
        self.spans.set(spans);
        if spans == 0 && self.polls.get() == 0 {
            self.record.end();
        }
    }

    /// The spans that the thread is inside of are around a runtime, and no poll.
    fn probed(&self) {
        if self.polls.get() == 0 && self.spans.replace(0) > 0 {
            self.record.end();
        }
        self.enter_runtime();
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

/// This thread is inside of `site` until the guard is dropped.
#[must_use]
#[inline]
pub(crate) fn enter(kind: Kind, site: Site) -> Option<Entered> {
    if !is_watched() {
        return None;
    }
    enter_job(kind, site, Job::default())
}

/// The same, for a job of the CPU lane. The caller asks whether a lane is [watched](is_watched).
#[must_use]
pub(crate) fn enter_job(kind: Kind, site: Site, job: Job) -> Option<Entered> {
    with_own(|own| {
        let before = own.record.inner();
        match kind {
            Kind::Span => own.enter_span(site),
            _ => own.enter_poll(kind, site, job),
        }
        Entered {
            kind,
            before,
            not_send: PhantomData,
        }
    })
}

/// A probe runs on this thread.
pub(crate) fn probed() {
    with_own(Own::probed);
}

#[derive(Debug)]
pub(crate) struct Entered {
    kind: Kind,
    /// The innermost one before.
    before: Site,
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        with_own(|own| {
            match self.kind {
                Kind::Span => own.leave_span(),
                _ => own.leave_poll(),
            }
            own.record.set_inner(self.before);
        });
    }
}

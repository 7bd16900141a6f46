//! Observed: on which threads an HTTP client does each of its steps.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tower::Service;

use crate::support::thread_name;

/// The threads, by step. As hyper's executor it watches the tasks that it
/// spawns, too.
#[derive(Clone, Debug, Default)]
pub struct Threads(Arc<Mutex<BTreeSet<(&'static str, String)>>>);

impl Threads {
    pub fn seen(&self) -> BTreeSet<(&'static str, String)> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, step: &'static str) {
        self.0.lock().unwrap().insert((step, thread_name()));
    }

    fn watch<F: Future>(
        &self,
        step: &'static str,
        future: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let threads = self.clone();
        let mut future = Box::pin(future);
        poll_fn(move |cx| {
            threads.note(step);
            future.as_mut().poll(cx)
        })
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Threads {
    fn execute(&self, future: F) {
        self.note("spawn");
        tokio::spawn(self.watch("task", future));
    }
}

/// A service that is watched at each step.
#[derive(Clone, Debug)]
pub struct Watched<S> {
    service: S,
    threads: Threads,
}

impl<S> Watched<S> {
    pub fn new(service: S, threads: &Threads) -> Self {
        let threads = threads.clone();
        Self { service, threads }
    }
}

impl<S, R> Service<R> for Watched<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.threads.note("poll_ready");
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.threads.note("call");
        Box::pin(self.threads.watch("response", self.service.call(request)))
    }
}

//! The user's hooks, which run at the start and the end of each lane thread.

use std::sync::Arc;

use crate::panics;

type Hook = Arc<dyn Fn() + Send + Sync>;

/// The user's hooks, in the order in which they were added.
#[derive(Clone, Default)]
pub(crate) struct ThreadHooks {
    start: Vec<Hook>,
    stop: Vec<Hook>,
}

impl ThreadHooks {
    pub(crate) fn on_start(&mut self, hook: impl Fn() + Send + Sync + 'static) {
        self.start.push(Arc::new(hook));
    }

    pub(crate) fn on_stop(&mut self, hook: impl Fn() + Send + Sync + 'static) {
        self.stop.push(Arc::new(hook));
    }

    pub(crate) fn started(&self) {
        for hook in &self.start {
            panics::run_hook("an `on_thread_start` hook", || hook());
        }
    }

    pub(crate) fn stopping(&self) {
        for hook in &self.stop {
            panics::run_hook("an `on_thread_stop` hook", || hook());
        }
    }
}

//! The guide: one page for each question.
//!
//! Start with [in a handler, in a job](handler_or_job): it says which half of this crate you need.
//!
//! | you ask | page |
//! |---|---|
//! | Where does my I/O go, where does my CPU-heavy work go? | [`handler_or_job`] |
//! | What do I write to hash passwords, resize images, answer queries? | [`recipes`] |
//! | Why is my p99 bad? | [`p99`] |
//! | What blocks my I/O lane? | [`blockers`] |
//! | Why is a request late on a runtime that has nothing else to do? | [`stall`] |
//! | How does a small job pass a long queue? Why does the I/O lane always get a core? | [`late_job`] |
//! | Which kernels keep that promise? What about Linux 7? | [`kernels`] |
//! | What happens with more load than the lane can serve? How do I cancel work? | [`overload`] |
//! | In which order do I shut down, and what becomes of each job? | [`shutdown`] |
//! | How do I decode, filter or encode a stream on all cores? | [`streams`] |
//! | How do I use a database, Redis, gRPC or another client inside a job? | [`clients`] |
//! | How do I use object_store? | [`object_store`] |
//! | How do I give my engine a lane (slatedb, vortex, polars, ...)? | [`engines`] |
//! | How do I run DataFusion or Ballista on one? | [`datafusion`] |
//! | What changes under a CPU quota? | [`containers`] |
//! | What if one machine is not enough? | [`machines`] |
//! | What does an offload cost, and what work is worth one? | [`cost`] |
//! | What can I set? | [`settings`] |
//! | What do the counters mean, and what do I alert on? | [`metrics`] |
//! | Which backend, and what is safe on it? | [`backends`] |
//! | What was measured, when, and by which command? | [`measured`] |
//!
//! The pages are also the files of `docs/` in the repository.

// For the links of the pages.
#[allow(unused_imports)]
use crate::{io::*, metrics::*, stream::*, *};

/// In a page, `[text][stall]` leads to the file of that name where the repository is
/// read, and to the module here: of two definitions of a link, the first one counts. The
/// files of the examples are not in the documentation, so a link to one leads to the heading
/// that names it.
/// A page whose code needs features is empty without them.
macro_rules! pages {
    ($($name:ident: $file:literal $(with $picture:literal)? $(if $($feature:literal),+)?;)*) => {$(
        /// [handler_or_job]: crate::guide::handler_or_job
        /// [p99]: crate::guide::p99
        /// [recipes]: crate::guide::recipes
        /// [stall]: crate::guide::stall
        /// [late_job]: crate::guide::late_job
        /// [late_job_nice]: crate::guide::late_job#why-these-nice-values
        /// [kernels]: crate::guide::kernels
        /// [object_store]: crate::guide::object_store
        /// [engines]: crate::guide::engines
        /// [datafusion]: crate::guide::datafusion
        /// [clients]: crate::guide::clients
        /// [streams]: crate::guide::streams
        /// [one_result]: crate::guide::streams#one-result-from-a-stream
        /// [overload]: crate::guide::overload
        /// [shutdown]: crate::guide::shutdown
        /// [containers]: crate::guide::containers
        /// [cost]: crate::guide::cost
        /// [cost_trip]: crate::guide::cost#what-a-trip-costs
        /// [settings]: crate::guide::settings
        /// [metrics]: crate::guide::metrics
        /// [backends]: crate::guide::backends
        /// [measured]: crate::guide::measured
        /// [blockers]: crate::guide::blockers
        /// [the_lag]: crate::guide::blockers#the-lag
        /// [dashboard]: crate::guide::metrics#a-dashboard
        /// [ways]: crate::guide::clients
        /// [machines]: crate::guide::machines
        /// [password.rs]: crate::guide::recipes#hash-a-password
        /// [tokenize.rs]: crate::guide::recipes#tokenize-a-prompt
        /// [thumbnails.rs]: crate::guide::recipes#thumbnails-of-uploads
        /// [report.rs]: crate::guide::recipes#a-report-from-a-database
        /// [query_service.rs]: crate::guide::recipes#a-query-service
        /// [upstream]: crate::guide::datafusion#ballista
        /// [from_spawn_blocking.rs]: crate::guide::recipes#from-spawn_blocking
        /// [batch_on_low.rs]: crate::guide::recipes#a-batch-job-beside-a-service
        /// [many_tasks.rs]: crate::guide::recipes#many-tasks-at-once
        /// [ready.rs]: crate::guide::recipes#readiness
        /// [queue_worker.rs]: crate::guide::recipes#a-worker-on-a-queue
        /// [paused_clock.rs]: crate::guide::recipes#a-test-with-a-paused-clock
        #[cfg_attr(
            all($($(feature = $feature),+)?),
            doc = include_str!($file),
            $(doc = concat!("\n", include_str!($picture)),)?
        )]
        pub mod $name {}
    )*};
}

pages! {
    handler_or_job: "../docs/handler_or_job.md";
    recipes: "../docs/recipes.md" if "axum", "test-util";
    p99: "../docs/p99.md" if "tower";
    stall: "../docs/stall.md";
    late_job: "../docs/late_job.md";
    kernels: "../docs/kernels.md";
    object_store: "../docs/object_store.md" if "object_store_0_14";
    engines: "../docs/engines.md" if "object_store_0_14";
    datafusion: "../docs/datafusion.md" if "object_store_0_13";
    clients: "../docs/clients.md" if "object_store_0_14";
    streams: "../docs/streams.md" if "axum";
    overload: "../docs/overload.md";
    shutdown: "../docs/shutdown.md";
    containers: "../docs/containers.md";
    machines: "../docs/machines.md";
    cost: "../docs/cost.md";
    settings: "../docs/settings.md";
    metrics: "../docs/metrics.md" with "../docs/dashboard.svg" if "prometheus-client", "metrics-facade";
    blockers: "../docs/blockers.md" if "tower", "tracing-layer";
    backends: "../docs/backends.md";
    measured: "../docs/measured.md";
}

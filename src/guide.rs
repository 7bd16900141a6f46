//! The guide: one page for each question.
//!
//! Start with [in a handler, in a job](handler_or_job): it says which half of this crate you need.
//!
//! | you ask | page |
//! |---|---|
//! | Where does my I/O go, where does my CPU-heavy work go? | [`handler_or_job`] |
//! | What do I write to hash passwords, resize images, tokenize prompts? | [`recipes`] |
//! | What happens with more load than the lane can serve? | [`overload`] |
//! | How does one customer's burst not delay the others? | [`fair`](mod@fair) |
//! | How do I bound and cancel work? | [`timeouts`] |
//! | In which order do I shut down, and what becomes of each job? | [`shutdown`] |
//! | Why is my p99 bad? What blocks my I/O lane? | [`p99`] |
//! | How does a small job pass a long queue? | [`late_job`] |
//! | How do I decode, filter or encode a stream on all cores? | [`streams`] |
//! | How do I use a database, Redis, gRPC or another client inside a job? | [`clients`] |
//! | What runs where in a job, what is safe? | [`in_a_job`] |
//! | Why is a request late on a runtime that has nothing else to do? | [`stall`] |
//! | What does an offload cost, and what work is worth one? | [`cost`] |
//! | What do the counters mean, and what do I alert on? | [`metrics`] |
//! | Which kernels give the I/O lane a core at once? What changes in a container? | [`linux`] |
//! | What can I set? | [`settings`] |
//! | How do I test code that has a lane? | [`testing`] |
//! | What if one machine is not enough? | [`machines`] |
//! | How do I move in, with a pool, an executor or a second runtime? | [`move_in`] |
//! | What else could I do? | [`alternatives`] |
//!
//! For engines, and futures that compute:
//!
//! | you ask | page |
//! |---|---|
//! | How do I give my engine a lane (slatedb, vortex, polars, ...)? | [`engines`] |
//! | How do I run DataFusion or Ballista on one? | [`datafusion`] |
//! | How do I use object_store? | [`object_store`] |
//!
//! The pages are also the files of `docs/` in the repository. `docs/contributors/measured.md` there
//! has all measurements, with their commands.

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
        /// [linux]: crate::guide::linux
        /// [timeouts]: crate::guide::timeouts
        /// [testing]: crate::guide::testing
        /// [alternatives]: crate::guide::alternatives
        /// [move_in]: crate::guide::move_in
        /// [object_store]: crate::guide::object_store
        /// [engines]: crate::guide::engines
        /// [datafusion]: crate::guide::datafusion
        /// [clients]: crate::guide::clients
        /// [streams]: crate::guide::streams
        /// [one_result]: crate::guide::streams#one-result-from-a-stream
        /// [overload]: crate::guide::overload
        /// [fair]: crate::guide::fair
        /// [shutdown]: crate::guide::shutdown
        /// [cost]: crate::guide::cost
        /// [cost_trip]: crate::guide::cost#what-a-trip-costs
        /// [settings]: crate::guide::settings
        /// [metrics]: crate::guide::metrics
        /// [in_a_job]: crate::guide::in_a_job
        /// [the_lag]: crate::guide::p99#the-lag
        /// [dashboard]: crate::guide::metrics#a-dashboard
        /// [ways]: crate::guide::clients
        /// [machines]: crate::guide::machines
        /// [password.rs]: crate::guide::recipes#hash-a-password
        /// [tenants.rs]: crate::guide::recipes#customers-that-share-a-service
        /// [tokenize.rs]: crate::guide::recipes#tokenize-a-prompt
        /// [thumbnails.rs]: crate::guide::recipes#thumbnails-of-uploads
        /// [report.rs]: crate::guide::recipes#a-report-from-a-database
        /// [query_service.rs]: crate::guide::recipes#a-query-service
        /// [upstream]: crate::guide::datafusion#ballista
        /// [from_spawn_blocking.rs]: crate::guide::recipes#from-spawn_blocking
        /// [dedicated_executor.rs]: crate::guide::recipes#a-dedicatedexecutor
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
    p99: "../docs/p99.md" if "tower", "tracing-layer";
    stall: "../docs/stall.md";
    late_job: "../docs/late_job.md";
    linux: "../docs/linux.md";
    object_store: "../docs/object_store.md" if "object_store_0_14";
    engines: "../docs/engines.md" if "object_store_0_14";
    datafusion: "../docs/datafusion.md" if "object_store_0_13";
    clients: "../docs/clients.md" if "object_store_0_14";
    streams: "../docs/streams.md" if "axum";
    overload: "../docs/overload.md" if "axum";
    fair: "../docs/fair.md" if "axum";
    timeouts: "../docs/timeouts.md" if "axum";
    shutdown: "../docs/shutdown.md";
    machines: "../docs/machines.md";
    cost: "../docs/cost.md";
    settings: "../docs/settings.md";
    metrics: "../docs/metrics.md" with "../docs/dashboard.svg" if "prometheus-client", "metrics-facade";
    testing: "../docs/testing.md" if "axum", "test-util";
    move_in: "../docs/move_in.md";
    alternatives: "../docs/alternatives.md";
    in_a_job: "../docs/in_a_job.md";
}

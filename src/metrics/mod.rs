//! Figures of a lane, and what brings them to a monitoring system.
//!
//! Use [`Handle::metrics`](crate::Handle::metrics) for counts of what became of the jobs, in a log
//! line or a test; an exporter for a dashboard; [`Handle::call_sites`](crate::Handle::call_sites)
//! to see which places in the code submit jobs, and whether their offload pays.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use twolane::metrics::Metrics;
//!
//! let cpu = twolane::CpuRuntime::new()?;
//! cpu.spawn_cpu(|| (1..=1_000_u64).sum::<u64>()).await?;
//! let now: Metrics = cpu.handle().metrics();
//! assert_eq!((now.submitted, now.completed), (1, 1));
//! println!("{now}");
//! # Ok(()) }
//! ```
//!
//! | you want | use |
//! |---|---|
//! | the counters of a priority | [`Metrics`] |
//! | how long jobs wait and run | the [`DurationHistogram`]s in it ([`Builder::histograms`](crate::Builder::histograms)) |
//! | jobs by the place that submits them | [`CallSites`], [`CallSite`] |
//! | `prometheus-client` | [`PrometheusCollector`] (feature `prometheus-client`) |
//! | any exporter of the facade `metrics` | [`MetricsReporter`] (feature `metrics-facade`) |
//!
//! [The guide](crate::guide::metrics) says what each figure means, and has a dashboard.

#[cfg(any(feature = "metrics-facade", feature = "prometheus-client"))]
mod export;

#[cfg(feature = "metrics-facade")]
pub use export::facade::MetricsReporter;
#[cfg(feature = "prometheus-client")]
pub use export::prometheus::PrometheusCollector;
#[doc(inline)]
pub use twolane_core::metrics::{CallSite, CallSites, DurationHistogram, KeyUsage, Metrics};

//! Does every query of the Grafana dashboard find something? Puts `metrics_endpoint` under
//! load, lets a real Prometheus scrape it by both exporters, asks Prometheus each query of
//! `docs/grafana/twolane.json`, and draws the answers.
//!
//! `.ci/dashboard` fetches Prometheus and runs this:
//!
//! ```text
//! .ci/dashboard --picture docs/dashboard.svg
//! ```

mod load;
mod picture;
mod prometheus;

#[path = "../../metrics_endpoint.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod service;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use picture::Panel;
use prometheus::Prometheus;
use serde_json::Value;
use service::Error;
use tokio::net::TcpListener;

/// What Prometheus calls its two targets.
const JOBS: [(&str, &str); 2] = [("collector", "/metrics"), ("facade", "/facade/metrics")];
/// Instead of Grafana's `$__rate_interval`: some scrapes.
const RATE: Duration = Duration::from_secs(3);

#[derive(Parser)]
struct Args {
    /// The folder with `prometheus` and `promtool`.
    #[arg(long, default_value = "/usr/bin")]
    prometheus: PathBuf,
    /// For how many seconds there is load.
    #[arg(long, default_value_t = 24)]
    seconds: u64,
    #[arg(long, default_value = "target/twolane/dashboard.svg")]
    picture: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args = Args::parse();
    // A test begins in the folder of its package, and paths are those of the workspace.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
    silence_planned_panics();
    let dashboard = std::fs::read("docs/grafana/twolane.json")?;
    let dashboard: Value = serde_json::from_slice(&dashboard)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = tokio::spawn(service::serve(listener));
    let prometheus = Prometheus::start(args.prometheus, address).await?;

    println!("load on http://{address} for {} s", args.seconds);
    let begin = now();
    load::put(address, Duration::from_secs(args.seconds)).await?;
    let span = begin + RATE.as_secs_f64()..now();
    assert!(!service.is_finished(), "{:?}", service.await);
    prometheus.check_metrics(address).await?;
    println!("promtool finds nothing to say of /metrics");

    let mut failures = 0;
    let variables = list(&dashboard["templating"]["list"]).iter();
    for variable in variables.filter(|one| one["type"] == "query") {
        let values = prometheus.label_values(text(&variable["definition"]))?;
        println!(
            "${}: {}",
            text(&variable["name"]),
            values.replace('\n', " ")
        );
        failures += usize::from(values.trim().is_empty());
    }
    let mut drawn = Vec::new();
    for panel in list(&dashboard["panels"]) {
        for (job, _) in JOBS {
            let mut answers = Vec::new();
            for query in list(&panel["targets"]) {
                let (expression, legend) = (text(&query["expr"]), text(&query["legendFormat"]));
                let found = prometheus.query_range(expression, legend, job, &span)?;
                let points = || found.iter().flat_map(|series| &series.points);
                // It has found something if it has a value above zero.
                let most = points().map(|(_, value)| *value).fold(0.0, f64::max);
                println!(
                    "{:8} {job:10} {:38} {legend:28} {:2} series {:4} points, up to {most:.4}",
                    if most > 0.0 { "ok" } else { "NOTHING" },
                    text(&panel["title"]),
                    found.len(),
                    points().count(),
                );
                failures += usize::from(most == 0.0);
                answers.extend(found);
            }
            drawn.push(Panel {
                title: text(&panel["title"]),
                unit: text(&panel["fieldConfig"]["defaults"]["unit"]),
                series: answers,
            });
        }
    }
    std::fs::create_dir_all("target/twolane")?;
    let of_collector: Vec<_> = drawn.iter().step_by(JOBS.len()).collect();
    picture::draw(&of_collector, span, &args.picture).map_err(|error| error.to_string())?;
    println!("{}", args.picture.display());
    match failures {
        0 => Ok(()),
        n => Err(format!("{n} queries found nothing").into()),
    }
}

fn list(json: &Value) -> &Vec<Value> {
    let filled = json.as_array().filter(|list| !list.is_empty());
    filled.unwrap_or_else(|| panic!("no list, or an empty one: {json}"))
}

fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_else(|| panic!("no text: {json}"))
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

fn silence_planned_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains("planned") {
            print(panic);
        }
    }));
}

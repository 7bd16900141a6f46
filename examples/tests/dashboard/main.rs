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
mod panels;
mod picture;
mod prometheus;

#[path = "../../metrics_endpoint.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod service;

#[path = "../../../benches/src/picture/words.rs"]
#[allow(unreachable_pub, reason = "here it is no library's")]
mod words;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use panels::{Dashboard, Panel};
use prometheus::{Prometheus, Series};
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
    /// Where the picture goes. Default: `target/twolane/dashboard.svg`.
    #[arg(long)]
    picture: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args = Args::parse();
    // A test begins in the folder of its package, and paths are those of the workspace.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    silence_planned_panics();
    let dashboard = Dashboard::read()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = tokio::spawn(service::serve(listener));
    let prometheus = Prometheus::start(&args.prometheus, address).await?;

    println!("load on http://{address} for {} s", args.seconds);
    let begin = now();
    load::put(address, Duration::from_secs(args.seconds)).await?;
    let span = (begin + RATE.as_secs_f64(), now());
    if service.is_finished() {
        service.await??;
        return Err("the service has ended".into());
    }
    prometheus::check_metrics(&args.prometheus, address).await?;
    println!("promtool finds nothing to say of /metrics");

    let mut failures = 0;
    for variable in &dashboard.variables {
        let values = prometheus.label_values(variable).await?;
        println!("${}: {values:?}", variable.name);
        failures += usize::from(values.is_empty());
    }
    let mut drawn = Vec::new();
    for panel in dashboard.panels {
        for (job, _) in JOBS {
            let answers = ask(&prometheus, &panel, job, span, &mut failures).await?;
            if job == "collector" {
                drawn.push((panel.clone(), answers));
            }
        }
    }
    let path = match args.picture {
        Some(path) => path,
        None => {
            std::fs::create_dir_all("target/twolane")?;
            "target/twolane/dashboard.svg".into()
        }
    };
    picture::draw(&drawn, span, &path).map_err(|error| error.to_string())?;
    println!("{}", path.display());
    match failures {
        0 => Ok(()),
        n => Err(format!("{n} queries found nothing").into()),
    }
}

/// Asks all queries of a panel. A query has found something if it has a value above zero.
async fn ask(
    prometheus: &Prometheus,
    panel: &Panel,
    job: &str,
    span: (f64, f64),
    failures: &mut usize,
) -> Result<Vec<Series>, Error> {
    let mut answers = Vec::new();
    for query in &panel.queries {
        let found = prometheus.query_range(query, job, span).await?;
        let points = || found.iter().flat_map(|series| &series.points);
        let most = points().map(|(_, value)| *value).fold(0.0, f64::max);
        let verdict = if most > 0.0 { "ok" } else { "NOTHING" };
        println!(
            "{verdict:8} {job:10} {:38} {:28} {:2} series {:4} points, up to {most:.4}",
            panel.title,
            query.legend,
            found.len(),
            points().count(),
        );
        *failures += usize::from(most == 0.0);
        answers.extend(found);
    }
    Ok(answers)
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

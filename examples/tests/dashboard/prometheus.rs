//! A real Prometheus: its process, its HTTP API, and promtool.

use std::fmt::Write;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::picture::Series;
use crate::service::Error;
use crate::{JOBS, RATE, list, text};

pub(crate) struct Prometheus {
    /// The folder of its programs.
    programs: PathBuf,
    url: String,
    process: Child,
    // Removed after the process has ended.
    folder: TempDir,
}

impl Prometheus {
    /// Starts it on a free port, with a folder that is removed at the end.
    pub(crate) async fn start(programs: PathBuf, target: SocketAddr) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("twolane-prometheus-")
            .tempdir()?;
        let mut config = "global: {scrape_interval: 500ms}\nscrape_configs:\n".to_owned();
        for (job, path) in JOBS {
            writeln!(
                config,
                "- {{job_name: {job}, metrics_path: {path}, \
                 static_configs: [{{targets: [\"{target}\"]}}]}}"
            )?;
        }
        fs::write(folder.path().join("prometheus.yml"), config)?;
        let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let process = Command::new(fs::canonicalize(programs.join("prometheus"))?)
            .current_dir(folder.path())
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={free}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.path().join("log"))?)
            .spawn()?;
        let mut prometheus = Self {
            programs,
            url: format!("http://{free}"),
            process,
            folder,
        };
        let ready = timeout(Duration::from_secs(30), prometheus.ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            let log = fs::read_to_string(prometheus.folder.path().join("log"))?;
            return Err(format!("Prometheus does not start:\n{log}").into());
        }
        Ok(prometheus)
    }

    async fn ready(&mut self) -> Result<(), Error> {
        let url = format!("{}/-/ready", self.url);
        while !reqwest::get(&url)
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            if let Some(status) = self.process.try_wait()? {
                return Err(status.to_string().into());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// `legend` has labels in double braces.
    pub(crate) fn query_range(
        &self,
        expression: &str,
        legend: &str,
        job: &str,
        span: &Range<f64>,
    ) -> Result<Vec<Series>, Error> {
        let rate = format!("{}s", RATE.as_secs());
        let expression = with_variables(expression, job).replace("$__rate_interval", &rate);
        let (start, end) = (
            format!("--start={}", span.start),
            format!("--end={}", span.end),
        );
        let range = ["query", "range", "--format=json", "--step=1s", &start, &end];
        let found = self.promtool(
            &[&range[..], &[&self.url, &expression]].concat(),
            Stdio::null(),
        );
        let found: Vec<Value> = serde_json::from_str(&found?)?;
        Ok(found.iter().map(|series| read(series, legend)).collect())
    }

    /// A line for each, by `label_values(selector, label)`.
    pub(crate) fn label_values(&self, definition: &str) -> Result<String, Error> {
        let of = definition.strip_prefix("label_values(");
        let of = of.and_then(|of| of.strip_suffix(')')?.rsplit_once(", "));
        let (selector, label) = of.ok_or_else(|| format!("no label_values: {definition}"))?;
        let selector = format!("--match={}", with_variables(selector, ".*"));
        self.promtool(
            &["query", "labels", &selector, &self.url, label],
            Stdio::null(),
        )
    }

    /// Has promtool read a scrape. It knows Prometheus' older format: there, the lines that describe
    /// a counter have the name with `_total`.
    pub(crate) async fn check_metrics(&self, target: SocketAddr) -> Result<(), Error> {
        let scrape = reqwest::get(format!("http://{target}/metrics")).await?;
        let scrape = String::from_utf8(scrape.bytes().await?.into())?;
        let mut older = scrape.clone();
        let kinds = scrape
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "));
        for counter in kinds.filter_map(|kind| kind.strip_suffix(" counter")) {
            for of in ["HELP", "TYPE", "UNIT"] {
                let line = format!("# {of} {counter}");
                older = older.replace(&format!("{line} "), &format!("{line}_total "));
            }
        }
        let file = self.folder.path().join("scrape");
        fs::write(&file, older)?;
        self.promtool(&["check", "metrics"], File::open(file)?.into())?;
        Ok(())
    }

    /// What it prints.
    fn promtool(&self, arguments: &[&str], input: Stdio) -> Result<String, Error> {
        let mut promtool = Command::new(self.programs.join("promtool"));
        let found = promtool.args(arguments).stdin(input).output()?;
        if found.status.success() {
            return Ok(String::from_utf8(found.stdout)?);
        }
        let said = [found.stdout, found.stderr].concat();
        Err(format!("promtool {arguments:?}: {}", String::from_utf8_lossy(&said)).into())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn with_variables(expression: &str, job: &str) -> String {
    expression.replace("$job", job).replace("$lane", ".*")
}

fn read(series: &Value, legend: &str) -> Series {
    let mut legend = legend.to_owned();
    for (label, value) in series["metric"].as_object().into_iter().flatten() {
        legend = legend.replace(&format!("{{{{{label}}}}}"), text(value));
    }
    let point = |point: &Value| Some((point[0].as_f64()?, point[1].as_str()?.parse::<f64>().ok()?));
    let points = list(&series["values"]).iter().filter_map(point);
    Series {
        legend,
        // A quantile of nothing is NaN.
        points: points.filter(|(_, value)| value.is_finite()).collect(),
    }
}

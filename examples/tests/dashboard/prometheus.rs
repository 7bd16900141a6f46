//! A real Prometheus: its process, its HTTP API, and promtool.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::panels::{Query, Variable};
use crate::service::Error;
use crate::{JOBS, RATE};

pub(crate) struct Prometheus {
    url: String,
    client: Client,
    process: Child,
    // Removed after the process has ended.
    _folder: TempDir,
}

pub(crate) struct Series {
    pub(crate) legend: String,
    /// The time in seconds, and the value.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Prometheus {
    /// Starts it on a free port, with a folder that is removed at the end.
    pub(crate) async fn start(programs: &Path, target: SocketAddr) -> Result<Self, Error> {
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
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config)?;
        let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let process = Command::new(programs.join("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={free}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut prometheus = Self {
            url: format!("http://{free}"),
            client: Client::new(),
            process,
            _folder: folder,
        };
        let ready = timeout(Duration::from_secs(30), prometheus.ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            let log = std::fs::read_to_string(prometheus._folder.path().join("log"))?;
            return Err(format!("Prometheus does not start:\n{log}").into());
        }
        Ok(prometheus)
    }

    async fn ready(&mut self) -> Result<(), Error> {
        loop {
            let answer = self
                .client
                .get(format!("{}/-/ready", self.url))
                .send()
                .await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                return Err(status.to_string().into());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn query_range(
        &self,
        query: &Query,
        job: &str,
        (start, end): (f64, f64),
    ) -> Result<Vec<Series>, Error> {
        let rate = format!("{}s", RATE.as_secs());
        let expression = with_variables(&query.expression, job).replace("$__rate_interval", &rate);
        let (start, end) = (start.to_string(), end.to_string());
        let parameters = [
            ("query", &*expression),
            ("start", &start),
            ("end", &end),
            ("step", "1"),
        ];
        let found = self.ask("query_range", &parameters).await?;
        let series = found["result"].as_array().ok_or("no result")?.iter();
        Ok(series.map(|series| read(series, &query.legend)).collect())
    }

    pub(crate) async fn label_values(&self, of: &Variable) -> Result<Vec<String>, Error> {
        let path = format!("label/{}/values", of.label);
        let selector = with_variables(&of.selector, ".*");
        let found = self.ask(&path, &[("match[]", &selector)]).await?;
        let found = found.as_array().ok_or("no list")?.iter();
        Ok(found
            .filter_map(|value| Some(value.as_str()?.to_owned()))
            .collect())
    }

    async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, Error> {
        let mut url = format!("{}/api/v1/{path}?", self.url);
        for (name, value) in parameters {
            write!(url, "{}={}&", encoded(name), encoded(value))?;
        }
        let answer = self.client.get(url).send().await?.bytes().await?;
        let mut answer: Value = serde_json::from_slice(&answer)?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"].take()),
            _ => Err(format!("{parameters:?}: {}", answer["error"]).into()),
        }
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

/// For the query of a URL.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn read(series: &Value, legend: &str) -> Series {
    let none = serde_json::Map::new();
    let labels = series["metric"].as_object().unwrap_or(&none).iter();
    let labels: BTreeMap<_, _> = labels.map(|(k, v)| (k, v.as_str().unwrap_or(""))).collect();
    let mut legend = legend.to_owned();
    for (label, value) in labels {
        legend = legend.replace(&format!("{{{{{label}}}}}"), value);
    }
    let point = |point: &Value| Some((point[0].as_f64()?, point[1].as_str()?.parse::<f64>().ok()?));
    let points = series["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(point);
    Series {
        legend,
        // A quantile of nothing is NaN.
        points: points.filter(|(_, value)| value.is_finite()).collect(),
    }
}

/// Has `promtool check metrics` read a scrape. It knows Prometheus' older format: there,
/// the line of a counter's type has the name with `_total`.
pub(crate) async fn check_metrics(programs: &Path, target: SocketAddr) -> Result<(), Error> {
    let scrape = reqwest::get(format!("http://{target}/metrics"))
        .await?
        .bytes()
        .await?;
    let mut older = String::new();
    let scrape = std::str::from_utf8(&scrape)?;
    let is_counter = |name: &str| scrape.contains(&format!("# TYPE {name} counter\n"));
    for line in scrape.lines() {
        let mut words: Vec<_> = line.splitn(4, ' ').map(str::to_owned).collect();
        if line.starts_with("# ") && words.len() == 4 && is_counter(&words[2]) {
            words[2] += "_total";
        }
        writeln!(older, "{}", words.join(" "))?;
    }
    let mut promtool = Command::new(programs.join("promtool"));
    let promtool = promtool.args(["check", "metrics"]);
    let pipes = promtool
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = pipes.spawn()?;
    let mut stdin = promtool.stdin.take().ok_or("it has no stdin")?;
    std::io::Write::write_all(&mut stdin, older.as_bytes())?;
    drop(stdin);
    let found = promtool.wait_with_output()?;
    if found.status.success() {
        return Ok(());
    }
    let said = [found.stdout, found.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    Err(format!("promtool check metrics: {}", said.concat()).into())
}

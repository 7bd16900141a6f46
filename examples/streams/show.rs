//! Runs each recipe once, and prints what came out.

use std::collections::BTreeMap;
use std::io;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use futures::{TryStreamExt, stream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use twolane::{CpuRuntime, Handle};

use crate::consumer::{self, Message, Store};
use crate::{Error, download, fan, pipeline, pool};

const NAMES: [&str; 5] = ["pipeline", "fan", "pool", "consumer", "download"];

pub async fn show() -> Result<(), Error> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    // They are short: `--quick` asks for nothing else.
    let mut asked = args.iter().filter(|arg| *arg != "--quick");
    if let Some(other) = asked.clone().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!("no recipe `{other}`: there are {}", NAMES.join(", ")).into());
    }
    let all = asked.next().is_none();
    let cpu = CpuRuntime::new()?;
    for name in NAMES {
        if all || args.iter().any(|arg| arg == name) {
            let found = match name {
                "pipeline" => show_pipeline(cpu.handle()).await?,
                "fan" => show_fan(cpu.handle()).await?,
                "pool" => show_pool(cpu.handle()).await?,
                "consumer" => show_consumer(cpu.handle()).await?,
                _ => show_download(cpu.handle()).await?,
            };
            println!("{name}: {found}");
        }
    }
    cpu.shutdown().await;
    Ok(())
}

async fn show_pipeline(cpu: &Handle) -> Result<String, Error> {
    let logarithms = pipeline::three_stages(cpu, 0..600);
    let logarithms: Vec<_> = logarithms.try_collect().await?;
    let lines = stream::iter(["7,3", "8,1"].map(str::to_owned));
    let bills = pipeline::with_io(cpu, lines, async |product| Ok(u64::from(product) * 100));
    let bills: Vec<_> = bills.try_collect().await?;
    Ok(format!("{} logarithms; bills {bills:?}", logarithms.len()))
}

async fn show_fan(cpu: &Handle) -> Result<String, Error> {
    let sources =
        (0..4_u64).map(|source| stream::iter((0..1_000).map(move |n| source * 1_000 + n)));
    let outputs = fan::fan(cpu, sources.collect(), |n: u64| n % 7 == 0);
    let (send, mut written) = mpsc::unbounded_channel();
    fan::write_all(outputs, |output| {
        let send = send.clone();
        async move { Ok(send.send(output)?) }
    })
    .await?;
    drop(send);
    let mut counts = BTreeMap::new();
    while let Some(output) = written.recv().await {
        *counts.entry(output).or_insert(0) += 1;
    }
    Ok(format!("multiples of 7 in 4 sources: {counts:?}"))
}

async fn show_pool(cpu: &Handle) -> Result<String, Error> {
    let (send, jobs) = mpsc::channel(16);
    let mut compressed = pool::pool(cpu, jobs, pool::compressor);
    tokio::spawn(async move {
        for n in 0..100 {
            // An error means that the pool is gone.
            let _ = send
                .send(format!("document {n} ").repeat(1_000).into_bytes())
                .await;
        }
    });
    let (mut documents, mut bytes) = (0, 0);
    while let Some(document) = compressed.try_next().await? {
        documents += 1;
        bytes += document.len();
    }
    Ok(format!("{documents} documents in {bytes} bytes"))
}

#[derive(Default)]
struct Sum {
    sum: u64,
    committed: u64,
}

impl Store for Sum {
    async fn write(&mut self, output: u64) -> Result<(), Error> {
        self.sum += output;
        Ok(())
    }

    async fn commit(&mut self, offset: u64) -> Result<(), Error> {
        self.committed = offset;
        Ok(())
    }
}

/// The computation of one message fails: a restart would begin with it.
async fn show_consumer(cpu: &Handle) -> Result<String, Error> {
    let (send, messages) = mpsc::channel(16);
    tokio::spawn(async move {
        for offset in 0..1_000 {
            let text = if offset == 700 {
                "poison".into()
            } else {
                offset.to_string()
            };
            // An error means that the consumer is gone.
            let _ = send.send(Message { offset, text }).await;
        }
    });
    let mut store = Sum::default();
    let end = consumer::consume(cpu, messages, |text| Ok(text.parse()?), &mut store).await;
    let Sum { sum, committed } = store;
    Ok(format!("sum {sum}, {committed} committed, then {end:?}"))
}

/// A service with both, and a client.
async fn show_download(cpu: &Handle) -> Result<String, Error> {
    let rows = async |State(cpu): State<Handle>| {
        download::of_rows(&cpu, (0..100_000).map(|n| format!("row {n}"))).into_response()
    };
    let source = async |State(cpu): State<Handle>| {
        let file = stream::iter((0..100).map(|n| io::Result::Ok(vec![n; 10_000].into())));
        download::of_source(&cpu, file).into_response()
    };
    let routes = Router::new()
        .route("/rows", get(rows))
        .route("/file", get(source));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, routes.with_state(cpu.clone())).into_future());
    let mut sizes = Vec::new();
    for path in ["rows", "file"] {
        let answer = reqwest::get(format!("http://{address}/{path}")).await?;
        sizes.push(answer.bytes().await?.len());
    }
    let mut reader = Box::pin(download::reader(
        cpu,
        (0..100_000).map(|n| format!("row {n}")),
    ));
    let copied = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await?;
    Ok(format!(
        "bytes of gzip: {sizes:?}, and {copied} by a reader"
    ))
}

//! Who tokenizes? A public incident: an LLM gateway tokenized in `spawn_blocking`, on a pool of 64
//! threads and few cores, and a limit of as many encodings as there are cores was tried, and given
//! up since it "only shows performance benefit in limited circumstances". This shows both.
//!
//! - `worker`: in the task, as before;
//! - `spawn_blocking`; `semaphore`: the same behind a semaphore of as many permits as there are
//!   cores, which is taken before the prompt is copied; `twolane`: `spawn_cpu`, with nothing set.
//!
//! Each computes in a process of its own:
//!
//! - *64 threads*: 64 clients ask for a prompt of 100 kB one after the other, and Tokio's blocking
//!   pool has 64 threads. *one thread a core*: the same, with a pool of as many as there are cores.
//! - *half the load*: prompts come by chance, half as many as the cores can encode.
//! - *small*: 64 clients, prompts of 500 bytes.
//!
//! Beside it a thread asks an echo on the I/O runtime's socket, and another one, every 5 ms, for a
//! file's length by `spawn_blocking`.
//!
//! ```text
//! cargo bench -p twolane-tokenize --bench tokenize
//! ```

mod gateway;

use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::findings::empty_histogram;
use twolane_benches::{Bench, Column, Contender, Contest, Sample, child, cores};

use crate::gateway::{Done, Gateway, Load, Way};

#[path = "../tokenize.rs"]
#[allow(dead_code, reason = "only its tokenizer is used")]
mod recipe;

fn main() -> ExitCode {
    if let Some(gateway) = child::role::<Gateway>() {
        gateway.run();
    }
    let bench = Bench::new("tokenize");
    let counted_ms = bench.pick([100, 1_000, 10_000, 20_000]);
    let loads = [
        ("64 threads", Load::Closed { bytes: 100_000 }, 64),
        (
            "one thread a core",
            Load::Closed { bytes: 100_000 },
            cores(),
        ),
        ("half the load", Load::Half { bytes: 100_000 }, 64),
        ("small", Load::Closed { bytes: 500 }, 64),
    ];
    let mut contenders = Vec::new();
    for (load_name, load, blocking_threads) in loads {
        for (name, way) in Way::ALL {
            let gateway = Gateway {
                way,
                load,
                blocking_threads,
                counted_ms,
            };
            contenders.push(Contender::new(format!("{load_name}, {name}"), move || {
                Ok(sample(child::ask(&gateway)?, counted_ms))
            }));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 3, 5], Duration::from_secs(120));
    contest.report(|report| {
        report.table(
            "prompts a second; their latency, that of a file's length and of the echo, ms; memory, MiB",
            "",
            &[
                Column::spread("prompts/s", "prompts"),
                Column::pooled("p50", "prompt", 0.5),
                Column::pooled("p99", "prompt", 0.99),
                Column::pooled("file p99", "file", 0.99),
                Column::pooled("echo p50", "echo", 0.5),
                Column::pooled("echo p99", "echo", 0.99),
                Column::median("memory", "memory"),
            ],
        );
        for (load, ..) in loads {
            for other in ["worker", "spawn_blocking", "semaphore"] {
                let [twolane, other_named] = ["twolane", other].map(|name| format!("{load}, {name}"));
                let ratio = format!("prompts_{load}_twolane_over_{other}").replace(' ', "_");
                report.ratio(ratio, "prompts", &twolane, &other_named);
            }
        }
    })
}

fn sample(done: Done, counted_ms: u64) -> Sample {
    let mut sample = Sample::default();
    let prompts = done.prompts.len() as f64 * 1_000.0 / counted_ms as f64;
    sample.put("prompts", "1/s", prompts);
    sample.put("memory", "MiB", done.memory_kib as f64 / 1_024.0);
    for (name, nanos) in [
        ("prompt", done.prompts),
        ("file", done.files),
        ("echo", done.echoes),
    ] {
        let mut histogram = empty_histogram();
        for nanos in nanos {
            histogram.saturating_record(nanos);
        }
        sample.put_latencies(name, histogram);
    }
    sample
}

//! All contenders in turn, each under the same load.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;
use tower::BoxError;

use crate::child::Running;
use crate::client::Latencies;
use crate::contender::{Contender, Server};
use crate::load::{self, Load, Outcome};
use crate::work::Work;
use crate::{checks, health, table};

/// How much more than it can serve comes to each contender.
const OVERLOAD: f64 = 2.0;

pub struct Found {
    pub name: String,
    pub work: Option<Outcome>,
    pub health: Latencies,
}

pub fn all(work: Work, threads: usize, limit: usize, quick: bool) -> Result<ExitCode, BoxError> {
    let seconds = |quick_s, else_s| Duration::from_secs_f64(if quick { quick_s } else { else_s });
    let mut clients = tokio::runtime::Builder::new_current_thread();
    let clients = clients.enable_all().build()?;
    let server = |contender, limit| Server {
        contender,
        work,
        limit,
    };

    let twolane = Running::start(&server(Contender::Twolane, limit))?;
    let capacity = load::capacity(twolane.url("/work"), 2 * threads, seconds(1.0, 4.0));
    let capacity = clients.block_on(capacity)?;
    let load = Load {
        per_second: OVERLOAD * capacity,
        warm_up: seconds(0.5, 2.0),
        counted: seconds(1.5, 10.0),
    };
    table::head(&load, capacity, threads, limit);
    let (warm_up, counted) = (seconds(0.1, 0.5), seconds(0.5, 3.0));
    table::row(
        &Found {
            name: "twolane, idle".to_owned(),
            work: None,
            health: health::ask(&twolane.url("/health"), warm_up, counted)?,
        },
        &load,
    );
    drop(twolane);

    for (contender, limit) in [
        (Contender::Inline, limit),
        (Contender::SpawnBlocking, limit),
        (Contender::SpawnBlockingLimited, limit),
        (Contender::SpawnBlockingLimited, threads),
        (Contender::Twolane, limit),
    ] {
        let running = Running::start(&server(contender, limit))?;
        let mut found = under_load(&clients, &running, &load)?;
        found.name = match contender {
            Contender::Inline | Contender::SpawnBlocking => contender.name(),
            _ => format!("{}, limit {limit}", contender.name()),
        };
        table::row(&found, &load);
        if contender == Contender::Twolane {
            table::what_to_look_for();
            if !clients.block_on(checks::all(&running, limit))? {
                println!("\nNOT SO HERE: a request was shed without need, or a permit got lost.");
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn under_load(clients: &Runtime, running: &Running, load: &Load) -> Result<Found, BoxError> {
    let url = running.url("/health");
    let (warm_up, counted) = (load.warm_up, load.counted);
    let asking = thread::spawn(move || health::ask(&url, warm_up, counted));
    let work = clients.block_on(load.offer(running.url("/work")))?;
    let health = asking.join().expect("it returns its errors")?;
    Ok(Found {
        name: String::new(),
        work: Some(work),
        health,
    })
}

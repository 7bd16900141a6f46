//! Each row that the guide recommends: while jobs keep all threads of the CPU lane, all
//! requests of the I/O side by the same client are answered. A stall is one that is
//! not, until a thread is free: the threads are not freed before.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use twolane_clients::BoxError;
use twolane_clients::clock::Work;
use twolane_clients::lanes::{CPU_THREADS, Lanes, Side};
use twolane_clients::rows::{self, Ask, Client, Make, Mark, World};
use twolane_clients::servers::{Kind, Server};
use twolane_clients::trial::JOB;

use crate::gate::gate;
use crate::servers::{own, server};
use crate::support::time_limit;

/// More than a pool has connections.
const REQUESTS: usize = 12;

/// A recommended row, with 6 or 12 jobs.
struct Case {
    name: String,
    server: Option<Kind>,
    make: Make,
    jobs: usize,
}

fn cases(of: fn(&Client) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for client in rows::all().iter().filter(|client| of(client)) {
        let recommended = client.ways.iter();
        for way in recommended.filter(|way| way.mark == Mark::Recommended) {
            for jobs in [6, 12] {
                cases.push(Case {
                    name: format!("{}: {}, {jobs} jobs", client.name, way.name),
                    server: client.server,
                    make: way.make.clone(),
                    jobs,
                });
            }
        }
    }
    assert!(!cases.is_empty());
    cases
}

fn is_kafka(client: &Client) -> bool {
    client.server == Some(Kind::Kafka)
}

fn all_are_answered_by(of: fn(&Client) -> bool, warm: bool) {
    for case in cases(of) {
        case.run(case.server.map(server), warm, all_are_answered);
    }
}

#[test]
fn cold() {
    all_are_answered_by(|client| !is_kafka(client), false);
}

#[test]
fn warm() {
    all_are_answered_by(|client| !is_kafka(client), true);
}

/// Apart from the others, for machines without Java.
#[test]
fn kafka() {
    all_are_answered_by(is_kafka, false);
    all_are_answered_by(is_kafka, true);
}

/// The first requests may find that their connection is gone; others find a new one.
#[test]
fn after_a_cut() {
    // Not those that other tests use.
    let mut servers = HashMap::new();
    for case in cases(|client| client.reconnects) {
        let kind = case.server.expect("what reconnects has a server");
        let server: &Arc<Server> = servers.entry(kind.name()).or_insert_with(|| own(kind));
        case.run(Some(server.clone()), true, async |request| {
            let server = server.clone();
            let cut = tokio::task::spawn_blocking(move || server.cut());
            cut.await.unwrap().unwrap();
            // A pool has as many dead connections as connections, and a client that waits
            // before it reconnects refuses requests meanwhile.
            while join_all((0..REQUESTS).map(|_| request()))
                .await
                .iter()
                .any(Result::is_err)
            {}
        });
    }
}

async fn all_are_answered(request: &Ask) {
    let answers = join_all((0..REQUESTS).map(|_| request())).await;
    for answer in answers {
        answer.unwrap();
    }
}

impl Case {
    /// Has jobs ask, and then keep all threads of the CPU lane while `ask` asks.
    fn run(&self, server: Option<Arc<Server>>, warm: bool, ask: impl AsyncFnOnce(&Ask)) {
        let _limit = time_limit();
        eprintln!("{}", self.name);
        let lanes = Lanes::start(Side::Twolane).unwrap();
        let (gate, stay) = gate();
        let work = Work::new(move |_| stay());
        let world = World {
            address: server.map_or(([127, 0, 0, 1], 0).into(), |server| server.address()),
            cpu: lanes.cpu(),
            work: work.clone(),
        };
        let ready = lanes.io.block_on(lanes.io.spawn((self.make)(world)));
        let ready = ready.unwrap().unwrap();
        if warm {
            let requests = (0..REQUESTS).map(|_| lanes.io.spawn((ready.request)()));
            for answer in lanes.io.block_on(join_all(requests)) {
                answer.unwrap().unwrap();
            }
        }
        let job = async |ask: Ask, work: Work| {
            if !ask().await?.computed {
                work.of(JOB);
            }
            Ok::<_, BoxError>(())
        };
        let jobs = (0..self.jobs).map(|_| lanes.cpu().spawn(job(ready.job.clone(), work.clone())));
        let jobs: Vec<_> = jobs.collect();
        for _ in 0..CPU_THREADS {
            gate.is_reached();
        }
        lanes.io.block_on(ask(&ready.request));
        drop(gate);
        for job in lanes.io.block_on(join_all(jobs)) {
            // A cut may have ended its request; nothing else may.
            let _ = job.unwrap();
        }
        drop(ready);
        lanes.end();
    }
}

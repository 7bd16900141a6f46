//! What happens when CPU jobs and the I/O side use one client?
//!
//! Real clients, real servers on loopback. Some jobs (6 or 12, on two CPU threads) each ask
//! the server once and then compute for 200 ms, again and again. Meanwhile the I/O side
//! makes requests with the same client. A request of the I/O side that takes more than
//! 100 ms is a *stall*. A row is a client and a way to use it in a job: one that the guide
//! recommends, which has to be without stalls and panics, or one that it warns of, which has
//! to fail as the guide says. Beside them: the same client on two plain Tokio runtimes, used
//! plainly, and with each request of a job in a task of the I/O runtime by hand.
//!
//! Under each set of conditions: the client has no connection yet (`cold`), or has
//! (`warm`), or the server cuts all connections at times (`cuts`) and a job is
//! the first to ask again. A cut makes some requests fail: those are errors, neither stalls nor
//! panics. `resume` is the longest time from a server's answer to the next step of the
//! job that asked.
//!
//! Not measured: throughput, and anything over a network.
//!
//! ```text
//! lab/clients/servers                                # if PostgreSQL and redis are not installed
//! cargo run --release -p twolane-clients         # or `-- --quick`, `-- --full`
//! cargo run --release -p twolane-clients -- sqlx # the rows whose name contains it
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use twolane_clients::lanes::Side;
use twolane_clients::report::Report;
use twolane_clients::rows::{self, Client, Make, Mark};
use twolane_clients::servers::{self, Kind, Server};
use twolane_clients::table::{self, Line};
use twolane_clients::trial::{self, Load, Setup};
use twolane_clients::{BoxError, clock, panics};

#[derive(Parser)]
#[command(about = "Clients of real servers, used by CPU jobs and the I/O side at the same time")]
struct Args {
    /// Only the rows whose name, `CLIENT: WAY`, contains one of these
    only: Vec<String>,
    /// A short run, under one set of conditions: 5 minutes instead of 20
    #[arg(long)]
    quick: bool,
    /// A long run: all sets of conditions, three rounds; an hour and a half
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Rounds of each row
    #[arg(long)]
    rounds: Option<usize>,
}

fn main() -> Result<ExitCode, BoxError> {
    if let Some(keeper) = servers::keep() {
        return Ok(keeper);
    }
    let args = Args::parse();
    clock::calibrate();
    panics::keep();
    let mut servers = BTreeMap::new();
    let mut report = Report::default();
    println!("{}", table::head());
    for client in rows::all() {
        if !args.wants_any(&client) {
            continue;
        }
        let server = client.server.map(|kind| started(&mut servers, kind));
        let server = match server.transpose() {
            Ok(server) => server,
            Err(error) => {
                println!("| {}: NOT MEASURED: {error}", client.name);
                report.miss(client.name);
                continue;
            }
        };
        for setup in args.setups(&client) {
            for line in args.measure(&client, setup, server.as_ref())? {
                report.add(line);
            }
        }
    }
    // A short run on a busy machine proves nothing: it shows, and does not judge.
    let holds = report.finish()? || args.quick;
    Ok(match holds {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// One of each kind for all rows.
fn started(
    servers: &mut BTreeMap<&'static str, Arc<Server>>,
    kind: Kind,
) -> Result<Arc<Server>, BoxError> {
    if let Some(server) = servers.get(kind.name()) {
        return Ok(server.clone());
    }
    let server = Arc::new(Server::start(&std::env::current_exe()?, kind)?);
    servers.insert(kind.name(), server.clone());
    Ok(server)
}

impl Args {
    fn wants(&self, client: &Client, way: &str) -> bool {
        let name = format!("{}: {way}", client.name);
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only))
    }

    fn wants_any(&self, client: &Client) -> bool {
        client.ways.iter().any(|way| self.wants(client, way.name))
    }

    /// In the long run all of them; else each number of jobs and each state of the pool
    /// once, and in the short run the hardest.
    fn setups(&self, client: &Client) -> Vec<Setup> {
        let [cold, warm, cuts] = [(false, false), (true, false), (true, true)];
        let setups = match (self.quick, self.full) {
            (true, _) => vec![(12, warm), (12, cuts)],
            (_, true) => [6, 12]
                .map(|jobs| [cold, warm, cuts].map(|pool| (jobs, pool)))
                .concat(),
            _ => vec![(6, cold), (12, warm), (12, cuts)],
        };
        let setups = setups.into_iter().filter(|(_, (warm, cuts))| {
            (*warm || client.can_be_cold) && (!cuts || client.reconnects)
        });
        let setups = setups.map(|(jobs, (warm, cuts))| Setup { jobs, warm, cuts });
        let mut setups: Vec<Setup> = setups.collect();
        if self.quick {
            setups.drain(..setups.len() - 1);
        }
        setups
    }

    fn load(&self) -> Load {
        let requests = if self.quick { 50 } else { 100 };
        let every = Duration::from_millis(20);
        Load { requests, every }
    }

    /// One line for each contender. They run in alternation, round by round.
    fn measure(
        &self,
        client: &Client,
        setup: Setup,
        server: Option<&Arc<Server>>,
    ) -> Result<Vec<Line>, BoxError> {
        let rounds = self.rounds.unwrap_or(if self.full { 3 } else { 1 });
        let ways = client
            .ways
            .iter()
            .filter(|way| self.wants(client, way.name));
        let ways = ways.map(|way| (way.name, Some(way.mark), Side::Twolane, &way.make));
        let peers: [(_, Option<Mark>, _, &Make); 2] = [
            ("plain", None, Side::TwoRuntimes, &client.plain),
            ("by hand", None, Side::ByHand, &client.by_hand),
        ];
        let contenders: Vec<_> = peers.into_iter().chain(ways).collect();
        let mut lines: Vec<Line> = contenders
            .iter()
            .map(|&(way, mark, side, _)| Line {
                client: client.name,
                way,
                mark,
                side,
                setup,
                rounds: Vec::new(),
            })
            .collect();
        for round in 1..=rounds {
            for (line, (_, _, side, make)) in lines.iter_mut().zip(&contenders) {
                let outcome = trial::run(make, *side, setup, self.load(), server)?;
                line.rounds.push(outcome);
                if round == rounds {
                    println!("{line}");
                }
            }
        }
        Ok(lines)
    }
}

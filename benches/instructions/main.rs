//! How many instructions does a job take?
//!
//! Timings on a virtual machine differ by a factor between two mornings. Instructions of the
//! program's own code do not: those of a future that wakes itself are the same to one in
//! thousand from run to run. They are no time: a cache miss and a wake-up of a thread count as
//! little as an addition, and the kernel's are not in them.
//!
//! Each contender runs by itself, in a process under valgrind's callgrind, once with so many
//! turns and once with three times as many. The difference is what a turn takes, net of the
//! start. All have one thread for jobs.
//!
//! - *closures*, *futures*: a job of a batch of 1,000, from its submission to its awaited end. The
//!   thread is kept while they are submitted, so no wake-up of a thread is in it. Peers:
//!   `tokio_rayon`, `tokio::spawn`.
//! - *keys*: the same closures, of two keys. It has no peer.
//! - *one by one*: a closure that is awaited before the next one. Peer: `tokio_rayon`.
//! - *wakes itself*: a future that wakes its own waker and returns `Pending`, a turn. Peer: a task
//!   of Tokio.
//! - *channels*: two futures that send each other a message, both ways. Peer: tasks of Tokio.
//! - *yields*: `yield_now().await` of a future that is alone. Peer: Tokio's.
//! - *spawn_io*: an empty future, awaited in a job. Peer: `Handle::spawn` in a job.
//!
//! And what it takes with the I/O lane watched, and in a span of a subscriber.
//!
//! ```text
//! cargo bench -p twolane-instructions             # three minutes
//! cargo bench -p twolane-instructions -- --check  # against figures.json
//! cargo bench -p twolane-instructions -- --write  # makes those
//! ```
//!
//! `--check` fails if a figure that does not depend on chance is more than 3 % above the one in
//! `figures.json`, or so far below it that it would let the gain be lost again: then write it
//! anew. The file is of one compiler: with another one the check says so, and passes.

#[path = "../src/child.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other benches use the rest")]
mod child;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use clap::Parser;
use serde::{Deserialize, Serialize};

#[derive(Parser)]
struct Args {
    /// Fail if a figure is above that of `figures.json`.
    #[arg(long)]
    check: bool,
    /// Write `figures.json`.
    #[arg(long)]
    write: bool,
    /// A smoke test: one row.
    #[arg(long)]
    test: bool,
    /// What `cargo bench` passes.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Serialize, Deserialize)]
struct Role {
    row: String,
    side: String,
    turns: u64,
}

/// With whether it is the same in each run.
const ROWS: [(&str, bool); 8] = [
    ("closures", true),
    ("keys", true),
    ("futures", true),
    ("one by one", false),
    ("wakes itself", true),
    ("channels", true),
    ("yields", true),
    ("spawn_io", false),
];

const SIDES: [&str; 4] = ["twolane", "watched", "traced", "peer"];

/// Allowed above and below the figure in the tree.
const MORE: f64 = 1.03;
const LESS: f64 = 0.9;

#[derive(Serialize, Deserialize)]
struct Figures {
    rustc: String,
    instructions: BTreeMap<String, u64>,
}

fn main() -> ExitCode {
    if let Some(Role { row, side, turns }) = child::role() {
        // Without a contender there is nothing to count.
        return ExitCode::from(u8::from(work::run(&side, &row, turns).is_none()));
    }
    let args = Args::parse();
    let Some(valgrind) = valgrind() else {
        println!("NOT RUN: valgrind is not installed (`.ci/valgrind --fetch` gets Debian's)");
        return ExitCode::SUCCESS;
    };
    let mut instructions = BTreeMap::new();
    println!("instructions a turn\n");
    let mut sides = SIDES.to_vec();
    sides.retain(|side| !args.check || is_own(side));
    let titles: String = sides.iter().map(|side| format!("{side:>10}")).collect();
    println!("{:14}{titles}", "");
    for (row, is_exact) in ROWS {
        if (args.test && row != "wakes itself") || (args.check && !is_exact) {
            continue;
        }
        print!("{row:14}");
        for side in &sides {
            let found = median(&valgrind, row, side, is_exact || args.test);
            match found {
                Some(found) => print!("{found:>10}"),
                None => print!("{:>10}", "-"),
            }
            if let Some(found) = found.filter(|_| is_exact && is_own(side)) {
                instructions.insert(format!("{row}, {side}"), found);
            }
        }
        println!();
    }
    let figures = Figures {
        rustc: rustc(),
        instructions,
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures.json");
    if args.write {
        let text = serde_json::to_string_pretty(&figures).unwrap();
        fs::write(path, text + "\n").unwrap();
    } else if args.check {
        return check(
            &figures,
            &serde_json::from_slice(&fs::read(path).unwrap()).unwrap(),
        );
    }
    ExitCode::SUCCESS
}

/// Whether its figures are in the tree.
fn is_own(side: &str) -> bool {
    side == "twolane"
}

fn check(found: &Figures, known: &Figures) -> ExitCode {
    if found.rustc != known.rustc {
        println!(
            "NOT CHECKED: the figures are of {}, this is {}",
            known.rustc, found.rustc
        );
        return ExitCode::SUCCESS;
    }
    let mut is_off = false;
    for (name, known) in &known.instructions {
        let found = found.instructions.get(name).copied().unwrap_or(u64::MAX);
        let part = found as f64 / *known as f64;
        if !(LESS..=MORE).contains(&part) {
            println!("{name}: {found} instructions, {known} in figures.json");
            is_off = true;
        }
    }
    ExitCode::from(u8::from(is_off))
}

/// Of three, where chance is in it. `None`: there is no such contender.
fn median(valgrind: &Path, row: &str, side: &str, is_exact: bool) -> Option<u64> {
    const TURNS: u64 = 10_000;
    let role = |turns| Role {
        row: row.to_owned(),
        side: side.to_owned(),
        turns,
    };
    let count = |turns| counted(valgrind, &role(turns));
    let once = || Some(count(3 * TURNS)?.saturating_sub(count(TURNS)?) / (2 * TURNS));
    let mut found = vec![once()?];
    if !is_exact {
        found.extend([once()?, once()?]);
    }
    found.sort_unstable();
    Some(found[found.len() / 2])
}

/// The instructions of a whole process.
fn counted(valgrind: &Path, role: &Role) -> Option<u64> {
    let child = child::command(role);
    let mut command = Command::new(valgrind);
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(child.get_program());
    for (name, value) in child.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    if let Some(library) = fetched_library() {
        command.env("VALGRIND_LIB", library);
    }
    let run = command.stdout(Stdio::null()).output().ok()?;
    if !run.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    let (_, after) = text.split_once("Collected : ")?;
    after.split_whitespace().next()?.parse().ok()
}

/// What `.ci/valgrind --fetch` has made.
fn fetched() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/valgrind/usr")
}

fn fetched_library() -> Option<PathBuf> {
    fetched().join("libexec/valgrind").canonicalize().ok()
}

fn valgrind() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = env::split_paths(&path).map(|folder| folder.join("valgrind"));
    let mut all = installed.chain([fetched().join("bin/valgrind")]);
    all.find(|valgrind| valgrind.is_file())
}

fn rustc() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|version| String::from_utf8_lossy(&version.stdout).trim().to_owned());
    version.unwrap_or_default()
}

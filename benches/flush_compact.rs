//! How late are flushes when compactions run beside them, and what do the compactions
//! pay for it? (S2)
//!
//! The bench itself is `s3/benches/flush_compact.rs`: object_store and an S3 server are
//! that package's dependencies, and none of this one's, so that the first command of a
//! fresh clone builds neither. This runs it, so that `cargo bench` runs everything.
//!
//! ```text
//! cargo bench --bench flush_compact              # three minutes
//! cargo bench -p twolane-s3 --bench flush_compact   # the same
//! ```

use std::process::{Command, exit};

use twolane_benches::{Bench, Form};

/// The first part of their names there.
const CONTENDERS: [&str; 6] = [
    "one_runtime",
    "spawn_blocking",
    "two_runtimes",
    "spawned_connector",
    "twolane_rayon",
    "twolane",
];

fn main() {
    let bench = Bench::new("flush_compact");
    // Builds nothing where the filter asks for another bench.
    let is_asked = |name: &&str| bench.wants(&format!("20 ms/{name}"));
    if !CONTENDERS.iter().any(is_asked) {
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["bench", "-p", "twolane-s3", "--bench", "flush_compact"]);
    if bench.form() == Form::Test {
        // A smoke run gives no figures, and an unoptimized build is faster.
        cargo.args(["--profile", "dev"]);
    }
    // What Cargo tells this process of its own package, build scripts of that one's
    // dependencies would take for a change, and be run again.
    for (name, _) in std::env::vars_os() {
        let its = |prefix| name.to_string_lossy().starts_with(prefix);
        if its("CARGO_PKG_") || its("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    // `cargo bench` passes `--bench` by itself.
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let run = cargo.arg("--").args(args).status().unwrap();
    exit(run.code().unwrap_or(1));
}

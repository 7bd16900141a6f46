//! A test that cannot run on this machine says so here.

use std::fmt::Display;
use std::io::Write;

const VARIABLE: &str = "TWOLANE_MUST_RUN";
/// `go` is for contenders of benches.
const NAMES: [&str; 5] = ["cgroup", "cores", "go", "real-time", "slices"];

/// Prints that the machine lacks `name`, and why, so that CI can list it. Panics if
/// `TWOLANE_MUST_RUN`, a list with commas, has that name: there it has to be.
pub(crate) fn not_run(name: &str, why: impl Display) {
    assert!(NAMES.contains(&name), "{name} is none of {NAMES:?}");
    let listed = std::env::var(VARIABLE).unwrap_or_default();
    let listed = listed.split(',').map(str::trim).filter(|it| !it.is_empty());
    let listed: Vec<_> = listed.collect();
    if let Some(unknown) = listed.iter().find(|it| !NAMES.contains(it)) {
        panic!("{VARIABLE}: {unknown} is none of {NAMES:?}");
    }
    let test = std::thread::current();
    let test = test.name().unwrap_or("?");
    if listed.contains(&name) {
        panic!("{VARIABLE} has {name}, but {test} can't run: {why}");
    }
    // Not by `eprintln!`, which the harness would capture; and on a line of its own, which the
    // harness may have begun.
    let _ = writeln!(std::io::stderr(), "\nNOT RUN: {test} ({name}: {why})");
}

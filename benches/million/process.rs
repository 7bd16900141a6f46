//! Runs one contender in a process of its own: ours again, or Go's.

use std::process::{Command, Stdio};

use crate::args::{Plan, SLEEP, bound};
use crate::contender::Contender;
use crate::inside;
use crate::sample::Sample;
use crate::support::go::Go;

/// The error says why it can't run here.
pub fn run(contender: Contender, plan: &Plan, go: Option<&Go>) -> Result<Sample, String> {
    if contender.is_go() {
        let go = go.expect("without it, no contender is Go's");
        return Ok(in_go(go, contender, plan.count));
    }
    if contender.is_extrapolated() {
        let [fewer, more] = plan.threads.map(|count| in_rust(contender, count));
        return Ok(Sample::extrapolated(fewer?, more?, plan.count as f64));
    }
    in_rust(contender, plan.count)
}

fn in_rust(contender: Contender, count: usize) -> Result<Sample, String> {
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--contender", &contender.switch()])
        .args(["--count", &count.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    if !run.status.success() {
        let how = format!("its process of {count} ended with {}", run.status);
        // A thread that gets no memory for its signal stack aborts: that is a
        // machine that doesn't bear as many. Whoever else ends has a bug.
        assert!(contender.is_extrapolated(), "{contender}: {how}");
        return Err(how);
    }
    inside::read(&serde_json::from_slice(&run.stdout).expect("JSON"))
}

fn in_go(go: &Go, contender: Contender, count: usize) -> Sample {
    let found = go.run(&[
        format!("-case={}", contender.case().name()),
        format!("-count={count}"),
        format!("-sleep={}ms", SLEEP.as_millis()),
        format!("-bound={}ms", bound(count).as_millis()),
    ]);
    Sample::from_json(&found).expect("what goroutines print")
}

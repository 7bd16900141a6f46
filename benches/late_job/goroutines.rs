//! The contender in Go, a process of its own: `benches/go/late_job`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::args::Plan;
use crate::arrivals::Schedule;
use crate::fib::SMALL;
use crate::outcome::{Late, Outcome};
use crate::support;

pub struct Goroutines {
    program: PathBuf,
}

impl Goroutines {
    /// Builds the program; the error says why it can't run.
    pub fn build() -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/go/late_job");
        let program = support::folder().join("go-late_job");
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(source)
            // The standard library is all it needs: nothing is fetched.
            .envs([
                ("GOFLAGS", "-mod=mod"),
                ("GOPROXY", "off"),
                ("GOTOOLCHAIN", "local"),
                ("GOWORK", "off"),
            ])
            .output();
        match built {
            Ok(built) if built.status.success() => Ok(Self { program }),
            Ok(built) => Err(format!(
                "`go build` failed: {}",
                String::from_utf8_lossy(&built.stderr).trim()
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err("Go is not installed".to_owned())
            }
            Err(error) => Err(format!("`go` does not start: {error}")),
        }
    }

    pub fn run(&self, plan: &Plan, late: Schedule, bound: Duration) -> Outcome {
        // Its own bound is the first to end it, or it would outlive us.
        let bound = bound.mul_f64(0.9);
        let run = Command::new(&self.program)
            .args(["-k", &plan.k.to_string()])
            .args(["-jobs", &plan.jobs.to_string()])
            .args(["-late-k", &SMALL.to_string()])
            .args(["-late-jobs", &late.count.to_string()])
            .args(["-late-every", &format!("{}us", late.every.as_micros())])
            .args(["-late-from", &plan.late_from.to_string()])
            .args(["-bound", &format!("{}ms", bound.as_millis())])
            .env_remove("GOMAXPROCS")
            .env_remove("GODEBUG")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(run.status.success(), "goroutines: {}", run.status);
        let found: Value = serde_json::from_slice(&run.stdout).unwrap();
        outcome(&found).expect("what goroutines print")
    }
}

fn outcome(found: &Value) -> Option<Outcome> {
    let time = |ns: &Value| ns.as_u64().map(Duration::from_nanos);
    let late = |one: &Value| {
        Some(Late {
            intended: time(&one["intended_ns"])?,
            submitted: time(&one["submitted_ns"])?,
            ended: time(&one["ended_ns"])?,
            awaited: None,
        })
    };
    Some(Outcome {
        others: None,
        long_ends: found["long_ends_ns"]
            .as_array()?
            .iter()
            .map(time)
            .collect::<Option<_>>()?,
        late: found["late"]
            .as_array()?
            .iter()
            .map(late)
            .collect::<Option<_>>()?,
    })
}

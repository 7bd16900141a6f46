//! The contenders in Go. A bench that has one keeps its program in
//! `benches/go/BENCH`; the harness builds it before its first turn.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

use crate::contest::{BoxError, not_here};
use crate::findings::Sample;

pub struct Go {
    bench: &'static str,
    program: OnceCell<PathBuf>,
}

impl Go {
    pub fn new(bench: &'static str) -> Self {
        let program = OnceCell::new();
        Self { bench, program }
    }

    /// Runs the program and returns the JSON that it prints. All processors are
    /// its, and its collector is as it comes, whatever the environment says. An
    /// error: Go or its source is not here, or Go does not compile it.
    ///
    /// # Panics
    /// If it fails, or prints something else.
    pub fn run<T: DeserializeOwned>(&self, args: &[String]) -> Result<T, BoxError> {
        let run = Command::new(self.program()?)
            .args(args)
            .env_remove("GOMAXPROCS")
            .env_remove("GODEBUG")
            .env_remove("GOGC")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(run.status.success(), "goroutines: {}", run.status);
        Ok(serde_json::from_slice(&run.stdout).expect("the program in Go prints JSON"))
    }

    /// The same of a program that prints an object of figures.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn figures(&self, args: &[String], unit: &'static str) -> Result<Sample, BoxError> {
        let figures: BTreeMap<String, f64> = self.run(args)?;
        let mut sample = Sample::default();
        for (metric, figure) in figures {
            sample.put(metric, unit, figure);
        }
        Ok(sample)
    }

    fn program(&self) -> Result<&Path, BoxError> {
        if self.program.get().is_none() {
            let _ = self.program.set(build(self.bench)?);
        }
        Ok(self.program.get().expect("it is built"))
    }
}

fn build(bench: &str) -> Result<PathBuf, BoxError> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(bench);
    let program = crate::folder().join(format!("go-{bench}"));
    // A bench that was built elsewhere.
    if !source.is_dir() {
        return Err(not_here("go", format!("{} is not there", source.display())));
    }
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
        Ok(built) if built.status.success() => Ok(program),
        Ok(built) => {
            let said = String::from_utf8_lossy(&built.stderr);
            Err(format!("`go build` failed: {}", said.trim()).into())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(not_here("go", "it is not installed"))
        }
        Err(error) => Err(format!("`go` does not start: {error}").into()),
    }
}

//! The contenders in Go: each bench that has one keeps its program in
//! `benches/go/BENCH`, builds it when it starts, and runs it in turn with the
//! others.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub struct Go {
    program: PathBuf,
}

impl Go {
    /// Builds `benches/go/NAME`; the error says why it can't run.
    pub fn build(name: &str) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("benches/go")
            .join(name);
        let program = super::folder().join(format!("go-{name}"));
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

    /// Runs it and returns the JSON that it prints. All processors are its, and
    /// its collector is as it comes, whatever the environment says.
    ///
    /// # Panics
    /// If it fails, or prints something else.
    pub fn run(&self, args: &[String]) -> Value {
        let run = Command::new(&self.program)
            .args(args)
            .env_remove("GOMAXPROCS")
            .env_remove("GODEBUG")
            .env_remove("GOGC")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(run.status.success(), "goroutines: {}", run.status);
        serde_json::from_slice(&run.stdout).expect("the program in Go prints JSON")
    }
}

//! Draws pictures of the pages from `docs/measured`: each file here has one.
//!
//! ```text
//! cargo bench -p twolane-benches --bench pictures            # writes them
//! cargo bench -p twolane-benches --bench pictures -- --test  # fails if one is not what the data gives
//! ```

mod kernels;
mod late_job;
mod load;
mod shared;
mod streams;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use crate::shared::{Done, Drawn};

type Draw = fn(&Path) -> Drawn;

const PICTURES: [(&str, Draw); 4] = [
    ("contributors/kernels.svg", kernels::draw),
    ("late_job.svg", late_job::draw),
    ("load.svg", load::draw),
    ("streams.svg", streams::draw),
];

fn main() -> ExitCode {
    let checks = env::args().any(|argument| argument == "--test");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut code = ExitCode::SUCCESS;
    for (name, draw) in PICTURES {
        if let Err(fault) = make(&docs, name, draw, checks) {
            eprintln!("docs/{name}: {fault}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn make(docs: &Path, name: &str, draw: Draw, checks: bool) -> Done {
    let (path, drawn) = (docs.join(name), draw(docs)?);
    if !checks {
        fs::write(path, drawn)?;
    } else if fs::read_to_string(path).ok() != Some(drawn) {
        return Err("not what docs/measured gives: draw it anew".into());
    }
    Ok(())
}

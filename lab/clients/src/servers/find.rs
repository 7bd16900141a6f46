//! Where the programs of PostgreSQL, redis and Kafka are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BoxError;

/// A folder that has them in it, as Debian's packages would lie in `/`.
const VARIABLE: &str = "TWOLANE_SERVERS";

/// A program, and where the libraries are that were unpacked with it.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    libraries: Option<PathBuf>,
}

impl Program {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

pub(crate) fn redis() -> Result<Program, BoxError> {
    find("redis-server", "redis-server", |root| {
        vec![root.join("usr/bin/redis-server")]
    })
}

/// `name` is a program of the server: `postgres`, `initdb`.
pub(crate) fn postgres(name: &str) -> Result<Program, BoxError> {
    find(name, "postgresql", |root| {
        let versions = std::fs::read_dir(root.join("usr/lib/postgresql"));
        let versions = versions.into_iter().flatten().flatten();
        let mut programs: Vec<PathBuf> = versions
            .map(|version| version.path().join("bin").join(name))
            .collect();
        // The newest first.
        programs.sort();
        programs.reverse();
        programs
    })
}

fn find(
    name: &str,
    package: &str,
    places: impl Fn(&Path) -> Vec<PathBuf>,
) -> Result<Program, BoxError> {
    for root in roots() {
        if let Some(path) = places(&root).into_iter().find(|path| path.is_file()) {
            let libraries = (root != Path::new("/")).then(|| libraries_below(&root));
            return Ok(Program {
                path,
                libraries: libraries.flatten(),
            });
        }
    }
    Err(format!(
        "`{name}` of Debian's package {package} is not there. Install it (`apt-get install \
         {package}`), or run `lab/clients/servers`, which unpacks it into target/servers without \
         installing it, or name the folder where it is unpacked in {VARIABLE}"
    )
    .into())
}

/// A Java that runs a Kafka broker, and the broker's jars.
pub(crate) fn kafka() -> Result<(Program, PathBuf), BoxError> {
    let mut jars = roots().map(|root| root.join("kafka"));
    let jars = jars.find(|jars| jars.is_dir()).ok_or(
        "the jars of Kafka are not there. Run `lab/clients/servers`, which fetches them; it needs \
         Java and Maven (`apt-get install default-jre-headless maven`)",
    )?;
    let java = find("java", "default-jre-headless", |root| {
        vec![root.join("usr/bin/java")]
    })?;
    Ok((java, jars))
}

/// In which the places of Debian's packages are looked for, in this order.
fn roots() -> impl Iterator<Item = PathBuf> {
    let roots = [
        std::env::var_os(VARIABLE).and_then(|root| std::path::absolute(root).ok()),
        Some(PathBuf::from("/")),
        unpacked(),
    ];
    roots.into_iter().flatten()
}

/// Where the script `lab/clients/servers` puts them: in the target folder of this program,
/// which is in a folder of its profile there, or one below.
fn unpacked() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folders = program.ancestors().skip(2).take(3);
    folders
        .map(|folder| folder.join("servers"))
        .find(|folder| folder.is_dir())
}

/// `usr/lib/x86_64-linux-gnu` or that of another architecture.
fn libraries_below(root: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(root.join("usr/lib")).ok()?;
    let folders = folders.flatten().map(|folder| folder.path());
    let is_of_gnu = |path: &PathBuf| path.to_string_lossy().ends_with("-linux-gnu");
    folders.into_iter().find(is_of_gnu)
}

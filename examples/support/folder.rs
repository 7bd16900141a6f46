//! Where examples and benches leave what they found.

use std::path::{Path, PathBuf};

/// `target/twolane`, made if need be.
pub fn folder() -> std::io::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || {
            // The workspace's, whichever member's this copy is.
            let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
            let workspace = folders.find(|folder| folder.join("Cargo.lock").exists());
            workspace.unwrap_or(Path::new("")).join("target")
        },
        PathBuf::from,
    );
    let folder = target.join("twolane");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

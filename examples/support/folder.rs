//! Where examples and benches leave what they found.

use std::path::PathBuf;

/// `target/twolane`, made if need be.
pub fn folder() -> std::io::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"),
        PathBuf::from,
    );
    let folder = target.join("twolane");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

//! What is there before a slice begins: the files that compactions read.

use std::sync::Arc;

use object_store_0_14::{ObjectStore, ObjectStoreExt, path::Path};

use super::lsm::Error;
use super::lsm::compact::{FILE_ROWS, FILES};
use super::lsm::file::{FAST, File, encode};
use super::lsm::row::{Fingerprint, Row, readings};

/// The input of one compactor.
#[derive(Clone, Debug)]
pub struct Input {
    pub files: Arc<[File]>,
    pub fingerprint: Fingerprint,
}

/// Writes the files of compactor `nth`: their rows interleave.
pub async fn input(store: &dyn ObjectStore, folder: &Path, nth: usize) -> Result<Input, Error> {
    let mut files = Vec::new();
    let mut fingerprint = Fingerprint::default();
    for i in 0..FILES {
        let mut rows = readings(200, FILE_ROWS, i as u64, FILES as u64);
        fingerprint = fingerprint + Fingerprint::of(&rows);
        rows.sort_unstable_by_key(Row::key);
        let (bytes, blocks) = encode(&rows, FAST);
        let path = folder.clone().join(format!("in-{nth}-{i}"));
        store.put(&path, bytes.into()).await?;
        files.push(File { path, blocks });
    }
    Ok(Input {
        files: files.into(),
        fingerprint,
    })
}

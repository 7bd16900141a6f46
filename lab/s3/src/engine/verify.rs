//! What was written is read back: not a row lost or doubled.

use futures::{StreamExt, TryStreamExt, stream};
use object_store_0_14::{ObjectStore, ObjectStoreExt, path::Path};

use super::lsm::Error;
use super::lsm::file::{File, decode_block};
use super::lsm::row::{Fingerprint, Row};

const AT_ONCE: usize = 8;

/// Each file with what its rows should be.
pub async fn verify(
    store: &dyn ObjectStore,
    written: impl IntoIterator<Item = (File, Fingerprint)>,
) -> Result<(), Error> {
    let checks = written.into_iter().map(|(file, expected)| async move {
        let found = read_back(store, &file).await?;
        if found == expected {
            Ok(())
        } else {
            Err(format!(
                "{}: {found:?} is not what was written, {expected:?}",
                file.path
            )
            .into())
        }
    });
    stream::iter(checks)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

async fn read_back(store: &dyn ObjectStore, file: &File) -> Result<Fingerprint, Error> {
    let bytes = store.get(&file.path).await?.bytes().await?;
    let mut found = Fingerprint::default();
    let mut before = None;
    let mut end = 0;
    for block in &file.blocks {
        let range = block.start as usize..block.end as usize;
        let rows = decode_block(bytes.get(range).ok_or("the file is too short")?)?;
        if !before
            .iter()
            .chain(&rows)
            .is_sorted_by(|a: &&Row, b| a.key() < b.key())
        {
            return Err(format!("{}: rows out of order, or doubled", file.path).into());
        }
        before = rows.last().copied();
        found = found + Fingerprint::of(&rows);
        end = block.end;
    }
    if end != bytes.len() as u64 {
        return Err(format!("{}: {} bytes, not {end}", file.path, bytes.len()).into());
    }
    Ok(found)
}

/// Removes all that is in `folder`.
pub async fn clear(store: &dyn ObjectStore, folder: &Path) -> Result<(), Error> {
    let all = store.list(Some(folder)).map_ok(|object| object.location);
    all.try_for_each_concurrent(AT_ONCE, |path| async move { store.delete(&path).await })
        .await?;
    Ok(())
}

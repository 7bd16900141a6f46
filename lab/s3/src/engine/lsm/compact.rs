//! Several files into one.

use futures::future::try_join_all;
use object_store_0_14::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path};

use super::super::cpu::Cpu;
use super::Error;
use super::file::{File, SMALL, decode_block, encode};
use super::merge::merge;
use super::row::Row;
use super::steps::{Step, Steps};

/// Four files of two blocks: eight range requests of half a MiB, 4 MiB out.
pub const FILES: usize = 4;
pub const FILE_ROWS: usize = 2 * super::file::BLOCK_ROWS;

/// The least that S3 takes as a part that is not the last.
const PART: usize = 5 << 20;

pub async fn compact(
    store: &dyn ObjectStore,
    cpu: Cpu,
    files: &[File],
    path: Path,
    steps: &mut Steps,
) -> Result<File, Error> {
    let blocks = files.iter().flat_map(|file| {
        file.blocks
            .iter()
            .map(|block| (file.path.clone(), block.clone()))
    });
    let gets = blocks.map(|(path, block)| async move { store.get_range(&path, block).await });
    let blocks = steps.time(Step::Get, try_join_all(gets)).await?;

    let runs: Vec<usize> = files.iter().map(|file| file.blocks.len()).collect();
    let merged = move || -> Result<_, Error> {
        let mut blocks = blocks.iter();
        let runs: Vec<Vec<Row>> = runs
            .into_iter()
            .map(|run| {
                let decoded = blocks.by_ref().take(run).map(|block| decode_block(block));
                Ok(decoded.collect::<Result<Vec<_>, Error>>()?.concat())
            })
            .collect::<Result<_, Error>>()?;
        Ok(encode(&merge(runs), SMALL))
    };
    let (bytes, blocks) = steps.time(Step::Compute, cpu.run(merged)).await?;

    steps
        .time(Step::Put, put_in_parts(store, &path, bytes.into()))
        .await?;
    Ok(File { path, blocks })
}

async fn put_in_parts(
    store: &dyn ObjectStore,
    path: &Path,
    bytes: bytes::Bytes,
) -> Result<(), Error> {
    let mut upload = store.put_multipart(path).await?;
    let parts = (0..bytes.len()).step_by(PART);
    let parts = parts.map(|at| bytes.slice(at..bytes.len().min(at + PART)));
    let sent: Vec<_> = parts
        .map(|part| upload.put_part(PutPayload::from_bytes(part)))
        .collect();
    if let Err(error) = try_join_all(sent).await {
        // What is left of it would be paid for.
        upload.abort().await?;
        return Err(error.into());
    }
    upload.complete().await?;
    Ok(())
}

//! Files, by way of [`IoStore`].

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart, path::Path};
use tempfile::TempDir;
use twolane::{Handle, Priority};
use twolane_datafusion::{IoStore, collect_on, run_on, stream_on};

use crate::setting::Site;
use crate::support::lanes;

/// Writes the numbers to a folder, by way of an [`IoStore`], and has them as the table `read`.
fn write(
    context: SessionContext,
    cpu: &Handle,
    folder: &TempDir,
) -> impl Future<Output = Result<()>> + use<> {
    let files = IoStore::new(LocalFileSystem::new(), cpu);
    context.register_object_store(&"file:///".parse().unwrap(), Arc::new(files));
    let path = format!("file://{}/numbers/", folder.path().display());
    async move {
        // A request for each 1,000 rows.
        let set = "set datafusion.execution.parquet.max_row_group_size = 1000";
        context.sql(set).await?.collect().await?;
        let numbers = context.table("numbers").await?;
        let options = DataFrameWriteOptions::new();
        numbers.write_parquet(&path, options, None).await?;
        let options = ParquetReadOptions::default();
        context.register_parquet("read", path, options).await
    }
}

/// By the end it has read a part of the table.
#[test]
fn a_table_is_written_and_read_and_the_end_of_the_io_runtime_is_an_error() {
    let site = Site::new(4, |lane| lane);
    let folder = tempfile::tempdir().unwrap();
    let other = tokio::runtime::Runtime::new().unwrap();
    other.block_on(async {
        let written = run_on(&site.cpu, write(site.context.clone(), &site.cpu, &folder));
        written.await.unwrap();
        let frame = site.frame("select count(*), sum(n) from read").await;
        let rows = collect_on(&site.cpu, frame).await.unwrap();
        let found = [0, 1].map(|n| rows[0].column(n).as_primitive::<Int64Type>().value(0));
        assert_eq!(found, [200_000, 199_999 * 100_000]);

        let frame = site.frame("select threads(n) from read").await;
        // It waits for its reader after the first batch.
        let stream = stream_on(&site.cpu, frame, 1).await.unwrap();
        site.until_it_computes();
        site.lanes.io.shutdown_background();
        stream.try_collect::<Vec<_>>().await.unwrap_err();
    });
}

/// Has a job use the store of a folder that is empty.
fn in_a_job<F>(work: impl FnOnce(IoStore<LocalFileSystem>) -> F)
where
    F: Future<Output = object_store::Result<()>> + Send + 'static,
{
    let folder = tempfile::tempdir().unwrap();
    let lanes = lanes(1);
    let inner = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let work = work(IoStore::new(inner, lanes.cpu.handle()));
    lanes.io.block_on(lanes.cpu.spawn(work)).unwrap().unwrap();
}

/// Each call of the trait, through a store in a job.
#[test]
fn a_store_does_what_the_inner_one_does() {
    in_a_job(|store| async move {
        let [one, two, three] = ["d/one", "d/two", "d/three"].map(Path::from);
        store.put(&one, "0123456789".into()).await?;
        assert_eq!(store.get(&one).await?.bytes().await?, "0123456789");
        assert_eq!(store.get_range(&one, 2..4).await?, "23");
        assert_eq!(store.get_ranges(&one, &[0..1, 8..10]).await?, ["0", "89"]);
        assert_eq!(store.head(&one).await?.size, 10);
        store.copy(&one, &two).await?;
        store.rename(&two, &three).await?;
        let mut upload = WriteMultipart::new(store.put_multipart(&two).await?);
        upload.write(&vec![7; 12 << 20]);
        upload.finish().await?;
        assert_eq!(store.head(&two).await?.size, 12 << 20);
        let mut upload = store.put_multipart(&Path::from("d/four")).await?;
        upload.abort().await?;
        let found = store.list(None).map_ok(|found| found.location);
        let mut found: Vec<_> = found.try_collect().await?;
        found.sort();
        assert_eq!(found, [one.clone(), three.clone(), two.clone()]);
        let after: Vec<_> = store.list_with_offset(None, &three).try_collect().await?;
        assert_eq!(after.len(), 1);
        let folders = store.list_with_delimiter(None).await?.common_prefixes;
        assert_eq!(folders.len(), 1);
        store.delete(&one).await?;
        let gone = store.get(&one).await.unwrap_err();
        assert!(matches!(gone, object_store::Error::NotFound { .. }));
        Ok(())
    });
}

/// A hop for each MiB, and none for what is not read.
#[test]
fn files_are_read_in_large_pieces() {
    in_a_job(|store| async move {
        let bytes: Vec<u8> = (0..5 << 19).map(|n: u32| (n >> 8) as u8).collect();
        let path = Path::from("file");
        store.put(&path, bytes.clone().into()).await?;
        let pieces = store.get(&path).await?.into_stream();
        let pieces: Vec<_> = pieces.try_collect().await?;
        let sizes: Vec<usize> = pieces.iter().map(bytes::Bytes::len).collect();
        assert_eq!(sizes, [1 << 20, 1 << 20, 1 << 19]);
        assert_eq!(pieces.concat(), bytes);
        let (from, to) = ((1 << 20) - 5, (2 << 20) + 7);
        let part = store.get_range(&path, from as u64..to as u64).await?;
        assert_eq!(part, bytes[from..to]);
        let options = object_store::GetOptions::new().with_head(true);
        let head = store.get_opts(&path, options).await?;
        assert_eq!(head.meta.size, 5 << 19);
        assert_eq!(head.into_stream().count().await, 0);
        Ok(())
    });
}

/// Else the request handlers' `spawn_blocking` would have the weight of a query.
#[cfg(target_os = "linux")]
#[test]
fn the_threads_that_read_files_have_the_weight_of_the_io_lane() {
    let nice = || rustix::process::getpriority_process(None).unwrap();
    let of_io = nice();
    let folder = tempfile::tempdir().unwrap();
    let lanes = lanes(1);
    let inner = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let low = lanes.cpu.handle().with_priority(Priority::Low);
    let store = IoStore::new(inner, &low);
    let work = async move {
        let path = Path::from("file");
        store.put(&path, "abc".into()).await.unwrap();
        // Dropped, it removes a file.
        let mut upload = store.put_multipart(&path).await.unwrap();
        upload.put_part("d".into()).await.unwrap();
        drop(upload);
        store.get(&path).await.unwrap().bytes().await.unwrap()
    };
    assert_eq!(lanes.io.block_on(low.spawn(work)).unwrap(), "abc");
    // The pool's thread: it waits for the next call for some seconds.
    let of_pool = lanes.io.spawn_blocking(nice);
    assert_eq!(lanes.io.block_on(of_pool).unwrap(), of_io);
}

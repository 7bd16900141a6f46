//! Where a file is written, decoded and read.

use futures::TryStreamExt;
use twolane_vortex::{run_on, stream_on};
use vortex::array::arrays::ScalarFnArray;
use vortex::array::scalar_fn::{EmptyOptions, ScalarFnVTableExt};
use vortex::array::stream::ArrayStreamExt;
use vortex::array::{ArrayRef, Canonical, IntoArray, VortexSessionExecute};
use vortex::expr::{gt_eq, lit};
use vortex::file::OpenOptionsSessionExt;

use crate::setting::{Decoder, Names, ROWS, decode, file, lanes, numbers, open, store, write};

/// The reader is on the I/O runtime, as a handler is: the splits are jobs all the same.
#[test]
fn a_scan_decodes_on_the_lane_and_reads_on_the_io_runtime() {
    let lanes = lanes();
    let (session, store) = (lanes.session(), store());
    let seen = Decoder::default();
    let (own, functions) = (store.clone(), seen.clone());
    let handler = async move {
        let file = open(&session, &own).await.unwrap();
        let in_filter = gt_eq(functions.of_root(), lit(1_u64 << 19));
        let in_filter = in_filter.bind(file.dtype()).unwrap();
        let projection = functions.of_root().bind(file.dtype()).unwrap();
        let scan = file
            .scan()
            .unwrap()
            .with_filter(in_filter)
            .with_projection(projection);
        let scan = scan.map(decode(session)).into_stream().unwrap();
        let parts: Vec<ArrayRef> = scan.try_collect().await.unwrap();
        parts.iter().map(ArrayRef::len).sum::<usize>()
    };
    let rows = lanes.io.block_on(lanes.io.spawn(handler)).unwrap();
    let expected = numbers_from(1 << 19);
    assert_eq!(rows, expected);
    assert_eq!(seen.names.seen(), ["cpu"]);
    assert_eq!(store.by.data.seen(), ["io"]);
    assert_eq!(store.by.heads.seen(), ["io"]);
    let jobs = lanes.cpu.handle().metrics();
    assert_eq!(jobs.panicked + jobs.rejected, 0, "{jobs:?}");
}

fn numbers_from(least: u64) -> usize {
    let numbers = (0..ROWS).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44);
    numbers.filter(|n| *n >= least).count()
}

/// What a scan without `map` yields is decoded by its reader: the crate says so.
#[test]
fn a_projection_is_computed_by_the_reader_unless_the_scan_maps() {
    let lanes = lanes();
    let (session, store, seen) = (lanes.session(), store(), Decoder::default());
    let functions = seen.clone();
    let handler = async move {
        let file = open(&session, &store).await.unwrap();
        let projection = functions.of_root().bind(file.dtype()).unwrap();
        let scan = file.scan().unwrap().with_projection(projection);
        let array = scan.into_array_stream().unwrap().read_all().await.unwrap();
        assert!(functions.names.seen().is_empty());
        array
            .execute::<Canonical>(&mut session.create_execution_ctx())
            .unwrap();
    };
    lanes.io.block_on(lanes.io.spawn(handler)).unwrap();
    assert_eq!(seen.names.seen(), ["io"]);
}

#[test]
fn run_on_computes_all_of_it_on_the_lane() {
    let lanes = lanes();
    let (session, store, seen) = (lanes.session(), store(), Decoder::default());
    let (own, functions) = (store.clone(), seen.clone());
    let operation = async move {
        let file = open(&session, &own).await?;
        let projection = functions.of_root().bind(file.dtype())?;
        let scan = file.scan()?.with_projection(projection);
        let array = scan.into_array_stream()?.read_all().await?;
        let mut ctx = session.create_execution_ctx();
        Ok(array.execute::<Canonical>(&mut ctx)?.into_array().len())
    };
    let rows = run_on(lanes.cpu.handle(), operation);
    assert_eq!(lanes.io.block_on(rows).unwrap() as u64, ROWS);
    assert_eq!(seen.names.seen(), ["cpu"]);
    assert_eq!(store.by.data.seen(), ["io"]);
    // The one request that vortex does not spawn: a client that wants to be polled in time
    // has to be built with `IoConnector`.
    assert_eq!(store.by.heads.seen(), ["cpu"]);
}

#[test]
fn stream_on_polls_the_scan_on_the_lane() {
    let lanes = lanes();
    let (session, store) = (lanes.session(), store());
    let polls = Names::default();
    let (own, seen) = (store.clone(), polls.clone());
    let cpu = lanes.cpu.handle().clone();
    lanes.io.block_on(async move {
        let file = open(&session, &own).await.unwrap();
        let scan = file.scan().unwrap().into_stream().unwrap();
        let scan = scan.inspect_ok(move |_| seen.see());
        let mut parts = stream_on(&cpu, scan, 1 << 20, |part| part.nbytes() as usize);
        let mut rows = 0;
        while let Some(part) = parts.try_next().await.unwrap() {
            rows += part.len() as u64;
        }
        assert_eq!(rows, ROWS);
    });
    assert_eq!(polls.seen(), ["cpu"]);
    assert_eq!(store.by.data.seen(), ["io"]);
}

/// A writer's input is pulled, executed and compressed on the lane, and its bytes are written by
/// the future that awaits it.
#[test]
fn a_writer_compresses_on_the_lane() {
    let lanes = lanes();
    let (session, seen) = (lanes.session(), Decoder::default());
    let functions = seen.clone();
    let handler = async move {
        let lazy = ScalarFnArray::try_new(functions.bind(EmptyOptions), [numbers()]);
        write(&session, lazy.unwrap().into_array()).await;
    };
    lanes.io.block_on(lanes.io.spawn(handler)).unwrap();
    assert_eq!(seen.names.seen(), ["cpu"]);
}

/// By `spawn_blocking_io`, whose threads `contract.rs` sees.
#[test]
fn a_local_file_is_read() {
    let lanes = lanes();
    let session = lanes.session();
    let path = std::env::temp_dir().join(format!("twolane-vortex-{}", std::process::id()));
    std::fs::write(&path, file()).unwrap();
    let open = session.open_options();
    let rows = lanes.io.block_on(async {
        let file = open.open_path(&path).await.unwrap();
        let stream = file.scan().unwrap().into_array_stream().unwrap();
        stream.read_all().await.unwrap().len()
    });
    std::fs::remove_file(path).unwrap();
    assert_eq!(rows as u64, ROWS);
}

/// Files and streams keep what they need of it.
#[test]
fn a_scan_outlives_its_session() {
    let lanes = lanes();
    let (session, store) = (lanes.session(), store());
    lanes.io.block_on(async move {
        let file = open(&session, &store).await.unwrap();
        drop((session, store));
        let scan = file
            .scan()
            .unwrap()
            .with_concurrency(1)
            .into_stream()
            .unwrap();
        drop(file);
        let parts: Vec<ArrayRef> = scan.try_collect().await.unwrap();
        assert_eq!(parts.iter().map(ArrayRef::len).sum::<usize>() as u64, ROWS);
    });
}

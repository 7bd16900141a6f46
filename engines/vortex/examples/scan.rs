//! Writes a Vortex file on a lane, reads it back, and prints on which threads its chunks were made,
//! its bytes read and its splits decoded. The reader stands for a client of a store.
//!
//! ```console
//! cargo run --release --example scan
//! cargo run --example scan -- 100000 # rows
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use twolane_core::CpuRuntime;
use twolane_vortex::{on_lane, run_on, stream_on};
use vortex::VortexSessionDefault;
use vortex::array::arrays::PrimitiveArray;
use vortex::array::buffer::BufferHandle;
use vortex::array::dtype::{DType, Nullability, PType};
use vortex::array::stream::ArrayStreamAdapter;
use vortex::array::{ArrayRef, IntoArray, VortexSessionExecute};
use vortex::buffer::{Alignment, ByteBuffer};
use vortex::error::VortexResult;
use vortex::file::{OpenOptionsSessionExt, WriteOptionsSessionExt};
use vortex::io::VortexReadAt;
use vortex::io::runtime::Handle;
use vortex::io::session::RuntimeSessionExt;
use vortex::session::VortexSession;

const CHUNK: u64 = 100_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args().nth(1);
    let rows: u64 = rows.map_or(Ok(20_000_000), |rows| rows.parse())?;
    let cpu = CpuRuntime::new()?;
    let session = on_lane(VortexSession::default(), cpu.handle());

    // The lane pulls each chunk when it wants it, and compresses it in a job.
    let own = session.clone();
    let write = async move {
        let chunks = (0..rows.div_ceil(CHUNK)).map(move |n| {
            see("chunks are made");
            let numbers = (n * CHUNK..rows.min((n + 1) * CHUNK)).map(number);
            Ok(numbers.collect::<PrimitiveArray>().into_array())
        });
        let dtype = DType::Primitive(PType::U64, Nullability::NonNullable);
        let chunks = ArrayStreamAdapter::new(dtype, stream::iter(chunks));
        let mut bytes = Vec::new();
        own.write_options().write(&mut bytes, chunks).await?;
        Ok(bytes)
    };
    let bytes = run_on(cpu.handle(), write).await?;
    println!("{rows} rows are {} bytes", bytes.len());

    let reader = Reader(bytes.into(), session.handle());
    let file = session.open_options().open_read(reader).await?;
    // `map` runs in the splits' jobs: without it the reader would decode.
    let decode = move |array: ArrayRef| {
        see("splits are decoded");
        let numbers: PrimitiveArray = array.execute(&mut session.create_execution_ctx())?;
        Ok(numbers.as_slice::<u64>().iter().sum::<u64>())
    };
    let scan = file.scan()?.map(decode).into_stream()?;
    let mut sums = stream_on(cpu.handle(), scan, 1_000, |_| 1).boxed();
    let mut sum = 0;
    while let Some(part) = sums.try_next().await? {
        see("sums are added");
        sum += part;
    }
    assert_eq!(sum, (0..rows).map(number).sum::<u64>());
    for ((what, thread), times) in &*SEEN.lock().unwrap() {
        println!("{what:18} on {thread}: {times} times");
    }
    cpu.shutdown().await;
    Ok(())
}

fn number(row: u64) -> u64 {
    row.wrapping_mul(row) % 1_000_003
}

/// Bytes in memory, and the runtime of the session.
#[derive(Clone)]
struct Reader(ByteBuffer, Handle);

impl VortexReadAt for Reader {
    fn concurrency(&self) -> usize {
        8
    }

    fn size(&self) -> BoxFuture<'static, VortexResult<u64>> {
        let size = self.0.len() as u64;
        async move { Ok(size) }.boxed()
    }

    /// Vortex polls what this returns on the CPU lane: `spawn_io` has it run on the I/O lane.
    fn read_at(
        &self,
        from: u64,
        length: usize,
        alignment: Alignment,
    ) -> BoxFuture<'static, VortexResult<BufferHandle>> {
        let bytes = self.0.clone();
        let request = async move {
            see("bytes are read");
            let bytes = bytes.slice_unaligned(from as usize..from as usize + length);
            Ok(BufferHandle::new_host(bytes.aligned(alignment)))
        };
        self.1.spawn_io(request).boxed()
    }
}

static SEEN: Mutex<BTreeMap<(&str, String), u64>> = Mutex::new(BTreeMap::new());

fn see(what: &'static str) {
    let thread = std::thread::current().name().unwrap_or("?").to_owned();
    *SEEN.lock().unwrap().entry((what, thread)).or_default() += 1;
}

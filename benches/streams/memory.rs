//! Peak memory while the consumer is ten times slower than the source, in a process of
//! its own.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use twolane::CpuStreamExt;
use twolane_benches::{Sample, bounded_runtime, child, lane};

const ITEM: usize = 64 << 10;
pub const WINDOW: usize = 16 << 20;
/// As many items as fit into the window.
const ITEMS: usize = WINDOW / ITEM;

/// What the consumer takes for an item. The source takes some 20 µs, most of it for pages
/// that are new to the process.
const SLOWLY: Duration = Duration::from_micros(200);

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    Twolane,
    TwolaneUnordered,
    SpawnBlocking,
}

impl Holder {
    /// With the suffix of its ratios.
    pub const ALL: [(&str, &str, Self); 3] = [
        ("memory/twolane, ordered", "", Self::Twolane),
        (
            "memory/twolane, unordered",
            "_unordered",
            Self::TwolaneUnordered,
        ),
        (
            "memory/spawn_blocking, buffered",
            "_spawn_blocking",
            Self::SpawnBlocking,
        ),
    ];
}

/// The child.
#[derive(Serialize, Deserialize)]
pub struct Role {
    holder: Holder,
    items: u64,
}

#[derive(Serialize, Deserialize)]
struct Peak {
    /// By which the resident set has grown at most.
    resident: u64,
    /// Of inputs and outputs that were there at once.
    live: u64,
}

pub fn measure(holder: Holder, items: u64) -> Result<Sample, String> {
    let role = Role { holder, items };
    let mut one_arena = child::command(&role);
    one_arena.env("MALLOC_ARENA_MAX", "1");
    let peak: Peak = child::ask_by(one_arena)?;
    let by_default: Peak = child::ask(&role)?;
    let over_window = |bytes| bytes as f64 / WINDOW as f64;
    let resident = over_window(peak.resident);
    let mut sample = Sample::of("resident_over_window", "", resident);
    let by_default = over_window(by_default.resident);
    sample.put("resident_by_default_over_window", "", by_default);
    sample.put("live_over_window", "", over_window(peak.live));
    Ok(sample)
}

static LIVE: AtomicU64 = AtomicU64::new(0);
static LIVE_PEAK: AtomicU64 = AtomicU64::new(0);

/// 64 KiB that are resident, and counted.
struct Block(Vec<u8>);

impl Block {
    fn new(byte: u8) -> Self {
        let live = LIVE.fetch_add(ITEM as u64, Relaxed) + ITEM as u64;
        LIVE_PEAK.fetch_max(live, Relaxed);
        // Written to: zeros would be the kernel's.
        Self(vec![byte | 1; ITEM])
    }

    /// As a decoder: an output of its own.
    fn decoded(self) -> Self {
        Self::new(self.0[ITEM - 1])
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        LIVE.fetch_sub(ITEM as u64, Relaxed);
    }
}

/// The child's side.
pub fn answer(role: &Role) -> ! {
    let io = bounded_runtime(2);
    let cpu = lane(io.handle(), |lane| lane);
    let (holder, items, handle) = (role.holder, role.items, cpu.handle());
    // The pools' threads have their stacks.
    io.block_on(io.spawn({
        let handle = handle.clone();
        async move { consume(open(holder, &handle, 4), 4).await }
    }))
    .unwrap();
    LIVE_PEAK.store(0, Relaxed);
    let before = peak_resident();
    io.block_on(io.spawn(async move { consume(open(holder, &handle, items), items).await }))
        .unwrap();
    let peak = Peak {
        resident: peak_resident() - before,
        live: LIVE_PEAK.load(Relaxed),
    };
    child::answer(&peak)
}

type Blocks = Pin<Box<dyn Stream<Item = Block> + Send>>;

fn open(holder: Holder, cpu: &twolane::Handle, items: u64) -> Blocks {
    let source = stream::iter(0..items).map(|item| Block::new(item as u8));
    let window = WINDOW;
    // Not to be reached before the limit in bytes.
    let room = 4 * ITEMS;
    let size = |block: &Block| block.0.len();
    let twolane = |source: Blocks| {
        let stage = source.on_cpu(cpu).map(Block::decoded);
        stage.max_bytes(window, size, size)
    };
    match holder {
        Holder::Twolane => {
            let blocks = twolane(source.boxed()).buffered(room);
            blocks.map(Result::unwrap).boxed()
        }
        Holder::TwolaneUnordered => {
            let blocks = twolane(source.boxed()).buffer_unordered(room);
            blocks.map(Result::unwrap).boxed()
        }
        Holder::SpawnBlocking => {
            let jobs = source.map(|block| spawn_blocking(move || block.decoded()));
            jobs.buffered(ITEMS).map(Result::unwrap).boxed()
        }
    }
}

async fn consume(blocks: Blocks, items: u64) {
    let mut blocks = pin!(blocks);
    let mut taken = 0;
    while let Some(block) = blocks.next().await {
        taken += 1;
        let start = Instant::now();
        while start.elapsed() < SLOWLY {
            std::hint::spin_loop();
        }
        drop(block);
        tokio::task::yield_now().await;
    }
    assert_eq!(taken, items);
}

/// Of this process since its start, in bytes; 0 where the system doesn't tell.
fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.map_or(0, |kib| kib.trim().parse::<u64>().unwrap() * 1_024)
}

//! How does a stream end: dropped, with a panic, with a lane that is gone?

use std::panic::panic_any;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::context::{SOURCES, Source, numbers};
use crate::gate::gate;
use crate::support::{Dropped, Lanes, lanes};
use crate::{buffered, channel};
use futures::{StreamExt, TryStreamExt, stream};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt, JoinError, JoinErrorKind};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn next<T>(lanes: &Lanes, stream: &mut Buffered<T>) -> Option<Result<T, JoinError>> {
    lanes.io.block_on(stream.next())
}

/// Each value goes where it came from: an iterator on the CPU lane, a stream on the I/O
/// lane, whether the source is pending or the window is full.
#[test]
fn the_source_is_dropped_on_its_lane() {
    let (cpu, _lanes) = lanes(1).and_handle();
    let (dropped, drops) = mpsc::channel();
    let (ran, runs) = mpsc::channel();
    let report = move || ran.send(()).unwrap();
    for source in SOURCES {
        let sentinel = Dropped(dropped.clone());
        let numbers = numbers(&cpu, source, move || _ = &sentinel, report.clone());
        runs.iter().take(4).for_each(drop);
        drop(numbers);
        let lane = match source {
            Source::IoOwned => "io",
            _ => "cpu-0",
        };
        assert_eq!(drops.recv().unwrap(), lane, "{source:?}");
    }
    let (sender, source) = channel();
    let sentinel = Dropped(dropped);
    let source = source.inspect(move |_| _ = &sentinel);
    let numbers = source.on_cpu(&cpu).map(move |()| report()).buffered(4);
    sender.send(()).unwrap();
    runs.recv().unwrap();
    drop(numbers);
    assert_eq!(drops.recv().unwrap(), "io");
}

/// The last item, with its payload, behind all that came before: of a stage, of what makes
/// its state, of the source, of a destructor inside a stage, of a size function.
#[test]
fn a_panic_is_the_last_item() {
    struct Bomb(u32);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 == 3 {
                panic_any(self.0);
            }
        }
    }
    fn explode(n: u32) -> u32 {
        if n == 3 {
            panic_any(n);
        }
        n
    }
    for threads in [1, 2] {
        let (cpu, lanes) = lanes(threads).and_handle();
        let items = 8;
        let all = || 0..100_u32;
        let ends = |mut numbers: Buffered<u32>, before: u32| {
            lanes.io.block_on(async {
                for n in 0..before {
                    assert_eq!(numbers.next().await.unwrap().unwrap(), n);
                }
                let panic = numbers.next().await.unwrap().unwrap_err().into_panic();
                assert_eq!(*panic.downcast::<u32>().unwrap(), 3);
                assert!(numbers.next().await.is_none());
            });
        };
        ends(all().on_cpu(&cpu).map(explode).buffered(items), 3);
        ends(
            all().map(explode).on_cpu(&cpu).map(|n| n).buffered(items),
            3,
        );
        let source = stream::iter(all()).map(explode);
        let source = CpuStreamExt::on_cpu(source, &cpu);
        ends(source.map(|n| n).buffered(items), 3);
        let init = all().on_cpu(&cpu).map_init(|| explode(3), |_, n| n);
        ends(init.buffered(items), 0);
        let bombs = all().map(Bomb).on_cpu(&cpu).map(|bomb| bomb.0);
        ends(bombs.buffered(items), 3);
        let sized = all().on_cpu(&cpu).map(|n| n);
        let by_input = |n: &u32| explode(*n) as usize;
        ends(sized.max_bytes(9, by_input, |_| 1).buffered(items), 3);
        // Each output goes alone: the one without a size has been handed over.
        let sized = all().on_cpu(&cpu).map(|n| n).batch_time(Duration::ZERO);
        let by_output = |n: &u32| explode(*n) as usize;
        ends(sized.max_bytes(9, |_| 1, by_output).buffered(items), 4);
        // The lane goes on.
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    }
}

/// No worker was there to be dropped, and the source never woke the pump again: the
/// consumer waited for ever.
#[test]
fn a_shutdown_while_the_source_is_pending() {
    let lanes = lanes(1);
    let (sender, source) = channel();
    let mut numbers = source
        .on_cpu(lanes.cpu.handle())
        .map(|n: u32| n + 1)
        .buffered(4);
    sender.send(1).unwrap();
    assert_eq!(next(&lanes, &mut numbers).unwrap().unwrap(), 2);
    lanes.cpu.shutdown().wait();
    let error = next(&lanes, &mut numbers).unwrap().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::Shutdown, "{error}");
    assert!(next(&lanes, &mut numbers).is_none());
}

/// What `try_next` and `?` make of a stage that fails. The item behind the error may run at that
/// moment, and a closure cannot be stopped; what is queued behind that never runs.
#[test]
fn a_consumer_that_stops_at_the_first_error_cancels_the_rest() {
    type Number = Result<(u32, Arc<()>), BoxError>;
    async fn sum(numbers: Buffered<Number>) -> Result<u32, BoxError> {
        let mut numbers = numbers.map(|number| number?);
        let mut sum = 0;
        while let Some((number, _)) = numbers.try_next().await? {
            sum += number;
        }
        Ok(sum)
    }
    for is_ordered in [true, false] {
        let lanes = lanes(1);
        let (ran, runs) = mpsc::channel();
        let (dropped, drops) = mpsc::channel();
        let (gate, stay) = gate();
        let (live, sentinel) = (Arc::new(()), Dropped(dropped));
        let item = live.clone();
        let source = stream::iter(0..).map(move |n| {
            let _in_source = &sentinel;
            (n, item.clone())
        });
        let stages = CpuStreamExt::on_cpu(source, lanes.cpu.handle()).map(move |(n, live)| {
            ran.send(n).unwrap();
            match n {
                3 => return Err(BoxError::from("it is three")),
                4 => stay(),
                _ => {}
            }
            Ok((n, live))
        });
        // Each output goes alone: the error comes while the item behind it runs.
        let stages = stages.batch_time(Duration::ZERO);
        let numbers = buffered(stages, 64, is_ordered);
        let sum = lanes.io.block_on(sum(numbers));
        assert_eq!(sum.unwrap_err().to_string(), "it is three");
        assert_eq!(drops.recv().unwrap(), "io");
        drop(gate);
        let ran = Vec::from_iter(runs);
        assert!([0, 1, 2, 3, 4].starts_with(&ran), "{ran:?}");
        assert!(lanes.cpu.shutdown().wait().is_empty());
        assert_eq!(Arc::strong_count(&live), 1, "an input or output leaked");
    }
}

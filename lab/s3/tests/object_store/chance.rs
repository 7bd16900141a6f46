//! A thousand downloads through a network that does harm at random.

use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::object_store::aws::AmazonS3;
use super::object_store::path::Path;
use super::object_store::{ClientOptions, ObjectStoreExt, Result};
use super::store::{Site, content, io_connector, object, read, retries, store, store_by};
use crate::dice::Dice;
use crate::errors::{find, story};
use crate::support::{Lanes, lanes};
use twolane::JoinErrorKind;
use twolane_s3::faults::{After, Fault, How};

const ROUNDS: usize = 1_000;
/// At most so many faults in a row.
const FAULTS: u64 = 3;
const SIZES: [usize; 6] = [1, 100, 5_000, 40_000, 100_000, 300_000];

fn path(size: usize) -> Path {
    Path::from(format!("size-{size}"))
}

/// One in 50 stalls where that may be: each costs a timeout.
fn random_fault(dice: &mut Dice, size: usize, may_stall: bool) -> Fault {
    let how = match dice.below(50) {
        0 if may_stall => How::Stall,
        n if n % 2 == 0 => How::Fin,
        _ => How::Reset,
    };
    match dice.below(10) {
        0 => Fault::Reset,
        1 => Fault::SlowDown,
        2 => Fault::Cut(After::Head(dice.below(200) as usize), how),
        // At most as far as the whole object goes: there it does not harm.
        _ => Fault::Cut(After::Body(dice.below(size as u64 + 1) as usize), how),
    }
}

async fn download(store: &AmazonS3, size: usize, range: Option<Range<u64>>) -> Result<Vec<u8>> {
    let bytes = match range {
        Some(range) => store.get_range(&path(size), range).await?,
        None => store.get(&path(size)).await?.bytes().await?,
    };
    Ok(bytes.into())
}

#[test]
fn a_download_is_exact_or_an_error() {
    let mut dice = Dice::from_environment();
    let site = Site::new(0);
    let Lanes { cpu, io: _io } = lanes(1);
    // No connection twice: each request meets the next fault of the plan.
    let options = ClientOptions::new().with_pool_max_idle_per_host(0);
    // A stall fails the store without retries. The other one must succeed, however slow the
    // machine is: it has a timeout that only a hang meets (and `network.rs` its stalls).
    let store = |max_retries, timeout| {
        store_by(
            io_connector(cpu.handle()),
            &site.access(),
            retries(max_retries),
            options.clone().with_timeout(timeout),
        )
    };
    let stores = [
        store(0, Duration::from_millis(400)),
        store(10, Duration::from_secs(120)),
    ];
    let contents = SIZES.map(|size| {
        let content = content(size);
        site.put(&path(size), &content);
        content
    });

    let (mut whole, mut after_faults, mut failed) = (0, 0, 0);
    for round in 0..ROUNDS {
        let with_retries = dice.below(2) == 1;
        let store: Arc<AmazonS3> = stores[usize::from(with_retries)].clone();
        let content = &contents[dice.below(SIZES.len() as u64) as usize];
        let size = content.len();
        let (range, expected) = match dice.below(2) {
            0 => (None, &content[..]),
            _ => {
                let start = dice.below(size as u64);
                let end = start + 1 + dice.below(size as u64 - start);
                (Some(start..end), &content[start as usize..end as usize])
            }
        };
        let plan: Vec<Fault> = (0..dice.below(FAULTS + 1))
            .map(|_| random_fault(&mut dice, size, !with_retries))
            .collect();
        site.proxy.plan(plan.iter().copied());
        let before = site.proxy.struck();
        let job = cpu.spawn(async move { download(&store, size, range).await });
        let got = job.wait().unwrap();
        let struck = site.proxy.struck() - before;
        match got {
            Ok(got) => {
                assert!(
                    got == expected,
                    "round {round}: {} of {} bytes after {plan:?}",
                    got.len(),
                    expected.len()
                );
                whole += 1;
                after_faults += usize::from(struck > 0);
            }
            Err(error) => {
                let story = story(&error);
                assert!(!with_retries, "round {round}: {plan:?}: {story}");
                // A timeout may also come of a machine that is busy.
                let has_cause = struck > 0 || story.contains("timed out");
                assert!(has_cause, "round {round}: {story}");
                failed += 1;
            }
        }
    }
    let struck = site.proxy.struck();
    println!(
        "{whole} whole, {after_faults} of them after faults; {failed} errors; {struck} faults"
    );
    assert!(whole > ROUNDS / 10 && after_faults > ROUNDS / 10 && failed > ROUNDS / 10);
}

/// Here it is the I/O lane that ends, somewhere in a download. Whatever else
/// is seen of that, hyper's broken connections or timers, is not the cause.
#[test]
fn a_download_whose_io_lane_ends_anywhere_is_exact_or_names_the_cause() {
    let mut dice = Dice::from_environment();
    let site = Site::new(400_000);
    let (mut whole, mut lost, mut refused) = (0, 0, 0);
    for round in 0..100 {
        let Lanes { cpu, io } = lanes(1);
        let store = store(&site.access(), cpu.handle(), retries(0));
        // For some, surely in mid-body.
        let stalls = dice.below(4) == 0;
        let after = 1 + dice.below(site.content.len() as u64 - 1) as usize;
        let stall = Fault::Cut(After::Body(after), How::Stall);
        site.proxy.plan(stalls.then_some(stall));
        let (begins, begun) = mpsc::channel();
        let job = cpu.spawn(async move {
            let got = store.get(&object()).await?;
            let begun = || _ = begins.send(());
            read(got, begun).await
        });
        if stalls {
            begun.recv().unwrap();
        } else {
            for _ in 0..dice.below(1_000_000) {
                std::hint::spin_loop();
            }
        }
        io.shutdown_background();
        let error: Box<dyn std::error::Error> = match job.wait() {
            Ok(Ok(got)) => {
                let bytes = got.len();
                assert!(
                    !stalls && got == site.content,
                    "round {round}: {bytes} bytes"
                );
                whole += 1;
                continue;
            }
            Ok(Err(error)) => error.into(),
            Err(join) => join.into(),
        };
        if let Some(join) = find::<twolane::JoinError>(&*error) {
            assert_eq!(
                join.kind(),
                JoinErrorKind::IoRuntimeGone,
                "round {round}: {join}"
            );
            refused += 1;
        } else {
            let named = find::<twolane::io::BridgeError>(&*error).is_some();
            assert!(named, "round {round}: {}", story(&*error));
            lost += 1;
        }
    }
    println!("{whole} whole, {lost} lost in mid-body, {refused} before");
    assert!(lost > 0);
}

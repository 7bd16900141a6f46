//! A short run of the soak (`examples/soak`): a few thousand random jobs on each
//! backend, and all of its checks.

// One test: the soak counts the threads of the process.
#[path = "../soak/soak.rs"]
mod soak;

use soak::Soak;
use twolane::Backend;

#[test]
fn random_jobs_on_both_backends() {
    let seed = soak::seed_of_environment();
    eprintln!("TWOLANE_SEED={seed}");
    let mut soak = Soak::new(seed, Vec::new(), (100, 400));
    for (backend, jobs) in [(Backend::Rayon, 3_000), (Backend::Runtime, 6_000)] {
        soak.backends = vec![backend];
        while soak.jobs() < jobs {
            soak.round();
        }
    }
}

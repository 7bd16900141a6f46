//! The kinds of jobs, and how often each is drawn.

use fastrand::Rng;

/// What a job panics with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    Str,
    String,
    Value,
    /// Whose destructor panics.
    Explosive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    // Closures.
    Tiny,
    Compute,
    Panics(Payload),
    /// The destructor of what it has captured panics.
    CapturesPanic,
    /// Asks its context, if it was handed one, up to so often.
    Checkpoint,
    /// Runs until its submitter lets it go.
    Hold,
    /// Waits for a future on the I/O lane.
    WaitsForIo,
    BlocksInPlace,
    /// `rayon::join` and parallel iterators, on the rayon backend.
    Rayon,
    RayonPanics,
    /// Spawns a job, and leaves it alone, drops it, or hands it out.
    SpawnsChild,
    /// Sends what a `Channel` waits for.
    Releases,
    /// Ends the lane that it runs on.
    EndsLane,
    // Futures.
    Ready,
    Yields,
    IoSleep,
    /// By the timer that a lane's thread has at hand.
    LaneSleep,
    TokioSpawn,
    Channel,
    Messages,
    FuturePanics(Payload),
    FuturesCapturesPanic,
    Forever,
    Children,
    /// Spawns on the I/O lane, and from there on this one.
    IoSpawnsCpu,
    FutureEndsLane,
}

use Kind::*;

/// Out of a thousand.
const OFTEN: &[(u32, Kind)] = &[
    (360, Tiny),
    (50, Compute),
    (10, Panics(Payload::Str)),
    (10, Panics(Payload::String)),
    (5, Panics(Payload::Value)),
    (5, Panics(Payload::Explosive)),
    (10, CapturesPanic),
    (40, Checkpoint),
    (20, Hold),
    (6, WaitsForIo),
    (4, BlocksInPlace),
    (30, Rayon),
    (10, RayonPanics),
    (40, SpawnsChild),
    (120, Ready),
    (90, Yields),
    (8, IoSleep),
    (8, LaneSleep),
    (9, TokioSpawn),
    (40, Channel),
    (25, Messages),
    (8, FuturePanics(Payload::Str)),
    (4, FuturePanics(Payload::String)),
    (4, FuturePanics(Payload::Value)),
    (4, FuturePanics(Payload::Explosive)),
    (10, FuturesCapturesPanic),
    (20, Forever),
    (40, Children),
    (10, IoSpawnsCpu),
];

impl Kind {
    /// `depth`: of jobs that have spawned one another.
    pub fn draw(rng: &mut Rng, depth: u8, on_rayon: bool) -> Self {
        let all: u32 = OFTEN.iter().map(|(often, _)| often).sum();
        let mut n = rng.u32(..all);
        let drawn = OFTEN.iter().find(|(often, _)| {
            let found = n < *often;
            n = n.wrapping_sub(*often);
            found
        });
        match drawn.expect("n is below the sum").1 {
            // Elsewhere these would start rayon's global pool.
            Rayon | RayonPanics if !on_rayon => Tiny,
            SpawnsChild if depth >= 2 => Tiny,
            Children | IoSpawnsCpu if depth >= 2 => Ready,
            kind => kind,
        }
    }

    pub fn is_future(self) -> bool {
        matches!(
            self,
            Ready
                | Yields
                | IoSleep
                | LaneSleep
                | TokioSpawn
                | Channel
                | Messages
                | FuturePanics(_)
                | FuturesCapturesPanic
                | Forever
                | Children
                | IoSpawnsCpu
                | FutureEndsLane
        )
    }

    pub fn captures_panic(self) -> bool {
        matches!(self, CapturesPanic | FuturesCapturesPanic)
    }

    /// Whether it may end with a panic.
    pub fn may_panic(self) -> bool {
        matches!(
            self,
            Panics(_)
                | RayonPanics
                | FuturePanics(_)
                | LaneSleep
                | CapturesPanic
                | FuturesCapturesPanic
        )
    }

    pub fn is_explosive(self) -> bool {
        matches!(
            self,
            Panics(Payload::Explosive) | FuturePanics(Payload::Explosive)
        )
    }
}

//! The contenders in Go.

use std::fmt;

use serde::Deserialize;
use twolane_benches::go::Go;

use crate::items::Items;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GoWay {
    Loop,
    /// A goroutine for each of source, stage and consumer; channels without room, as Go's
    /// documentation has it.
    Pipeline,
    /// The same with room in the channels.
    PipelineWithRoom,
    /// As many goroutines for the stage as there are cores; with room.
    FanOut,
    /// All items are there, and each core has one part.
    Slices,
}

impl GoWay {
    pub const ALL: [Self; 5] = [
        Self::Loop,
        Self::Pipeline,
        Self::PipelineWithRoom,
        Self::FanOut,
        Self::Slices,
    ];

    fn args(self) -> [&'static str; 2] {
        match self {
            Self::Loop => ["loop", "0"],
            Self::Pipeline => ["pipeline", "0"],
            Self::PipelineWithRoom => ["pipeline", "1024"],
            Self::FanOut => ["fan", "1024"],
            Self::Slices => ["slices", "0"],
        }
    }
}

impl fmt::Display for GoWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Loop => "Go: plain loop",
            Self::Pipeline => "Go: pipeline",
            Self::PipelineWithRoom => "Go: pipeline, room",
            Self::FanOut => "Go: fan-out, fan-in",
            Self::Slices => "Go: a slice a core",
        })
    }
}

/// One value for each repetition.
#[derive(Deserialize)]
pub struct Printed {
    /// Nanoseconds an item.
    pub each: Vec<f64>,
    /// Microseconds until the first output.
    pub first: Vec<f64>,
}

pub fn run(go: &Go, way: GoWay, items: Items, repetitions: u64) -> Result<Printed, String> {
    let [way, room] = way.args();
    let args = [
        ("way", way.to_owned()),
        ("room", room.to_owned()),
        ("short", items.short.to_string()),
        ("long", items.long.to_string()),
        ("count", items.count.to_string()),
        ("rounds", repetitions.to_string()),
    ];
    go.run(&args.map(|(name, value)| format!("-{name}={value}")))
}

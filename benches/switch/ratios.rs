//! The figures that the bench is there for.

use crate::case::Case;
use crate::contender::{Contender, Entry, RAYON, RUNTIME, TOKIO, Width};
use crate::found::Found;
use crate::support::Ratio;

/// One line of them. `None`: not both sides ran.
pub struct Line {
    pub name: String,
    pub ratio: Option<Ratio>,
    pub unit: &'static str,
}

pub fn of(found: &Found) -> Vec<Line> {
    use Case::{
        PingPong, SelfWake, Start, Start1000, Switch100, SwitchAlone, SwitchTwo, WakeBatch,
    };
    use Width::{Cores, One};

    // Without a suffix: one alone, as the switches of others are quoted. With
    // more, Tokio's share their lap through its scheduler; hence the others.
    let switches = [
        ("", RAYON, One, SwitchAlone),
        ("_two", RAYON, One, SwitchTwo),
        ("_100", RAYON, One, Switch100),
        ("_runtime", RUNTIME, One, SwitchAlone),
        ("_two_runtime", RUNTIME, One, SwitchTwo),
        ("_100_runtime", RUNTIME, One, Switch100),
        ("_100_cores", RAYON, Cores, Switch100),
        ("_100_cores_runtime", RUNTIME, Cores, Switch100),
    ];
    let starts = [
        ("start", "", RAYON, Start),
        ("start", "_runtime", RUNTIME, Start),
        ("start_1000", "", RAYON, Start1000),
        ("start_1000", "_runtime", RUNTIME, Start1000),
    ];
    let mut lines = Vec::new();
    for (peer, under) in [("tokio", TOKIO), ("gosched", Contender::Goroutines)] {
        for (suffix, over, width, case) in switches {
            let name = format!("switch_over_{peer}{suffix}");
            lines.push(ratio(found, name, over, under, width, case));
        }
    }
    for (peer, under) in [("tokio", TOKIO), ("go", Contender::Goroutines)] {
        for (start, suffix, over, case) in starts {
            let name = format!("{start}_over_{peer}{suffix}");
            lines.push(ratio(found, name, over, under, One, case));
        }
    }
    let wakes = [
        ("self_wake", SelfWake),
        ("ping_pong", PingPong),
        ("wake_batch", WakeBatch),
    ];
    for (name, case) in wakes {
        for (backend, over) in [("rayon", RAYON), ("runtime", RUNTIME)] {
            for (suffix, width) in [("", One), ("_cores", Cores)] {
                let name = format!("{name}_{backend}{suffix}");
                lines.push(ratio(found, name, over, TOKIO, width, case));
            }
        }
    }
    for (suffix, contender) in [("", RAYON), ("_runtime", RUNTIME)] {
        let width = One;
        let figures = found.rounds(Entry { contender, width }, Case::YieldIfDue);
        lines.push(Line {
            name: format!("yield_if_due_ns{suffix}"),
            ratio: figures.map(|ns| Ratio::of_rounds(ns, std::iter::repeat(1.0))),
            unit: "ns",
        });
    }
    lines
}

fn ratio(
    found: &Found,
    name: String,
    over: Contender,
    under: Contender,
    width: Width,
    case: Case,
) -> Line {
    let rounds = |contender| found.rounds(Entry { contender, width }, case);
    let ratio = rounds(over)
        .zip(rounds(under))
        .map(|(over, under)| Ratio::of_rounds(over, under));
    Line {
        name,
        ratio,
        unit: "",
    }
}

pub fn print(lines: &[Line]) {
    println!("\nmedian (least to most) of the rounds' own");
    for Line { name, ratio, unit } in lines {
        let ratio = ratio.map_or("not run".to_owned(), |ratio| ratio.to_string());
        println!("{name:36} {ratio} {unit}");
    }
}

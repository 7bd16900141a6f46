//! The table of throughputs and the ratios.

use twolane_benches::report::{digits, print_table};
use twolane_benches::{Findings, Ratio, Report};

use crate::items::Kind;
use crate::lanes::RATE;
use crate::ways::{self, PEERS};
use crate::{GO, LOOP, PAR_ITER, row};

pub fn throughputs(found: &Findings) {
    let ways = ways::all().map(|(name, _)| name);
    let goroutines = GO.map(|(name, ..)| name);
    let names = [LOOP].into_iter().chain(ways).chain([PAR_ITER]);
    let names: Vec<&str> = names.chain(goroutines).collect();
    let table = |title: &str, cell: &dyn Fn(String, String) -> String| {
        let head = [&[""][..], &Kind::ALL.map(Kind::name)].concat();
        let line = |name: &&str| {
            let cells = Kind::ALL.map(|kind| cell(row(kind, name), row(kind, LOOP)));
            [&[(*name).to_owned()][..], &cells].concat()
        };
        print_table(title, &head, &names.iter().map(line).collect::<Vec<_>>());
    };
    table("Throughput, a plain loop's being 1", &|contender, base| {
        digits(found.ratio(RATE, &contender, &base).median)
    });
    table("Nanoseconds an item", &|contender, _| {
        digits(found.median(&contender, "each"))
    });
    table("Of all cores' time, others had", &|contender, _| {
        digits(found.median(&contender, "others"))
    });
}

/// That of all with the least median.
fn worst(ratios: impl IntoIterator<Item = Ratio>) -> Ratio {
    let measured = ratios.into_iter().filter(|ratio| !ratio.median.is_nan());
    let worst = measured.min_by(|a, b| a.median.total_cmp(&b.median));
    worst.unwrap_or(Ratio::NONE)
}

pub fn put(report: &Report) {
    let found = &report.found;
    let over = |kind, way: &str, base: &str| found.ratio(RATE, &row(kind, way), &row(kind, base));
    for (way, suffix) in [
        (ways::ORDERED, ""),
        (ways::UNORDERED, "_unordered"),
        (ways::OF_ITERATOR, "_of_iterator"),
    ] {
        let over_loop = |kind| over(kind, way, LOOP);
        let put = |name: &str, ratio| report.put(format!("{name}{suffix}"), ratio);
        put("small_over_sequential", over_loop(Kind::Ns100));
        put("worst_over_sequential", worst(Kind::ALL.map(over_loop)));
        put("large_over_sequential", worst(Kind::LARGE.map(over_loop)));
        put("mix_over_par_iter", over(Kind::Mix, way, PAR_ITER));
    }
    let over_best = |kind, peers: &[(&str, ways::Run)]| {
        let peers: Vec<String> = peers.iter().map(|(peer, _)| row(kind, peer)).collect();
        found.over_most(RATE, &row(kind, ways::ORDERED), &peers)
    };
    let ordered = &PEERS[..ways::ORDERED_PEERS];
    let over_peers = |kind| over_best(kind, &PEERS);
    report.put("over_best_rust_peer", worst(Kind::ALL.map(over_peers)));
    for kind in Kind::ALL {
        let at = kind.name().replace(' ', "").replace('µ', "u");
        report.put(format!("over_best_rust_peer_at_{at}"), over_peers(kind));
    }
    let over_ordered = Kind::ALL.map(|kind| over_best(kind, ordered));
    report.put("over_best_ordered_rust_peer", worst(over_ordered));

    let [_, pipeline, with_room, fan_out, slices] =
        GO.map(|(name, ..)| over(Kind::Ns100, ways::ORDERED, name));
    report.put("over_go_pipeline", worst([pipeline, with_room]));
    report.put("over_go_fan_out", fan_out);
    report.put("over_go_slices", slices);

    report.ratios(
        "
        io_p99_beside: from_send_p99 of beside/twolane, ordered / beside/nothing
        io_p99_beside_spawn_blocking: from_send_p99 of beside/spawn_blocking, buffered / beside/nothing
        io_p99_beside_workers: from_send_p99 of beside/mpsc + workers / beside/nothing
        ",
    );
    let first = |name| format!("first output/{name}");
    let ordered: Vec<String> = ordered.iter().map(|(name, _)| first(*name)).collect();
    let ours = first(ways::ORDERED);
    let first = found.over_least("first_output", &ours, &ordered);
    report.put("first_output_over_best_ordered_rust_peer", first);
}

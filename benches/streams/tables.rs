//! The tables and the ratios.

use twolane_benches::report::{digits, print_table};
use twolane_benches::{Column, Findings, Ratio, Report};

use crate::contenders::{
    ALONE, BESIDE, LOOP, PAR_ITER, echo_beside, first_output, row, with_memory,
};
use crate::goroutines::GoWay;
use crate::items::Kind;
use crate::lanes::RATE;
use crate::memory::Holder;
use crate::ways::Way;

pub fn print(found: &Findings, report: &mut Report<'_>) {
    throughputs(found);
    let first = "Until the first output of a stream of 10 µs items, µs";
    let column = [Column::spread("first output", "first_output")];
    report.table(first, "first output/", &column);
    let memory = "Peak memory over a window of 16 MiB, a consumer ten times slower than the source";
    let columns = [
        Column::spread("resident", "resident_over_window"),
        Column::spread("as malloc comes", "resident_by_default_over_window"),
        Column::spread("items", "live_over_window"),
    ];
    report.table(memory, "memory/", &columns);
    let beside = "An echo on the I/O runtime beside streams of 10 µs items, ms";
    let columns = [
        Column::median("p50", "from_send_p50"),
        Column::spread("p99", "from_send_p99"),
        Column::pooled("p99 of all rounds", "from_send", 0.99),
        Column::median("p999", "from_send_p999"),
        Column::median("items done", "done"),
        Column::median("others", "others"),
    ];
    report.table(beside, "beside/", &columns);
    ratios(found, report);
}

fn throughputs(found: &Findings) {
    let ways = Way::ALL.map(|way| way.to_string());
    let goroutines = GoWay::ALL.map(|way| way.to_string());
    let names = [LOOP.to_owned()].into_iter().chain(ways);
    let names = names.chain([PAR_ITER.to_owned()]).chain(goroutines);
    let names: Vec<String> = names.collect();
    let table = |title: &str, cell: &dyn Fn(String, String) -> String| {
        let kinds = Kind::ALL.map(|kind| kind.to_string());
        let head = [""]
            .into_iter()
            .chain(kinds.iter().map(String::as_str))
            .collect::<Vec<_>>();
        let line = |name: &String| {
            let cells = Kind::ALL.map(|kind| cell(row(kind, name), row(kind, LOOP)));
            [name.clone()].into_iter().chain(cells).collect()
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

fn ratios(found: &Findings, report: &mut Report<'_>) {
    let over = |kind, way: Way, base: &str| found.ratio(RATE, &row(kind, way), &row(kind, base));
    for (way, suffix) in [
        (Way::Ordered, ""),
        (Way::Unordered, "_unordered"),
        (Way::Iterator, "_of_iterator"),
    ] {
        let over_loop = |kind| over(kind, way, LOOP);
        let mut put = |name: &str, ratio| report.put(format!("{name}{suffix}"), ratio);
        put("small_over_sequential", over_loop(Kind::Ns100));
        put("worst_over_sequential", worst(Kind::ALL.map(over_loop)));
        put("large_over_sequential", worst(Kind::LARGE.map(over_loop)));
        put("mix_over_par_iter", over(Kind::Mix, way, PAR_ITER));
    }
    let over_best = |kind, peers: &[Way]| {
        let peers = peers.iter().map(|peer| row(kind, peer));
        let rate = |peer: &String| found.median(peer, RATE);
        let measured = peers.filter(|peer| !rate(peer).is_nan());
        let best = measured.max_by(|a, b| rate(a).total_cmp(&rate(b)));
        let ours = row(kind, Way::Ordered);
        best.map_or(Ratio::NONE, |best| found.ratio(RATE, &ours, &best))
    };
    let over_peers = |kind| over_best(kind, &Way::PEERS);
    report.put("over_best_rust_peer", worst(Kind::ALL.map(over_peers)));
    report.put("over_best_rust_peer_at_100ns", over_peers(Kind::Ns100));
    for kind in Kind::ALL.into_iter().skip(1) {
        let at = kind.to_string().replace(' ', "").replace('µ', "u");
        report.put(format!("over_best_rust_peer_at_{at}"), over_peers(kind));
    }
    let ordered: Vec<Way> = Way::PEERS
        .into_iter()
        .filter(|way| way.is_ordered())
        .collect();
    let over_ordered = |kind| over_best(kind, &ordered);
    report.put(
        "over_best_ordered_rust_peer",
        worst(Kind::ALL.map(over_ordered)),
    );

    let over_go = |way: GoWay| over(Kind::Ns100, Way::Ordered, &way.to_string());
    let pipelines = [GoWay::Pipeline, GoWay::PipelineWithRoom].map(over_go);
    report.put("over_go_pipeline", worst(pipelines));
    report.put("over_go_fan_out", over_go(GoWay::FanOut));
    report.put("over_go_slices", over_go(GoWay::Slices));

    let p99 = "from_send_p99";
    for (way, name) in BESIDE.into_iter().zip(["", "_spawn_blocking", "_workers"]) {
        let beside = echo_beside(way);
        report.ratio(
            format!("io_p99_beside{name}"),
            p99,
            &beside,
            &echo_beside(ALONE),
        );
    }
    for (name, holder) in Holder::ALL {
        let suffix = match holder {
            Holder::Twolane => "",
            Holder::TwolaneUnordered => "_unordered",
            Holder::SpawnBlocking => "_spawn_blocking",
            Holder::ParStream => "_par_stream",
        };
        let holder = with_memory(name);
        let ratio = |metric| found.value(metric, &holder);
        report.put(
            format!("peak_memory_over_window{suffix}"),
            ratio("resident_over_window"),
        );
        let by_default = ratio("resident_by_default_over_window");
        report.put(
            format!("peak_memory_by_default_over_window{suffix}"),
            by_default,
        );
        report.put(
            format!("peak_items_over_window{suffix}"),
            ratio("live_over_window"),
        );
    }
    let stages = |kind| over(kind, Way::ThreeStages, &Way::ThreeThirds.to_string());
    report.put("three_stages_over_one", worst(Kind::ALL.map(stages)));
    report.put("three_stages_over_one_at_100ns", stages(Kind::Ns100));

    let ours = first_output(Way::Ordered);
    let ordered = ordered.iter().map(|way| first_output(*way));
    let ordered: Vec<String> = ordered.collect();
    let ordered: Vec<&str> = ordered.iter().map(String::as_str).collect();
    let first = found.over_least("first_output", &ours, &ordered);
    report.put("first_output_over_best_ordered_rust_peer", first);
}

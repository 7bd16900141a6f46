//! The table of throughputs and the ratios.

use twolane_benches::report::{digits, print_table};
use twolane_benches::{Findings, Ratio, Report};

use crate::items::Kind;
use crate::lanes::RATE;
use crate::memory::Holder;
use crate::ways::Way;
use crate::{BESIDE, GO, LOOP, PAR_ITER, echo_beside, first_output, row};

pub fn throughputs(found: &Findings) {
    let mut names = vec![LOOP.to_owned()];
    names.extend(Way::ALL.map(|way| way.to_string()));
    names.push(PAR_ITER.to_owned());
    names.extend(GO.map(|(name, ..)| name.to_owned()));
    let table = |title: &str, cell: &dyn Fn(String, String) -> String| {
        let head = [&[""][..], &Kind::ALL.map(Kind::name)].concat();
        let line = |name: &String| {
            let cells = Kind::ALL.map(|kind| cell(row(kind, name), row(kind, LOOP)));
            [&[name.clone()][..], &cells].concat()
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

pub fn put(found: &Findings, report: &mut Report<'_>) {
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
    let over_best = |kind, is_peer: &dyn Fn(&Way) -> bool| {
        let rate = |peer: &String| found.median(peer, RATE);
        let peers = Way::peers().filter(is_peer).map(|peer| row(kind, peer));
        let measured = peers.filter(|peer| !rate(peer).is_nan());
        let best = measured.max_by(|a, b| rate(a).total_cmp(&rate(b)));
        let ours = row(kind, Way::Ordered);
        best.map_or(Ratio::NONE, |best| found.ratio(RATE, &ours, &best))
    };
    let over_peers = |kind| over_best(kind, &|_| true);
    report.put("over_best_rust_peer", worst(Kind::ALL.map(over_peers)));
    for kind in Kind::ALL {
        let at = kind.name().replace(' ', "").replace('µ', "u");
        report.put(format!("over_best_rust_peer_at_{at}"), over_peers(kind));
    }
    let over_ordered = Kind::ALL.map(|kind| over_best(kind, &|way| way.is_ordered()));
    report.put("over_best_ordered_rust_peer", worst(over_ordered));

    let [_, pipeline, with_room, fan_out, slices] =
        GO.map(|(name, ..)| over(Kind::Ns100, Way::Ordered, name));
    report.put("over_go_pipeline", worst([pipeline, with_room]));
    report.put("over_go_fan_out", fan_out);
    report.put("over_go_slices", slices);

    let alone = echo_beside(None);
    for (way, name) in BESIDE
        .into_iter()
        .skip(1)
        .zip(["", "_spawn_blocking", "_workers"])
    {
        let name = format!("io_p99_beside{name}");
        report.ratio(name, "from_send_p99", &echo_beside(way), &alone);
    }
    for (contender, suffix, _) in Holder::ALL {
        for (name, metric) in [
            ("peak_memory_over_window", "resident_over_window"),
            (
                "peak_memory_by_default_over_window",
                "resident_by_default_over_window",
            ),
            ("peak_items_over_window", "live_over_window"),
        ] {
            report.put(format!("{name}{suffix}"), found.value(metric, contender));
        }
    }
    let stages = |kind| over(kind, Way::ThreeStages, &Way::ThreeThirds.to_string());
    report.put("three_stages_over_one", worst(Kind::ALL.map(stages)));
    report.put("three_stages_over_one_at_100ns", stages(Kind::Ns100));

    let ordered = Way::peers()
        .filter(|way| way.is_ordered())
        .map(first_output);
    let ordered: Vec<String> = ordered.collect();
    let ordered: Vec<&str> = ordered.iter().map(String::as_str).collect();
    let first = found.over_least("first_output", &first_output(Way::Ordered), &ordered);
    report.put("first_output_over_best_ordered_rust_peer", first);
}

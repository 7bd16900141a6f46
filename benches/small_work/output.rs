//! What is printed, and what is written.

use crate::break_even::{self, BreakEven};
use crate::found::Found;
use crate::lanes::IoRuntime;
use crate::plan::{Plan, Size};
use crate::support::{Report, cores};
use crate::table::Table;
use crate::tail::findings::{Counted, FROM_INTENDED, FROM_SEND};
use crate::ways::Way;

/// A p99 beyond this part of a slice was cut short by its end.
const CUT_SHORT: f64 = 0.8;
/// When others have had more of the machine than this, the figures are theirs:
/// a single late slice decides a ratio, and where a break-even lies.
const TOO_BUSY: f64 = 0.05;

pub fn print_and_write(plan: &Plan, found: &Found, others: f64) {
    let mut report = Report::new("small_work");
    report.row("machine", "others", "of all cores", others, 1);
    let mut markdown = vec![format!(
        "{} cores, medians of the rounds ({}); others had {:.0} % of the machine.",
        cores(),
        plan.rounds,
        others * 100.0
    )];
    if others > TOO_BUSY {
        markdown.push("The machine was too busy for these figures to be taken.".to_owned());
    }
    println!("\n{}", markdown.join("\n"));
    for io in IoRuntime::ALL {
        println!("\nI/O runtime: {io}");
        markdown.push(format!("### I/O runtime: {io}"));
        for table in tables(plan, found, io) {
            println!("\n{}", table.text());
            markdown.push(table.markdown());
        }
        println!();
        let mut sentences = Vec::new();
        for BreakEven {
            name,
            sentence,
            from,
        } in break_even::all(plan, found, io)
        {
            println!("  {sentence}");
            sentences.push(format!("- {sentence}"));
            report.ratio(&name, from.map_or(f64::NAN, |size| size.0 as f64));
        }
        for (name, ratio) in break_even::latency_ratios(found, io) {
            println!("  {name}: {ratio}");
            report.ratio(&name, ratio.median);
        }
        markdown.push(sentences.join("\n"));
        report_rows(&mut report, plan, found, io);
    }
    println!();
    let file = report.write().join("small_work.md");
    std::fs::write(&file, markdown.join("\n\n") + "\n").unwrap();
    println!("written to {}", file.display());
}

fn tables(plan: &Plan, found: &Found, io: IoRuntime) -> [Table; 3] {
    let table = |title: &str, cell: &dyn Fn(Size, Way) -> String| {
        let ways = Way::OF_A_TASK.iter().map(Way::to_string);
        let row = |size: &Size| {
            let cells = Way::OF_A_TASK.iter().map(|way| cell(*size, *way));
            [size.to_string()].into_iter().chain(cells).collect()
        };
        Table {
            title: title.to_owned(),
            columns: ["a piece".to_owned()].into_iter().chain(ways).collect(),
            rows: plan.sizes.iter().map(row).collect(),
        }
    };
    let bound = plan.slice.measured.as_secs_f64() * 1e6 * CUT_SHORT;
    let quantiles = |of: &dyn Fn(f64) -> f64| {
        let [p50, p99] = [0.5, 0.99].map(of);
        let cut = if p99 > bound { ">" } else { "" };
        format!("{} / {cut}{}", time(p50), time(p99))
    };
    let idle = quantiles(&|q| found.idle_latency(io, FROM_SEND, q));
    [
        table("Throughput, one core's being 1", &|size, way| {
            let ratio = found.throughput(io, size, way, Way::Alone);
            format!("{:.2}", ratio.median)
        }),
        table(
            &format!("Another task's latency, p50 / p99 ({idle} without any work)"),
            &|size, way| quantiles(&|q| found.latency(io, size, way, FROM_SEND, q)),
        ),
        table(
            "CPU time for a piece, alone on a core being 1",
            &|size, way| format!("{:.2}", found.cpu(io, size, way, Way::Alone).median),
        ),
    ]
}

/// Two digits that matter, or three.
fn time(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 9_950.0 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.0} ms", us / 1e3),
    }
}

fn report_rows(report: &mut Report, plan: &Plan, found: &Found, io: IoRuntime) {
    let rounds = plan.rounds;
    const QUANTILES: [(&str, Counted, f64); 4] = [
        ("other_task_p50", FROM_SEND, 0.5),
        ("other_task_p99", FROM_SEND, 0.99),
        ("other_task_p50_from_intended", FROM_INTENDED, 0.5),
        ("other_task_p99_from_intended", FROM_INTENDED, 0.99),
    ];
    for (metric, counted, q) in QUANTILES {
        let value = found.idle_latency(io, counted, q);
        report.row(&format!("{io}, idle"), metric, "us", value, rounds);
    }
    for &size in &plan.sizes {
        for way in Way::ALL {
            let name = format!("{io}, {size}, {way}");
            let mut row = |metric, unit, value| report.row(&name, metric, unit, value, rounds);
            row("throughput", "1/s", found.pieces_per_s(io, size, way));
            if way == Way::Alone {
                continue;
            }
            let of_one_core = found.throughput(io, size, way, Way::Alone).median;
            row("throughput_of_one_core", "", of_one_core);
            let cpu = found.cpu(io, size, way, Way::Alone).median;
            row("cpu_time_over_alone", "", cpu);
            for (metric, counted, q) in QUANTILES {
                row(metric, "us", found.latency(io, size, way, counted, q));
            }
            let pooled = found.pooled(io, size, way).from_send;
            for (metric, q) in [("p99", 0.99), ("max", 1.0)] {
                let metric = format!("other_task_{metric}_of_all_rounds");
                let us = pooled.value_at_quantile(q) as f64 / 1e3;
                report.row(&name, &metric, "us", us, pooled.len() as usize);
            }
        }
    }
}

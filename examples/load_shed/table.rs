//! What is printed.

use crate::compare::Found;
use crate::load::Load;

pub fn head(load: &Load, capacity: f64, threads: usize, limit: usize) {
    println!("{capacity:.0} requests for /work a second can be served by {threads} threads of");
    println!("twolane's CPU lane, while their clients take a share of the same cores.");
    println!(
        "{:.0} a second come, each at its time: latencies count from",
        load.per_second
    );
    println!("there. A client gives up after a second. /health is asked every 5 ms. twolane's");
    println!("queue has {limit} permits.\n");
    println!(
        "{:<34} {:>33}   {:>17}   {:>23}",
        "", "/work, answers a second", "200's, ms", "/health, ms"
    );
    println!(
        "{:<34} {:>7} {:>7} {:>8} {:>8}   {:>8} {:>8}   {:>7} {:>7} {:>7}",
        "contender", "200", "503", "gave up", "failed", "p50", "p99", "p50", "p99", "max"
    );
}

pub fn row(found: &Found, load: &Load) {
    let a_second = |n: u64| format!("{:.0}", n as f64 / load.counted.as_secs_f64());
    let work = match &found.work {
        None => ["-"; 6].map(str::to_owned),
        Some(work) => [
            a_second(work.served),
            a_second(work.shed),
            a_second(work.gave_up),
            a_second(work.failed),
            work.latencies.cell(0.5),
            work.latencies.cell(0.99),
        ],
    };
    let [served, shed, gave_up, failed, p50, p99] = work;
    let health = [0.5, 0.99, 1.0].map(|q| found.health.cell(q));
    let [health_p50, health_p99, max] = health;
    println!(
        "{:<34} {served:>7} {shed:>7} {gave_up:>8} {failed:>8}   {p50:>8} {p99:>8}   \
         {health_p50:>7} {health_p99:>7} {max:>7}",
        found.name
    );
}

pub fn what_to_look_for() {
    println!("\nLook at /health: a load balancer takes a service that is late there for dead.");
    println!("And at the 200s: of what comes twice as fast as it can be served, one half can");
    println!("be answered in time, if the rest is refused at once. A service that refuses none");
    println!("works for clients that have given up. The clients run on the same cores as the");
    println!("server, and what delays them is in all of these latencies.\n");
    println!("Afterwards, twolane's service, behind tower's layers and without:");
}

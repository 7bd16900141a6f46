//! Where the slowest requests spent their time, and whether a stall of (f) is a failure.

use twolane_benches::report::{digits, print_table};

use crate::contender::{Contender, name};
use crate::round::{Request, STALL_MS};
use crate::server::THINKS;
use crate::world::Busy;

/// Prints the slowest request of all rounds, a row for each contender.
pub fn print_slowest(requests: &[Request]) {
    let mut rows = Vec::new();
    for busy in Busy::ALL {
        for contender in Contender::ALL {
            let its = |one: &&Request| one.busy == busy && one.contender == contender;
            let its = requests.iter().filter(its);
            if let Some(one) = its.max_by(|a, b| a.ms().total_cmp(&b.ms())) {
                let parts = [one.ms(), one.to_write, one.at_server, one.to_read];
                let mut row = vec![name(busy.key(), contender)];
                row.extend(parts.map(digits));
                rows.push(row);
            }
        }
    }
    let parts = ["waits to be written", "at the server", "waits to be read"];
    let head = [&["", "in all"][..], &parts].concat();
    if !rows.is_empty() {
        print_table("The slowest request of all rounds; ms", &head, &rows);
    }
}

/// Whether (f) is free of stalls, but for what the noise of the machine explains: those in which the
/// server itself was that late, and as many more as (a), the io side alone, had in this run.
pub fn is_good(requests: &[Request]) -> bool {
    let stalled = |contender| {
        let stalled = |one: &&Request| one.contender == contender && one.has_stalled();
        requests.iter().filter(stalled).collect::<Vec<_>>()
    };
    let (ours, alone) = (stalled(Contender::Twolane), stalled(Contender::Alone).len());
    let thinks = THINKS.as_secs_f64() * 1e3;
    let is_late = |one: &&&Request| one.ms() - (one.at_server - thinks) <= STALL_MS;
    let late = ours.iter().filter(is_late).count();
    let is_good = ours.len() - late <= alone;
    if !ours.is_empty() {
        let explains = ["does not explain", "explains"][usize::from(is_good)];
        println!(
            "\n{} requests of (f) stalled. The server was late with {late} of them, and (a) stalled \
             {alone} times: noise {explains} it.",
            ours.len()
        );
    }
    is_good
}

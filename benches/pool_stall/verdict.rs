//! What the run comes down to, and whether it is a failure.

use std::fmt;

use crate::classes::requests;
use crate::contender::Contender;
use crate::gate::Busy;
use crate::lane::Lane;
use crate::round::{Request, Round};

/// The stalls of (f), sorted by whether there is another explanation.
pub struct Verdict {
    stalled: usize,
    /// Of those, the ones that the machine's noise explains.
    noise: usize,
    requests: usize,
    alone_stalled: usize,
    /// Of (b), and of those whose connection the cpu side drove: the stalled ones, and all.
    shared: [(usize, usize); 2],
}

impl Verdict {
    pub fn of(rounds: &[Round]) -> Self {
        let all = |contender| {
            Busy::ALL
                .map(|busy| requests(rounds, contender, busy))
                .concat()
        };
        let stalled = |of: &[&Request]| of.iter().filter(|one| one.stalled()).count();
        let (ours, shared) = (all(Contender::Twolane), all(Contender::Shared));
        let driven = shared.iter().filter(|one| one.driven_by == Lane::Cpu);
        let driven: Vec<_> = driven.copied().collect();
        let alone_stalled = stalled(&all(Contender::Alone));
        let noise = ours
            .iter()
            .filter(|one| one.stalled() && is_noise(one, alone_stalled));
        Self {
            stalled: stalled(&ours),
            noise: noise.count(),
            requests: ours.len(),
            alone_stalled,
            shared: [&shared, &driven].map(|of| (stalled(of), of.len())),
        }
    }

    pub fn failed(&self) -> bool {
        self.stalled > self.noise
    }
}

/// A stall is put down to noise only if nothing about its connection was the cpu side's, and either
/// the server itself was that late or the io side stalled in this run when it was alone, too.
fn is_noise(request: &Request, alone_stalled: usize) -> bool {
    let holders = [request.opened_by, request.reactor_of, request.driven_by];
    let [_, at_server, ..] = request.segments_ms();
    let others = request.latency_ms() - at_server;
    !holders.contains(&Lane::Cpu) && (alone_stalled > 0 || at_server > others)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(stalled, all), (of_driven, driven)] = self.shared;
        writeln!(
            f,
            "(b): {stalled} of {all} requests stalled, {of_driven} of them among the {driven} whose \
             connection the cpu side drove.\n(e) moves the connect and so the socket, not the driver \
             task. (g) moves both, and the three cases show what\nit leaves: the request's own future. \
             (f) moves the whole request."
        )?;
        write!(
            f,
            "(f): {} of {} requests stalled: ",
            self.stalled, self.requests
        )?;
        if self.stalled == 0 {
            return write!(f, "passed.");
        }
        write!(
            f,
            "noise explains {} of them (all held by the io side, and the server itself was late, or \
             the io side\nstalled alone, as it did {} times): {}.",
            self.noise,
            self.alone_stalled,
            if self.failed() {
                "FAILED"
            } else {
                "passed, but run it on a quieter machine"
            },
        )
    }
}

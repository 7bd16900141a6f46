//! No client at all: how long a job waits for its next step after an I/O task that does
//! nothing.

use super::build::{Rows, ask};
use super::{Answer, Client};
use crate::BoxError;
use crate::clock::{Work, now};
use crate::lanes::Cpu;

async fn by_hand((): (), cpu: Cpu, _: Work) -> Result<Answer, BoxError> {
    Ok(cpu.io().spawn(async { now() }).await?.into())
}

pub(super) fn client() -> Client {
    let make = |_| async { Ok(()) };
    Rows::new("nothing", None, make, |()| {
        ask((), |()| async { Ok(now()) })
    })
    .always_warm()
    .does_not_reconnect()
    // There is nothing that could be used plainly.
    .on_two(by_hand, by_hand)
    .recommended("spawn_io", |(), _| async {
        Ok(twolane::spawn_io(async { now() }).await?)
    })
    .done()
}

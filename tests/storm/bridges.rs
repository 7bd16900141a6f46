//! Bridges between the lanes, both ways.

use std::sync::Arc;

use futures::StreamExt;
use twolane::Handle;
use twolane::io::Bridged;

use crate::dice::Dice;
use crate::surroundings::{Done, Item, Round, items_taken, paused, wait_a_little};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    id: u64,
    from_cpu: bool,
    inputs: u64,
    limit: usize,
    pending_each: u64,
    panics_at: Option<u64>,
    take: usize,
}

pub(crate) struct Started {
    plan: Plan,
    done: Done,
    items: Bridged<Item>,
}

impl Plan {
    pub(crate) fn draw(dice: &mut Dice, id: u64) -> Self {
        let inputs = dice.below(100);
        Self {
            id,
            from_cpu: dice.once_in(2),
            inputs,
            limit: dice.one_of(&[0, 1, 8, 1_000]),
            pending_each: 2 + dice.below(8),
            panics_at: dice.once_in(4).then(|| dice.below(inputs + 20)),
            take: items_taken(dice),
        }
    }

    pub(crate) fn start(self, round: &Arc<Round>, (cpu, limited): (Handle, bool)) -> Started {
        let inputs = round.live.inputs(self.inputs, self.id, self.panics_at);
        let source = paused(inputs, self.pending_each);
        let size = |item: &Item| item.value as usize % 4;
        let items = match self.from_cpu {
            true => cpu.stream_from_cpu(source, self.limit, size),
            false => cpu.stream_from_io(source, self.limit, size),
        };
        let done = Done {
            needs_permit: self.from_cpu && limited,
            ..Done::panics(self.id)
        };
        Started {
            plan: self,
            done,
            items,
        }
    }
}

impl Started {
    pub(crate) async fn read(mut self, round: Arc<Round>, mut dice: Dice) {
        let plan = &self.plan;
        let panics_at = plan.panics_at.filter(|at| *at < plan.inputs);
        for expected in 0.. {
            if expected == plan.take as u64 {
                return;
            }
            match self.items.next().await {
                Some(Ok(item)) => assert_eq!(item.value, expected, "{plan:?}"),
                Some(Err(error)) => {
                    if error.is_panic() {
                        assert_eq!(Some(expected), panics_at, "{plan:?}");
                    }
                    if error.is_queue_full() {
                        assert_eq!(expected, 0, "{plan:?}");
                    }
                    round.check_bridge(error, self.done);
                    assert!(self.items.next().await.is_none());
                    return;
                }
                None => {
                    assert_eq!((expected, panics_at), (plan.inputs, None), "{plan:?}");
                    return;
                }
            }
            wait_a_little(&mut dice).await;
        }
    }
}

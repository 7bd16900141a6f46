//! How the streams are read, and what a plain loop would have read.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use futures::StreamExt;

use crate::dice::Dice;
use crate::streams::{Failure, Source, Started};
use crate::surroundings::{Done, Round, wait_a_little};

impl Started {
    /// Reads the stream as far as its plan says, and holds it against a plain loop.
    pub(crate) async fn read(self, round: Arc<Round>, mut dice: Dice) {
        let Self {
            plan,
            mut outputs,
            inputs: mut to_send,
            taken,
        } = self;
        let mut found = Vec::new();
        let mut sent = 0;
        let mut is_whole = false;
        let mut failed = None;
        while found.len() < plan.take {
            if let Some(inputs) = &to_send {
                if sent == plan.inputs {
                    to_send = None;
                } else if inputs.send(sent).is_ok() {
                    sent += 1;
                }
            }
            taken.store(plan.taken(found.len() + 1), SeqCst);
            match outputs.next().await {
                None => {
                    is_whole = true;
                    break;
                }
                Some(Ok(item)) => found.push(item.value),
                Some(Err(error)) => {
                    // The drop of the stream cancels what is behind an error of a stage.
                    if matches!(error, Failure::Join(_)) {
                        assert!(
                            outputs.next().await.is_none(),
                            "the error was not the last item"
                        );
                    }
                    failed = Some(error);
                    break;
                }
            }
            if found.len() % plan.pause_each == 0 {
                wait_a_little(&mut dice).await;
            }
        }
        let (mut expected, ends_well) = plan.expected();
        match failed {
            Some(Failure::Planned(at)) => {
                assert_eq!(Some(at), plan.error_at());
                assert!(!plan.ordered || found == expected, "{plan:?}: {found:?}");
            }
            Some(Failure::Join(error)) => {
                let is_panic = error.is_panic();
                round.check(error, Done::panics(plan.id));
                let source_ends = matches!(plan.source, Source::Bridge | Source::OfOnIo);
                if is_panic && plan.ordered && !source_ends {
                    assert_eq!(found, expected, "{plan:?}");
                }
            }
            None if is_whole => assert!(ends_well, "{plan:?} ended without its error"),
            None => {}
        }
        if !plan.ordered {
            found.sort_unstable();
            expected = (0..plan.inputs).flat_map(|i| plan.outputs_of(i)).collect();
            let before = found.len();
            found.dedup();
            assert_eq!(found.len(), before, "{plan:?}: an output came twice");
            let all = |n: &u64| expected.binary_search(n).is_ok();
            assert!(found.iter().all(all), "{plan:?}: {found:?}");
        } else {
            assert!(expected.starts_with(&found), "{plan:?}: {found:?}");
        }
        if is_whole {
            assert_eq!(found, expected, "{plan:?}");
        }
    }
}

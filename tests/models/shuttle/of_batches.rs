//! A stream's worker, the ticker and the control thread: the code of `stream/batch.rs`.

use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::check;
use crate::stream::batch::Batch;
use crate::stream::shared::{Message, Piece};
use crate::sync::{Handle, adapters};

fn piece(input: u64) -> Piece<u64> {
    Piece {
        first: input,
        inputs: 1,
        outputs: vec![input],
    }
}

/// Has a ticker and a control thread run beside `worker`, and a reader, which tells `worker` what
/// it has. Returns all that the reader got.
fn beside_a_ticker(
    worker: impl FnOnce(&Arc<Batch<u64>>, &UnboundedSender<Message<u64>>, &Receiver<u64>),
) -> Vec<u64> {
    let (soon, calls) = channel::<Box<dyn FnOnce() + Send>>();
    let (messages, received) = unbounded_channel();
    let (tell, told) = channel();
    let batch = Batch::new(&messages, Handle(soon));
    let is_over = Arc::new(AtomicBool::new(false));
    let ticker = {
        let is_over = is_over.clone();
        thread::spawn(move || {
            while !is_over.load(SeqCst) {
                adapters::tick();
                thread::yield_now();
            }
            // Once more, for batches that are closed: they keep the control thread's channel.
            adapters::tick();
        })
    };
    let control = thread::spawn(move || calls.into_iter().for_each(|call| call()));
    let reader = thread::spawn(move || read(received, &tell));
    worker(&batch, &messages, &told);
    drop((batch, messages));
    is_over.store(true, SeqCst);
    ticker.join().unwrap();
    control.join().unwrap();
    reader.join().unwrap()
}

fn read(mut received: UnboundedReceiver<Message<u64>>, tell: &Sender<u64>) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(Message::Pieces(pieces)) = block_on(received.recv()) {
        for piece in pieces {
            assert_eq!(piece.outputs.len(), piece.inputs);
            let inputs: Vec<_> = (piece.first..piece.end()).collect();
            assert_eq!(piece.outputs, inputs, "in their order");
            for output in piece.outputs {
                all.push(output);
                let _ = tell.send(output);
            }
        }
    }
    all
}

#[test]
fn each_output_is_sent_once() {
    check(|| {
        let mut all = beside_a_ticker(|batch, messages, _| {
            for first in [0, 2] {
                batch.open();
                batch.put(&mut piece(first), 2);
                batch.put(&mut piece(first + 1), 1);
                let rest = batch.close();
                assert!(messages.send(Message::Pieces(rest)).is_ok());
            }
        });
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    });
}

/// The second input of each batch goes on until the reader has the output of the first: without a
/// ticker that would be for ever, which shuttle reports.
#[test]
fn what_is_put_before_an_input_that_does_not_end_is_sent() {
    check(|| {
        let all = beside_a_ticker(|batch, _, told| {
            for input in 0..2 {
                batch.open();
                batch.put(&mut piece(input), 2);
                assert_eq!(told.recv(), Ok(input));
                assert!(batch.close().is_empty());
            }
        });
        assert_eq!(all, [0, 1]);
    });
}

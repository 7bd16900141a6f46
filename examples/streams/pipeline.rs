//! A pipeline of three stages.
//!
//! Replaces Go's pipeline: a goroutine for each stage, and a channel between each two. In
//! Rust that is a `tokio::spawn` for each stage, and `mpsc` channels. There each item
//! changes threads at each stage, which costs more than a small stage computes. Here one
//! job runs all stages of an item, one after another, and several jobs run at once.
//!
//! Only a stage that waits cuts the pipeline in two: see [`with_io`].

use std::f64::consts::PI;
use std::io;

use futures::{Stream, StreamExt};
use twolane::stream::Buffered;
use twolane::{CpuIteratorExt, CpuStreamExt, Handle};

use crate::Error;

/// How many items are under way.
const WINDOW: usize = 1024;
/// How many requests are under way.
pub const REQUESTS: usize = 16;

/// All three compute.
pub fn three_stages(
    cpu: &Handle,
    exponents: impl Iterator<Item = i32> + Send + 'static,
) -> Buffered<String> {
    exponents
        .on_cpu(cpu)
        .map(|n| PI.powi(n))
        .map(f64::ln)
        .map(|logarithm| format!("{logarithm:.3}"))
        .buffered(WINDOW)
}

/// The stage in the middle waits for I/O: two streams, with requests between them. They
/// run on the I/O lane, many at once, and all three stages keep the order. An error of any
/// stage is an item at its place; the reader stops at the first one.
pub fn with_io<F>(
    cpu: &Handle,
    lines: impl Stream<Item = String> + Send + 'static,
    look_up: impl Fn(u32) -> F + Send + 'static,
) -> impl Stream<Item = Result<String, Error>>
where
    F: Future<Output = io::Result<u64>> + Send + 'static,
{
    let orders = lines
        .on_cpu(cpu)
        .map(|line| parse(&line))
        .buffered(WINDOW)
        .map(|order| order?);
    // With futures' `try_buffered` an error would overtake the requests before it.
    let priced = orders
        .map(move |order: Result<Order, Error>| {
            let request = order.map(|order| (look_up(order.product), order));
            async move {
                let (price, order) = request?;
                Ok::<_, Error>((order, price.await?))
            }
        })
        .buffered(REQUESTS);
    priced
        .on_cpu(cpu)
        .map(|priced| priced.map(|(order, price)| bill(&order, price)))
        .buffered(WINDOW)
        .map(|bill| bill?)
}

pub struct Order {
    pub product: u32,
    pub count: u64,
}

/// A line is `product,count`.
fn parse(line: &str) -> Result<Order, Error> {
    let (product, count) = line.split_once(',').ok_or("a line has no comma")?;
    Ok(Order {
        product: product.parse()?,
        count: count.parse()?,
    })
}

fn bill(order: &Order, price: u64) -> String {
    format!(
        "{} of {}: {}",
        order.count,
        order.product,
        order.count * price
    )
}

//! How fast lapin itself gets messages into a queue: one channel, batches, a barrier after each, nothing else.
//! The rival of `benchmarks/relay.rb`; it prints messages per second.
//!
//! `bare_pipeline URL QUEUE COUNT BATCH BODY_BYTES`

use futures_util::future::join_all;
use lapin::options::BasicPublishOptions;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use std::time::Instant;

fn properties(id: usize) -> BasicProperties {
    let mut headers = FieldTable::default();
    for name in ["x-acemq-id", "x-acemq-type", "x-acemq-correlation", "x-acemq-origin"] {
        headers.insert(name.into(), AMQPValue::LongString(LongString::from(format!("{name}-{id:036}"))));
    }
    for name in ["x-acemq-version", "x-acemq-attempt", "x-acemq-first-seen"] {
        headers.insert(name.into(), AMQPValue::LongLongInt(1));
    }
    BasicProperties::default()
        .with_content_type(ShortString::from("application/json"))
        .with_headers(headers)
        .with_delivery_mode(2)
        .with_priority(0)
        .with_message_id(format!("{id:036}").into())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
#[allow(clippy::print_stdout, reason = "a program")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, queue, count, batch, bytes] = arguments.as_slice() else {
        return Err("usage: bare_pipeline URL QUEUE COUNT BATCH BODY_BYTES".into());
    };
    let (count, batch, bytes): (usize, usize, usize) = (count.parse()?, batch.parse()?, bytes.parse()?);
    let body = vec![b'x'; bytes];
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(Default::default()).await?;

    let start = Instant::now();
    for first in (0..count).step_by(batch) {
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let sent = (first..count.min(first + batch)).map(|id| {
            channel.basic_publish(ShortString::default(), queue.as_str().into(), options, &body, properties(id))
        });
        for confirm in join_all(sent).await {
            confirm?.await?;
        }
    }
    println!("{:.0}", count as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

//! Declarations and questions, each on a channel of its own: a refusal closes the channel it was made on.

use crate::error::{Error, Kind, Result};
use crate::headers::{Headers, short, table};
use crate::line::Line;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::ShortString;
use lapin::{Channel, ErrorKind, ExchangeKind};
use std::time::Duration;
use tokio::time::timeout;

/// A queue or an exchange as it is declared.
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    pub name: String,
    /// Of an exchange.
    pub kind: String,
    pub durable: bool,
    pub auto_delete: bool,
    pub exclusive: bool,
    pub arguments: Headers,
}

/// One operation on the broker's topology.
#[derive(Clone, Debug)]
pub enum Operation {
    DeclareExchange(Declaration),
    DeclareQueue(Declaration),
    Bind {
        queue: String,
        exchange: String,
        routing_key: String,
    },
    /// How many messages are ready in a queue.
    Count(String),
    /// Whether a queue exists.
    QueueExists(String),
    DeleteQueue(String),
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Name(String),
    Count(u64),
    Yes,
    No,
}

/// Does one operation within `limit`.
///
/// # Errors
/// [`Kind::Broker`] with the broker's own words when it refuses, [`Kind::Connect`] or [`Kind::Lost`] when it cannot be asked.
pub async fn perform(line: &Line, operation: Operation, limit: Duration) -> Result<Answer> {
    let link = line.link().await?;
    let what = describe(&operation);
    let work = async {
        let channel = link.channel().await.map_err(|e| translate(&e, &what))?;
        let answer = run(&channel, operation, &what).await;
        // A channel the broker has closed is not closed again: it is dropped.
        if channel.status().connected() {
            let _ = channel.close(200, ShortString::default()).await;
        }
        answer
    };
    match timeout(limit, work).await {
        Ok(answer) => answer,
        Err(_) => {
            let blocked = if link.blocked() { " (the broker has blocked this connection)" } else { "" };
            Err(Error::new(Kind::Lost, format!("no answer to {what} within {} s{blocked}", limit.as_secs_f64())))
        }
    }
}

async fn run(channel: &Channel, operation: Operation, what: &str) -> Result<Answer> {
    let refused = |e: lapin::Error| translate(&e, what);
    match operation {
        Operation::DeclareExchange(d) => {
            let options = ExchangeDeclareOptions {
                durable: d.durable,
                auto_delete: d.auto_delete,
                ..ExchangeDeclareOptions::default()
            };
            let kind = exchange_kind(&d.kind)?;
            channel
                .exchange_declare(short("exchange name", &d.name)?, kind, options, table(&d.arguments)?.0)
                .await
                .map_err(refused)?;
            Ok(Answer::Done)
        }
        Operation::DeclareQueue(d) => {
            let options = QueueDeclareOptions {
                durable: d.durable,
                auto_delete: d.auto_delete,
                exclusive: d.exclusive,
                ..QueueDeclareOptions::default()
            };
            let queue = channel
                .queue_declare(short("queue name", &d.name)?, options, table(&d.arguments)?.0)
                .await
                .map_err(refused)?;
            Ok(Answer::Name(queue.name().to_string()))
        }
        Operation::Bind { queue, exchange, routing_key } => {
            let (queue, exchange) = (short("queue name", &queue)?, short("exchange name", &exchange)?);
            let key = short("routing key", &routing_key)?;
            channel
                .queue_bind(queue, exchange, key, QueueBindOptions::default(), Default::default())
                .await
                .map_err(refused)?;
            Ok(Answer::Done)
        }
        Operation::Count(name) => {
            passive(channel, &name).await.map(|count| Answer::Count(count.into())).map_err(refused)
        }
        Operation::QueueExists(name) => match passive(channel, &name).await {
            Ok(_) => Ok(Answer::Yes),
            // An exclusive queue of another connection is there, but not for us.
            Err(e) if code(&e) == Some(405) => Ok(Answer::Yes),
            Err(e) if code(&e) == Some(404) => Ok(Answer::No),
            Err(e) => Err(refused(e)),
        },
        Operation::DeleteQueue(name) => {
            let count = channel
                .queue_delete(short("queue name", &name)?, QueueDeleteOptions::default())
                .await
                .map_err(refused)?;
            Ok(Answer::Count(count.into()))
        }
    }
}

/// # Errors
/// The broker's, or a 404 for a queue that is not there.
pub(crate) async fn passive(channel: &Channel, name: &str) -> lapin::Result<u32> {
    let Ok(name) = ShortString::try_new(name) else { return Ok(0) };
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(name, options, Default::default()).await.map(|queue| queue.message_count())
}

fn exchange_kind(kind: &str) -> Result<ExchangeKind> {
    Ok(match kind {
        "direct" => ExchangeKind::Direct,
        "fanout" => ExchangeKind::Fanout,
        "topic" => ExchangeKind::Topic,
        "headers" => ExchangeKind::Headers,
        other => ExchangeKind::Custom(short("exchange type", other)?.to_string()),
    })
}

fn code(error: &lapin::Error) -> Option<u16> {
    match error.kind() {
        ErrorKind::ProtocolError(e) => Some(e.get_id()),
        _ => None,
    }
}

pub(crate) fn translate(error: &lapin::Error, what: &str) -> Error {
    match error.kind() {
        ErrorKind::ProtocolError(e) => {
            Error::new(Kind::Broker, format!("the broker refused to {what}: {}", e.get_message().as_str()))
                .with_code(e.get_id())
        }
        _ => Error::new(Kind::Lost, format!("could not {what}: the connection was lost ({error})")),
    }
}

fn describe(operation: &Operation) -> String {
    match operation {
        Operation::DeclareExchange(d) => format!("declare the {} exchange {:?}", d.kind, d.name),
        Operation::DeclareQueue(d) => format!("declare the queue {:?}", d.name),
        Operation::Bind { queue, exchange, routing_key } => {
            format!("bind the queue {queue:?} to {exchange:?} for {routing_key:?}")
        }
        Operation::Count(name) => format!("count the messages of the queue {name:?}"),
        Operation::QueueExists(name) => format!("look for the queue {name:?}"),
        Operation::DeleteQueue(name) => format!("delete the queue {name:?}"),
    }
}

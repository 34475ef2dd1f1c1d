//! A message taken from a queue and not yet settled, and what a copy of it looks like on the wire.

use crate::error::{Error, Result};
use crate::headers::{self, Headers, Value, short};
use crate::message::{FRAME_MAX, Message};
use lapin::BasicProperties;
use lapin::types::{FieldTable, ShortString};

/// One delivery. Its properties are kept as they came, so that a copy carries the same.
#[derive(Clone, Debug)]
pub struct Letter {
    pub body: Vec<u8>,
    pub routing_key: String,
    pub exchange: String,
    pub redelivered: bool,
    pub tag: u64,
    /// Which channel it came by.
    pub generation: u64,
    properties: BasicProperties,
}

/// What is different about a copy, and where it goes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Empty for the default one, whose routing keys are the names of queues.
    pub exchange: String,
    pub routing_key: String,
    pub message_id: String,
    /// Set or, where the value is [`Value::Nothing`], taken away.
    pub headers: Headers,
    /// Whether it may still expire. A copy that waits, or is set aside, would be thrown away by it.
    pub keep_expiration: bool,
    pub mandatory: bool,
}

impl Letter {
    pub(crate) fn of(delivery: lapin::message::Delivery, generation: u64) -> Self {
        Self {
            body: delivery.data,
            routing_key: delivery.routing_key.to_string(),
            exchange: delivery.exchange.to_string(),
            redelivered: delivery.redelivered,
            tag: delivery.delivery_tag,
            generation,
            properties: shallow(delivery.properties),
        }
    }

    #[cfg(test)]
    pub(crate) fn sample(tag: u64, generation: u64) -> Self {
        Self {
            body: b"body".to_vec(),
            routing_key: "q".into(),
            exchange: String::new(),
            redelivered: false,
            tag,
            generation,
            properties: BasicProperties::default(),
        }
    }

    pub fn content_type(&self) -> Option<&str> {
        self.properties.content_type().as_ref().map(ShortString::as_str)
    }

    pub fn message_id(&self) -> Option<&str> {
        self.properties.message_id().as_ref().map(ShortString::as_str)
    }

    pub fn reply_to(&self) -> Option<&str> {
        self.properties.reply_to().as_ref().map(ShortString::as_str)
    }

    pub fn headers(&self) -> Headers {
        self.properties.headers().as_ref().map(headers::received).unwrap_or_default()
    }

    /// The same body and properties for another destination. Persistent, whatever the original was. Without the
    /// `user_id`: the broker takes only that of the connection, and refuses the channel for any other.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused) when the changes make it more than the wire carries.
    pub fn copy(&self, changes: Changes) -> Result<Message> {
        let id = short("message id", &changes.message_id)?;
        let table = changed(self.properties.headers().as_ref(), &changes.headers)?;
        let header_bytes = 256 + headers::wire_size(&table);
        if header_bytes > FRAME_MAX {
            return Err(Error::refused(format!(
                "the headers of the copy take {header_bytes} bytes; one AMQP frame carries {FRAME_MAX} at most"
            )));
        }
        Ok(Message {
            exchange: short("exchange name", &changes.exchange)?,
            routing_key: short("routing key", &changes.routing_key)?,
            body: self.body.clone(),
            properties: self
                .carried(changes.keep_expiration)
                .with_headers(table)
                .with_delivery_mode(2)
                .with_message_id(id.clone()),
            id,
            mandatory: changes.mandatory,
            header_bytes,
        })
    }

    /// The properties that a copy takes over.
    fn carried(&self, expiration: bool) -> BasicProperties {
        let mut to = BasicProperties::default();
        let from = &self.properties;
        if let Some(value) = from.content_type() {
            to = to.with_content_type(value.clone());
        }
        if let Some(value) = from.content_encoding() {
            to = to.with_content_encoding(value.clone());
        }
        if let Some(value) = from.priority() {
            to = to.with_priority(*value);
        }
        if let Some(value) = from.correlation_id() {
            to = to.with_correlation_id(value.clone());
        }
        if let Some(value) = from.reply_to() {
            to = to.with_reply_to(value.clone());
        }
        if let Some(value) = from.expiration().as_ref().filter(|_| expiration) {
            to = to.with_expiration(value.clone());
        }
        if let Some(value) = from.timestamp() {
            to = to.with_timestamp(*value);
        }
        if let Some(value) = from.kind() {
            to = to.with_type(value.clone());
        }
        if let Some(value) = from.app_id() {
            to = to.with_app_id(value.clone());
        }
        if let Some(value) = from.cluster_id() {
            to = to.with_cluster_id(value.clone());
        }
        to
    }
}

/// Without the headers that are nested too deep. Everything that reads them is recursive, and so is freeing them, on
/// threads with less room than the one that received them.
fn shallow(properties: BasicProperties) -> BasicProperties {
    match properties.headers() {
        Some(table) if table.inner().values().any(headers::too_deep) => {
            let mut kept = FieldTable::default();
            for (name, value) in table.inner().iter().filter(|(_, value)| !headers::too_deep(value)) {
                kept.insert(name.clone(), value.clone());
            }
            properties.with_headers(kept)
        }
        _ => properties,
    }
}

fn changed(table: Option<&FieldTable>, changes: &Headers) -> Result<FieldTable> {
    let untouched = |name: &ShortString| !changes.iter().any(|(changed, _)| changed == name.as_str());
    let kept = changes.iter().filter(|(_, value)| *value != Value::Nothing).cloned().collect();
    let (mut result, _) = headers::table(&kept)?;
    for (name, value) in table.iter().flat_map(|table| table.inner()).filter(|(name, _)| untouched(name)) {
        result.insert(name.clone(), value.clone());
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::types::{AMQPValue, FieldArray};

    fn letter(properties: BasicProperties) -> Letter {
        Letter { properties, ..Letter::sample(1, 1) }
    }

    fn changes(headers: Headers) -> Changes {
        Changes { routing_key: "q.dlq".into(), message_id: "m".into(), headers, ..Changes::default() }
    }

    fn table(pairs: Vec<(&str, AMQPValue)>) -> FieldTable {
        let mut table = FieldTable::default();
        for (name, value) in pairs {
            table.insert(name.into(), value);
        }
        table
    }

    #[test]
    fn a_copy_keeps_every_property_and_the_types_of_its_headers() {
        let headers = table(vec![
            ("narrow", AMQPValue::ShortInt(7)),
            ("bytes", AMQPValue::ByteArray(vec![0, 255].into())),
            ("x-acemq-attempt", AMQPValue::LongInt(1)),
        ]);
        let original = BasicProperties::default()
            .with_content_type("text/plain".into())
            .with_content_encoding("gzip".into())
            .with_priority(4)
            .with_correlation_id("c".into())
            .with_reply_to("r".into())
            .with_timestamp(12)
            .with_type("t".into())
            .with_app_id("a".into())
            .with_headers(headers);
        let copy = letter(original.clone())
            .copy(changes(vec![("x-acemq-attempt".into(), Value::Int(2)), ("x-acemq-error".into(), Value::Nothing)]))
            .unwrap();
        let expected = table(vec![
            ("narrow", AMQPValue::ShortInt(7)),
            ("bytes", AMQPValue::ByteArray(vec![0, 255].into())),
            ("x-acemq-attempt", AMQPValue::LongLongInt(2)),
        ]);
        assert_eq!(copy.properties, original.with_headers(expected).with_message_id("m".into()).with_delivery_mode(2));
        assert_eq!(
            (copy.body.as_slice(), copy.routing_key.as_str(), copy.exchange.as_str()),
            (&b"body"[..], "q.dlq", "")
        );
    }

    #[test]
    fn expiration_is_kept_on_request_and_user_id_never() {
        let original = BasicProperties::default().with_expiration("500".into()).with_user_id("guest".into());
        let waits = letter(original.clone()).copy(changes(vec![])).unwrap();
        assert_eq!((waits.properties.expiration(), waits.properties.user_id()), (&None, &None));
        let goes_on = letter(original).copy(Changes { keep_expiration: true, ..changes(vec![]) }).unwrap();
        assert_eq!(goes_on.properties.expiration().as_ref().map(ShortString::as_str), Some("500"));
    }

    #[test]
    fn a_header_nested_beyond_reason_is_left_out() {
        let mut deep = AMQPValue::Boolean(true);
        for _ in 0..200 {
            deep = AMQPValue::FieldArray(FieldArray::from(vec![deep]));
        }
        let headers = table(vec![("deep", deep), ("flat", AMQPValue::Boolean(true))]);
        let kept = shallow(BasicProperties::default().with_headers(headers));
        assert_eq!(kept.headers(), &Some(table(vec![("flat", AMQPValue::Boolean(true))])));
    }

    #[test]
    fn a_copy_that_outgrows_a_frame_is_refused() {
        let headers = table(vec![("big", AMQPValue::LongString("x".repeat(131_000).into()))]);
        let error = letter(BasicProperties::default().with_headers(headers)).copy(changes(vec![])).unwrap_err();
        assert!(error.message().contains("one AMQP frame"), "{error}");
    }
}

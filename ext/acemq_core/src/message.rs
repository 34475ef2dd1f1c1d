//! One message as it goes on the wire. Building one is the check that the wire can carry it.

use crate::error::{Error, Result};
use crate::headers::{self, Headers, short};
use lapin::BasicProperties;
use lapin::types::ShortString;
use uuid::Uuid;

/// RabbitMQ's own limit for one frame; a content header cannot be split over several.
pub const FRAME_MAX: usize = 131_072;

/// RabbitMQ's own limit for a body (`max_message_size`).
pub const BODY_MAX: usize = 128 * 1024 * 1024;

/// What a caller says about a message.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub exchange: String,
    pub routing_key: String,
    pub body: Vec<u8>,
    pub content_type: Option<String>,
    pub message_id: Option<String>,
    pub headers: Headers,
    pub persistent: bool,
    pub reply_to: Option<String>,
    pub mandatory: bool,
}

/// A message that the wire can carry.
#[derive(Clone, Debug)]
pub struct Message {
    pub(crate) exchange: ShortString,
    pub(crate) routing_key: ShortString,
    pub(crate) body: Vec<u8>,
    pub(crate) properties: BasicProperties,
    pub(crate) id: ShortString,
    pub(crate) mandatory: bool,
    pub(crate) header_bytes: usize,
}

impl Message {
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused) naming the field that cannot be carried, and its size.
    pub fn build(draft: Draft) -> Result<Self> {
        let id = draft.message_id.unwrap_or_else(|| Uuid::now_v7().to_string());
        let id = short("message id", &id)?;
        let (table, table_bytes) = headers::table(&draft.headers)?;
        let content_type = short("content type", draft.content_type.as_deref().unwrap_or(""))?;
        let reply_to = draft.reply_to.filter(|r| !r.is_empty()).map(|r| short("reply_to", &r)).transpose()?;
        // Frame overhead 8, class and weight 4, body size 8, flags 2; then the properties: delivery mode and priority 2.
        let header_bytes = 24
            + table_bytes
            + 1
            + content_type.as_str().len()
            + 1
            + id.as_str().len()
            + reply_to.as_ref().map_or(0, |r| 1 + r.as_str().len());
        if header_bytes > FRAME_MAX {
            return Err(Error::refused(format!(
                "the headers and properties take {header_bytes} bytes; one AMQP frame carries {FRAME_MAX} at most"
            )));
        }
        if draft.body.len() > BODY_MAX {
            return Err(Error::refused(format!(
                "the body is {} bytes long; RabbitMQ takes {BODY_MAX} at most",
                draft.body.len()
            )));
        }

        let mut properties = BasicProperties::default()
            .with_headers(table)
            .with_delivery_mode(if draft.persistent { 2 } else { 1 })
            .with_priority(0)
            .with_message_id(id.clone());
        if !content_type.as_str().is_empty() {
            properties = properties.with_content_type(content_type);
        }
        if let Some(reply_to) = reply_to {
            properties = properties.with_reply_to(reply_to);
        }

        Ok(Self {
            exchange: short("exchange name", &draft.exchange)?,
            routing_key: short("routing key", &draft.routing_key)?,
            body: draft.body,
            properties,
            id,
            mandatory: draft.mandatory,
            header_bytes,
        })
    }

    /// The id the broker knows it by: the caller's, or one of our own.
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    pub(crate) fn destination(&self) -> Destination {
        Destination(self.exchange.to_string(), self.routing_key.to_string())
    }

    /// What the pipeline counts against `in_flight_bytes`.
    pub(crate) fn size(&self) -> usize {
        self.body.len() + self.header_bytes
    }
}

/// An exchange and a routing key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination(pub(crate) String, pub(crate) String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::Value;

    fn draft() -> Draft {
        Draft { routing_key: "k".into(), persistent: true, ..Draft::default() }
    }

    #[test]
    fn names_are_measured_in_bytes() {
        let key = "é".repeat(128);
        let error = Message::build(Draft { routing_key: key, ..draft() }).unwrap_err();
        assert!(error.message().contains("routing key is 256 bytes"), "{error}");
    }

    #[test]
    fn a_header_that_fills_a_frame_is_refused() {
        let build =
            |bytes| Message::build(Draft { headers: vec![("h".into(), Value::Text(vec![b'x'; bytes]))], ..draft() });
        assert!(build(130_000).is_ok());
        assert!(build(131_072).unwrap_err().message().contains("one AMQP frame"));
    }

    #[test]
    fn an_id_is_made_where_none_is_given() {
        assert_eq!(Message::build(draft()).unwrap().id().len(), 36);
    }
}

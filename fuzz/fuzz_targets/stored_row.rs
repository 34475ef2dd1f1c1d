//! A row of the table, as anybody may have written it: it becomes a message that the wire can carry, or a refusal of this
//! one record.
#![no_main]

use acemq_core::body;
use acemq_core::message::{BODY_MAX, Draft, FRAME_MAX, Message};
use acemq_core::{Error, Scope, headers};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Row<'a> {
    id: &'a str,
    exchange: &'a str,
    routing_key: &'a str,
    body: &'a [u8],
    encoding: Encoding<'a>,
    content_type: Option<&'a str>,
    headers: &'a [u8],
    reply_to: Option<&'a str>,
    mandatory: bool,
}

#[derive(Arbitrary, Debug)]
enum Encoding<'a> {
    Text,
    Base64,
    Other(&'a str),
}

impl Encoding<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Text => body::TEXT,
            Self::Base64 => body::BASE64,
            Self::Other(name) => name,
        }
    }
}

fuzz_target!(|row: Row| {
    comes_back(row.body);
    let Ok(decoded) = body::decode(row.body, row.encoding.name()) else { return };
    if let (Encoding::Base64, (text, body::BASE64)) = (&row.encoding, body::encode(&decoded)) {
        assert_eq!(text.as_bytes(), row.body, "one body, two texts");
    }
    match build(&row, decoded.into_owned()) {
        Ok(message) => assert!(row.id.is_empty() || message.id() == row.id),
        Err(e) => {
            assert_eq!(e.scope(), Scope::Record, "{e}");
            assert!(!e.unknown(), "nothing was sent: {e}");
            assert!(e.message().len() < 1_000, "a text for people: {e}");
        }
    }
});

/// What is written by us is read as it was.
fn comes_back(bytes: &[u8]) {
    let (text, encoding) = body::encode(bytes);
    assert!(!text.contains('\0'));
    assert_eq!(body::decode(text.as_bytes(), encoding).unwrap(), bytes);
}

fn build(row: &Row, body: Vec<u8>) -> Result<Message, Error> {
    assert!(body.len() <= BODY_MAX && row.headers.len() <= FRAME_MAX);
    Message::build(Draft {
        exchange: row.exchange.into(),
        routing_key: row.routing_key.into(),
        body,
        content_type: row.content_type.map(Into::into),
        message_id: (!row.id.is_empty()).then(|| row.id.into()),
        headers: headers::from_json(row.headers)?,
        persistent: true,
        reply_to: row.reply_to.map(Into::into),
        mandatory: row.mandatory,
    })
}

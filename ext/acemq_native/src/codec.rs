//! The small pure functions: ids, the body column, and the check that a message can travel.

use crate::convert::{bytes, message};
use crate::errors::raise;
use acemq_core::address::Address;
use acemq_core::{Error as CoreError, body};
use magnus::{Error, Object, RArray, RModule, RString, Ruby, encoding::EncodingCapable, function};
use uuid::Uuid;

/// `uuid_v7 -> String`
fn uuid_v7() -> String {
    Uuid::now_v7().to_string()
}

/// `encode_body(bytes) -> [column text, body_encoding]`
fn encode_body(ruby: &Ruby, raw: RString) -> (RString, &'static str) {
    let raw = bytes(raw);
    let (text, encoding) = body::encode(&raw);
    (ruby.str_new(&text), encoding)
}

/// `decode_body(column text, body_encoding) -> bytes`; ArgumentError when the column makes no sense.
fn decode_body(ruby: &Ruby, stored: RString, encoding: String) -> Result<RString, Error> {
    let stored = bytes(stored);
    let decoded = body::decode(&stored, &encoding).map_err(|text| raise(ruby, &CoreError::refused(text)))?;
    let string = ruby.str_from_slice(&decoded);
    if encoding == body::TEXT {
        string.enc_associate(ruby.utf8_encindex())?;
    }
    Ok(string)
}

/// `check_message([the nine parts]) -> nil`; ArgumentError when the wire cannot carry it.
fn check_message(ruby: &Ruby, parts: RArray) -> Result<(), Error> {
    message(ruby, parts)?.map(drop).map_err(|refusal| raise(ruby, &refusal))
}

/// `check_url(url) -> String` without the password; ConfigurationError when it is wrong.
fn check_url(ruby: &Ruby, url: String) -> Result<String, Error> {
    Address::parse(&url).map(|address| format!("{address:?}")).map_err(|e| raise(ruby, &e))
}

pub(crate) fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("uuid_v7", function!(uuid_v7, 0))?;
    native.define_singleton_method("encode_body", function!(encode_body, 1))?;
    native.define_singleton_method("decode_body", function!(decode_body, 2))?;
    native.define_singleton_method("check_message", function!(check_message, 1))?;
    native.define_singleton_method("check_url", function!(check_url, 1))?;
    Ok(())
}

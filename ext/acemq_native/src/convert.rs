//! Ruby values to the core's, and back. Everything is copied: nothing of Ruby is held across a wait.

use acemq_core::Error as CoreError;
use acemq_core::headers::{self, Headers, Value as Header};
use acemq_core::message::{Draft, Message};
use magnus::r_hash::ForEach;
use magnus::value::ReprValue;
use magnus::{Error, Float, Integer, IntoValue, RArray, RHash, RString, Ruby, Symbol, Time, TryConvert, Value};

type Refusal = CoreError;

/// A message from `[exchange, routing_key, body, content_type, message_id, headers, persistent, reply_to, mandatory]`.
/// What the wire cannot carry is a refusal of this message, not an error of the call.
pub(crate) fn message(ruby: &Ruby, parts: RArray) -> Result<Result<Message, Refusal>, Error> {
    let draft = (|| {
        Ok(Draft {
            exchange: text(parts.entry(0)?, "exchange name")?,
            routing_key: text(parts.entry(1)?, "routing key")?,
            body: body(ruby, parts.entry(2)?)?,
            content_type: optional(parts.entry(3)?, "content type")?,
            message_id: optional(parts.entry(4)?, "message id")?,
            headers: header_hash(ruby, parts.entry(5)?)?,
            persistent: parts.entry(6)?,
            reply_to: optional(parts.entry(7)?, "reply_to")?,
            mandatory: parts.entry(8)?,
        })
    })();
    match draft {
        Ok(draft) => Ok(Message::build(draft)),
        Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
        Err(Failure::Raised(error)) => Err(error),
    }
}

/// Either the message is at fault or the call is.
pub(crate) enum Failure {
    Refused(Refusal),
    Raised(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Raised(error)
    }
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Self {
        Self::Refused(error)
    }
}

fn refused<T>(text: String) -> Result<T, Failure> {
    Err(Failure::Refused(CoreError::refused(text)))
}

pub(crate) fn bytes(string: RString) -> Vec<u8> {
    // SAFETY: the slice is copied before anything of Ruby can run.
    unsafe { string.as_slice() }.to_vec()
}

fn body(_: &Ruby, value: Value) -> Result<Vec<u8>, Failure> {
    match RString::from_value(value) {
        Some(string) => Ok(bytes(string)),
        None => refused(format!("the body is a {}, not a String of encoded bytes", class_of(value))),
    }
}

fn class_of(value: Value) -> String {
    value.class().to_string()
}

fn text(value: Value, what: &str) -> Result<String, Failure> {
    optional(value, what).map(Option::unwrap_or_default)
}

fn optional(value: Value, what: &str) -> Result<Option<String>, Failure> {
    if value.is_nil() {
        return Ok(None);
    }
    let raw = match (RString::from_value(value), Symbol::from_value(value)) {
        (Some(string), _) => bytes(string),
        (_, Some(symbol)) => symbol.name()?.into_owned().into_bytes(),
        _ => return refused(format!("the {what} is a {}, not a String", class_of(value))),
    };
    match String::from_utf8(raw) {
        Ok(text) => Ok(Some(text)),
        Err(_) => refused(format!("the {what} is not UTF-8")),
    }
}

/// Headers from a Hash, or from the JSON text of a table row.
pub(crate) fn header_hash(ruby: &Ruby, value: Value) -> Result<Headers, Failure> {
    if value.is_nil() {
        return Ok(Vec::new());
    }
    if let Some(json) = RString::from_value(value) {
        return Ok(headers::from_json(&bytes(json))?);
    }
    match RHash::from_value(value) {
        Some(hash) => pairs(ruby, hash, 0),
        None => refused(format!("the headers are a {}, not a Hash", class_of(value))),
    }
}

/// Recursion in here ends before the core's own limit on depth would tell the reader what is wrong.
const MAX_DEPTH: usize = 100;

fn pairs(ruby: &Ruby, hash: RHash, depth: usize) -> Result<Headers, Failure> {
    let mut list = Vec::with_capacity(hash.len());
    let mut failure = None;
    hash.foreach(|name: Value, value: Value| {
        match header_pair(ruby, name, value, depth) {
            Ok(pair) => list.push(pair),
            Err(e) => {
                failure = Some(e);
                return Ok(ForEach::Stop);
            }
        }
        Ok(ForEach::Continue)
    })?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(list),
    }
}

fn header_pair(ruby: &Ruby, name: Value, value: Value, depth: usize) -> Result<(String, Header), Failure> {
    let name = text(name, "header name")?;
    let value = header(ruby, &name, value, depth + 1)?;
    Ok((name, value))
}

fn header(ruby: &Ruby, name: &str, value: Value, depth: usize) -> Result<Header, Failure> {
    if depth > MAX_DEPTH {
        return refused(format!("the header {name:?} is nested too deep"));
    }
    if value.is_nil() {
        return Ok(Header::Nothing);
    }
    if value.is_kind_of(ruby.class_true_class()) || value.is_kind_of(ruby.class_false_class()) {
        return Ok(Header::Bool(value.to_bool()));
    }
    if let Some(string) = RString::from_value(value) {
        return Ok(Header::Text(bytes(string)));
    }
    if let Some(symbol) = Symbol::from_value(value) {
        return Ok(Header::Text(symbol.name()?.into_owned().into_bytes()));
    }
    if let Some(integer) = Integer::from_value(value) {
        return match integer.to_i64() {
            Ok(i) => Ok(Header::Int(i)),
            Err(_) => refused(format!("the header {name:?} is beyond a 64-bit integer")),
        };
    }
    if let Some(float) = Float::from_value(value) {
        return Ok(Header::Float(float.to_f64()));
    }
    if let Some(array) = RArray::from_value(value) {
        let items: Result<Vec<Header>, Failure> =
            (0..array.len()).map(|i| header(ruby, name, array.entry(i as isize)?, depth + 1)).collect();
        return items.map(Header::List);
    }
    if let Some(hash) = RHash::from_value(value) {
        return pairs(ruby, hash, depth).map(Header::Table);
    }
    if let Some(time) = Time::from_value(value) {
        let seconds: i64 = time.funcall("to_i", ())?;
        return match u64::try_from(seconds) {
            Ok(seconds) => Ok(Header::Time(seconds)),
            Err(_) => refused(format!("the header {name:?} is a time before 1970")),
        };
    }
    match class_of(value).as_str() {
        "BigDecimal" => decimal(name, value),
        "DateTime" => header(ruby, name, value.funcall("to_time", ())?, depth),
        other => {
            refused(format!("the header {name:?} is a {other}, which the wire cannot carry; make it a String first"))
        }
    }
}

/// AMQP's decimal: an unsigned 32-bit number and how many of its digits stand behind the point.
fn decimal(name: &str, value: Value) -> Result<Header, Failure> {
    let text: String = value.funcall("to_s", ("F",))?;
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    match (format!("{whole}{fraction}").parse(), u8::try_from(fraction.len())) {
        (Ok(mantissa), Ok(scale)) => Ok(Header::Decimal(scale, mantissa)),
        _ => refused(format!(
            "the header {name:?} is {text}; AMQP's decimal has no sign and its digits end at 4294967295"
        )),
    }
}

pub(crate) fn hash_of(ruby: &Ruby, headers: Headers) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (name, value) in headers {
        hash.aset(name, ruby_header(ruby, value)?)?;
    }
    Ok(hash)
}

fn ruby_header(ruby: &Ruby, value: Header) -> Result<Value, Error> {
    Ok(match value {
        Header::Nothing => ruby.qnil().as_value(),
        Header::Bool(b) => b.into_value_with(ruby),
        Header::Int(i) => i.into_value_with(ruby),
        Header::Float(f) => f.into_value_with(ruby),
        Header::Decimal(scale, mantissa) => received_decimal(ruby, scale, mantissa)?,
        Header::Time(seconds) => ruby.class_time().funcall("at", (seconds,))?,
        Header::Text(text) => match String::from_utf8(text) {
            Ok(text) => text.into_value_with(ruby),
            Err(e) => ruby.str_from_slice(e.as_bytes()).as_value(),
        },
        Header::List(list) => {
            let array = ruby.ary_new_capa(list.len());
            for item in list {
                array.push(ruby_header(ruby, item)?)?;
            }
            array.as_value()
        }
        Header::Table(table) => hash_of(ruby, table)?.as_value(),
    })
}

/// BigDecimal is no longer part of every Ruby; a Rational is as exact.
fn received_decimal(ruby: &Ruby, scale: u8, mantissa: u32) -> Result<Value, Error> {
    let kernel = ruby.module_kernel();
    if kernel.respond_to("BigDecimal", true)? {
        kernel.funcall("BigDecimal", (format!("{mantissa}e-{scale}"),))
    } else {
        kernel.funcall("Rational", (format!("{mantissa}e-{scale}"),))
    }
}

/// A required entry of an options Hash with Symbol keys.
pub(crate) fn option<T: TryConvert>(ruby: &Ruby, options: RHash, name: &str) -> Result<T, Error> {
    options.fetch::<_, Value>(ruby.to_symbol(name)).and_then(T::try_convert)
}

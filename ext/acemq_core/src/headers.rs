//! Message headers: what may stand in an AMQP field table, checked before it goes anywhere.
//!
//! The broker drops the whole connection for a NaN, a short string in a table or a header frame larger than
//! its limit, so all of that is refused here, as the record's own fault.

use crate::error::{Error, Result};
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable, LongString, ShortString};

/// Deeper than this a table is refused: receivers walk it recursively, and some run out of stack.
const MAX_DEPTH: usize = 64;

/// One header value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Nothing,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// `mantissa / 10^scale`.
    Decimal(u8, u32),
    /// Seconds since the epoch.
    Time(u64),
    Text(Vec<u8>),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

/// Headers in the order they were given.
pub type Headers = Vec<(String, Value)>;

/// Headers from the JSON object of a table row.
pub fn from_json(text: &[u8]) -> Result<Headers> {
    match serde_json::from_slice(text) {
        Ok(serde_json::Value::Object(map)) => map.into_iter().map(|(k, v)| Ok((k, json_value(v)?))).collect(),
        Ok(_) => Err(Error::refused("the stored headers are not a JSON object")),
        Err(e) => Err(Error::refused(format!("the stored headers are not JSON ({e})"))),
    }
}

fn json_value(value: serde_json::Value) -> Result<Value> {
    use serde_json::Value as Json;
    Ok(match value {
        Json::Null => Value::Nothing,
        Json::Bool(b) => Value::Bool(b),
        Json::String(s) => Value::Text(s.into_bytes()),
        Json::Array(list) => Value::List(list.into_iter().map(json_value).collect::<Result<_>>()?),
        Json::Object(map) => {
            Value::Table(map.into_iter().map(|(k, v)| Ok((k, json_value(v)?))).collect::<Result<_>>()?)
        }
        Json::Number(n) => match (n.as_i64(), n.is_u64(), n.as_f64()) {
            (Some(i), _, _) => Value::Int(i),
            (None, false, Some(f)) => Value::Float(f),
            _ => return Err(Error::refused(format!("the header value {n} is beyond a 64-bit integer"))),
        },
    })
}

/// The field table of some headers, and how many bytes it takes on the wire.
pub fn table(headers: &Headers) -> Result<(FieldTable, usize)> {
    copies(headers)?;
    let table = fields(headers, 0)?;
    let size = wire_size(&table);
    Ok((table, size))
}

/// The broker reads CC and BCC as further routing keys, and closes the channel if they are anything but lists of text.
fn copies(headers: &Headers) -> Result<()> {
    for (name, value) in headers.iter().filter(|(name, _)| name == "CC" || name == "BCC") {
        let keys = match value {
            Value::List(keys) => keys.iter().all(|key| matches!(key, Value::Text(_))),
            _ => false,
        };
        if !keys {
            return Err(Error::refused(format!("the header {name:?} must be a list of routing keys (strings)")));
        }
    }
    Ok(())
}

fn fields(headers: &[(String, Value)], depth: usize) -> Result<FieldTable> {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        let value = field(name, value, depth + 1)?;
        table.insert(short("header name", name)?, value);
    }
    Ok(table)
}

fn field(name: &str, value: &Value, depth: usize) -> Result<AMQPValue> {
    if depth > MAX_DEPTH {
        return Err(Error::refused(format!("the header {name:?} is nested more than {MAX_DEPTH} deep")));
    }
    Ok(match value {
        Value::Nothing => AMQPValue::Void,
        Value::Bool(b) => AMQPValue::Boolean(*b),
        Value::Int(i) => AMQPValue::LongLongInt(*i),
        Value::Float(f) if f.is_finite() => AMQPValue::Double(*f),
        Value::Float(f) => {
            return Err(Error::refused(format!("the header {name:?} is {f}, which the wire cannot carry")));
        }
        Value::Decimal(scale, mantissa) => AMQPValue::DecimalValue(DecimalValue { scale: *scale, value: *mantissa }),
        Value::Time(seconds) => AMQPValue::Timestamp(*seconds),
        Value::Text(bytes) => AMQPValue::LongString(LongString::from(bytes.clone())),
        Value::List(list) => {
            let mut array = FieldArray::default();
            for item in list {
                array.push(field(name, item, depth + 1)?);
            }
            AMQPValue::FieldArray(array)
        }
        Value::Table(pairs) => AMQPValue::FieldTable(fields(pairs, depth)?),
    })
}

/// A short string, or a refusal that names it and its size.
pub(crate) fn short(what: &str, text: &str) -> Result<ShortString> {
    ShortString::try_new(text).map_err(|_| {
        Error::refused(format!("the {what} is {} bytes long; AMQP carries 255 at most: {}...", text.len(), head(text)))
    })
}

fn head(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Whether a received value is nested deeper than we send. Looks no deeper than that itself.
pub(crate) fn too_deep(value: &AMQPValue) -> bool {
    deeper(value, MAX_DEPTH)
}

fn deeper(value: &AMQPValue, left: usize) -> bool {
    match value {
        AMQPValue::FieldArray(_) | AMQPValue::FieldTable(_) if left == 0 => true,
        AMQPValue::FieldArray(list) => list.as_slice().iter().any(|item| deeper(item, left - 1)),
        AMQPValue::FieldTable(table) => table.inner().values().any(|item| deeper(item, left - 1)),
        _ => false,
    }
}

/// How many bytes a table takes on the wire.
pub(crate) fn wire_size(table: &FieldTable) -> usize {
    4 + table.inner().iter().map(|(name, value)| 1 + name.as_str().len() + value_size(value)).sum::<usize>()
}

fn value_size(value: &AMQPValue) -> usize {
    1 + match value {
        AMQPValue::Void => 0,
        AMQPValue::Boolean(_) | AMQPValue::ShortShortInt(_) | AMQPValue::ShortShortUInt(_) => 1,
        AMQPValue::ShortInt(_) | AMQPValue::ShortUInt(_) => 2,
        AMQPValue::LongInt(_) | AMQPValue::LongUInt(_) | AMQPValue::Float(_) => 4,
        AMQPValue::DecimalValue(_) => 5,
        AMQPValue::LongLongInt(_) | AMQPValue::Double(_) | AMQPValue::Timestamp(_) => 8,
        AMQPValue::ShortString(text) => 1 + text.as_str().len(),
        AMQPValue::LongString(text) => 4 + text.as_bytes().len(),
        AMQPValue::ByteArray(bytes) => 4 + bytes.as_slice().len(),
        AMQPValue::FieldArray(list) => 4 + list.as_slice().iter().map(value_size).sum::<usize>(),
        AMQPValue::FieldTable(table) => wire_size(table),
    }
}

/// Headers that were received, as this crate's values.
pub fn received(table: &FieldTable) -> Headers {
    table.inner().iter().map(|(k, v)| (k.to_string(), received_value(v))).collect()
}

fn received_value(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::Boolean(b) => Value::Bool(*b),
        AMQPValue::ShortShortInt(i) => Value::Int((*i).into()),
        AMQPValue::ShortShortUInt(i) => Value::Int((*i).into()),
        AMQPValue::ShortInt(i) => Value::Int((*i).into()),
        AMQPValue::ShortUInt(i) => Value::Int((*i).into()),
        AMQPValue::LongInt(i) => Value::Int((*i).into()),
        AMQPValue::LongUInt(i) => Value::Int((*i).into()),
        AMQPValue::LongLongInt(i) => Value::Int(*i),
        AMQPValue::Float(f) => Value::Float((*f).into()),
        AMQPValue::Double(f) => Value::Float(*f),
        AMQPValue::DecimalValue(d) => Value::Decimal(d.scale, d.value),
        AMQPValue::ShortString(s) => Value::Text(s.as_str().as_bytes().to_vec()),
        AMQPValue::LongString(s) => Value::Text(s.as_bytes().to_vec()),
        AMQPValue::ByteArray(b) => Value::Text(b.as_slice().to_vec()),
        AMQPValue::Timestamp(t) => Value::Time(*t),
        AMQPValue::FieldArray(list) => Value::List(list.as_slice().iter().map(received_value).collect()),
        AMQPValue::FieldTable(table) => Value::Table(received(table)),
        AMQPValue::Void => Value::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Kind, Scope};
    use proptest::prelude::*;

    /// Any value the wire can carry; keys of a table are unique and sorted, as they come back.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nothing),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            prop::num::f64::NORMAL.prop_map(Value::Float),
            (any::<u8>(), any::<u32>()).prop_map(|(scale, mantissa)| Value::Decimal(scale, mantissa)),
            any::<u64>().prop_map(Value::Time),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Text),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
                proptest::collection::btree_map("[a-z]{0,8}", inner, 0..5)
                    .prop_map(|map| Value::Table(map.into_iter().collect())),
            ]
        })
    }

    /// What lapin makes of it.
    fn encoded_size(table: &FieldTable) -> usize {
        let encode = lapin::types::generation::gen_field_table(table);
        cookie_factory::gen_simple(encode, Vec::new()).unwrap().len()
    }

    proptest! {
        #[test]
        fn what_the_wire_can_carry_comes_back_as_it_was(
            headers in proptest::collection::btree_map("[a-z]{1,12}", value(), 0..6)
        ) {
            let headers: Headers = headers.into_iter().collect();
            let (table, size) = table(&headers).unwrap();
            prop_assert_eq!(size, encoded_size(&table));
            prop_assert_eq!(received(&table), headers);
        }

        #[test]
        fn no_stored_text_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..200), json in "[\\[{\"a:,0-9\\]}\\\\uné]{0,80}") {
            for text in [text.as_slice(), json.as_bytes()] {
                if let Ok(headers) = from_json(text) {
                    let _ = table(&headers);
                }
            }
        }
    }

    fn refusal(headers: Headers) -> String {
        let error = table(&headers).unwrap_err();
        assert_eq!((error.kind(), error.scope()), (Kind::Refused, Scope::Record));
        error.to_string()
    }

    #[test]
    fn json_keeps_integers_exact() {
        let headers =
            from_json(br#"{"x-acemq-first-seen":1767323045678,"a":-1,"f":1.5,"l":["x",null,{"k":true}]}"#).unwrap();
        let expected = vec![
            ("a".to_owned(), Value::Int(-1)),
            ("f".to_owned(), Value::Float(1.5)),
            (
                "l".to_owned(),
                Value::List(vec![
                    Value::Text(b"x".to_vec()),
                    Value::Nothing,
                    Value::Table(vec![("k".to_owned(), Value::Bool(true))]),
                ]),
            ),
            ("x-acemq-first-seen".to_owned(), Value::Int(1_767_323_045_678)),
        ];
        assert_eq!(headers, expected);
    }

    #[test]
    fn json_that_is_no_table_of_headers_is_refused() {
        for text in ["[]", "{", "null", r#"{"n":18446744073709551615}"#] {
            assert_eq!(from_json(text.as_bytes()).unwrap_err().kind(), Kind::Refused, "{text}");
        }
    }

    #[test]
    fn what_would_cost_the_connection_is_refused() {
        assert!(refusal(vec![("f".into(), Value::Float(f64::NAN))]).contains("NaN"));
        assert!(refusal(vec![("n".repeat(256), Value::Nothing)]).contains("256 bytes"));
        assert!(refusal(vec![("CC".into(), Value::Text(b"a".to_vec()))]).contains("list of routing keys"));
        let deep = (0..70).fold(Value::Nothing, |inner, _| Value::List(vec![inner]));
        assert!(refusal(vec![("d".into(), deep)]).contains("nested"));
    }

    #[test]
    fn the_size_is_what_the_wire_takes() {
        let (_, size) = table(&vec![("ab".into(), Value::Text(b"xyz".to_vec())), ("n".into(), Value::Int(1))]).unwrap();
        assert_eq!(size, 4 + (1 + 2 + 1 + 4 + 3) + (1 + 1 + 1 + 8));
    }
}

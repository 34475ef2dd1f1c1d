//! Headers: what goes on the wire comes back as it was, takes the bytes that were counted for it, and what others send is
//! read without harm.
#![no_main]

use acemq_core::headers::{self, Headers, Value};
use arbitrary::{Arbitrary, Unstructured};
use lapin::types::FieldTable;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

/// As deep as headers may be that are sent, and some more.
const DEPTH: usize = 70;

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let Ok(kind) = u8::arbitrary(&mut input) else { return };
    match kind % 3 {
        0 => json(input.take_rest()),
        1 => made(&mut input),
        _ => wire(input.take_rest()),
    }
});

/// The column of a row.
fn json(text: &[u8]) {
    if let Ok(headers) = headers::from_json(text) {
        there_and_back(&headers);
    }
}

fn made(input: &mut Unstructured) {
    if let Ok(headers) = table(input, 0) {
        there_and_back(&headers);
    }
}

/// What arrives: whoever sent it may be anybody.
fn wire(bytes: &[u8]) {
    let Some(table) = parsed(bytes) else { return };
    let headers = headers::received(&table);
    let _ = headers::table(&headers);
}

fn there_and_back(headers: &Headers) {
    let headers = sorted(headers);
    let Ok((table, size)) = headers::table(&headers) else { return };
    let bytes = cookie_factory::gen_simple(lapin::types::generation::gen_field_table(&table), Vec::new()).unwrap();
    assert_eq!(bytes.len(), size, "the size is not what the wire takes");
    let back = parsed(&bytes).expect("what was written can be read");
    assert_eq!(headers::received(&back), headers);
}

fn parsed(bytes: &[u8]) -> Option<FieldTable> {
    lapin::types::parsing::parse_field_table(bytes).ok().map(|(_, table)| table)
}

/// A table has its names in order, and the last value of each.
fn sorted(headers: &[(String, Value)]) -> Headers {
    let by_name: BTreeMap<String, Value> =
        headers.iter().cloned().map(|(name, value)| (name, in_order(value))).collect();
    by_name.into_iter().collect()
}

fn in_order(value: Value) -> Value {
    match value {
        Value::List(list) => Value::List(list.into_iter().map(in_order).collect()),
        Value::Table(table) => Value::Table(sorted(&table)),
        other => other,
    }
}

fn table(input: &mut Unstructured, depth: usize) -> arbitrary::Result<Headers> {
    let count = input.int_in_range(0..=5)?;
    (0..count).map(|_| Ok((String::arbitrary(input)?, value(input, depth + 1)?))).collect()
}

fn value(input: &mut Unstructured, depth: usize) -> arbitrary::Result<Value> {
    let deep = if depth < DEPTH { 8 } else { 6 };
    Ok(match input.int_in_range(0..=deep)? {
        0 => Value::Nothing,
        1 => Value::Bool(bool::arbitrary(input)?),
        2 => Value::Int(i64::arbitrary(input)?),
        3 => Value::Float(f64::arbitrary(input)?),
        4 => Value::Decimal(u8::arbitrary(input)?, u32::arbitrary(input)?),
        5 => Value::Time(u64::arbitrary(input)?),
        6 => Value::Text(Vec::arbitrary(input)?),
        7 => {
            let count = input.int_in_range(0..=4)?;
            Value::List((0..count).map(|_| value(input, depth + 1)).collect::<arbitrary::Result<_>>()?)
        }
        _ => Value::Table(table(input, depth)?),
    })
}

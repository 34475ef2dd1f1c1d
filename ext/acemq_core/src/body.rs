//! A message body in a text column: as it is where that is clean text, else base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use std::borrow::Cow;

/// `body_encoding` of a body stored as it is.
pub const TEXT: &str = "utf-8";
/// `body_encoding` of a body stored as base64.
pub const BASE64: &str = "base64";

/// The column text of a body, and its `body_encoding`.
///
/// Clean text is valid UTF-8 without NUL: PostgreSQL refuses a NUL in a text column and SQLite cuts at it.
pub fn encode(body: &[u8]) -> (Cow<'_, str>, &'static str) {
    match std::str::from_utf8(body) {
        Ok(text) if !body.contains(&0) => (Cow::Borrowed(text), TEXT),
        _ => (Cow::Owned(STANDARD.encode(body)), BASE64),
    }
}

/// The body behind a column text, or what is wrong with the column.
pub fn decode<'a>(stored: &'a [u8], encoding: &str) -> Result<Cow<'a, [u8]>, String> {
    match encoding {
        TEXT => Ok(Cow::Borrowed(stored)),
        BASE64 => STANDARD.decode(stored).map(Cow::Owned).map_err(|e| format!("the stored body is not base64 ({e})")),
        other => Err(format!("body_encoding {other:?} is unknown; utf-8 and base64 are known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(encode("{\"a\":\"é\"}".as_bytes()), (Cow::Borrowed("{\"a\":\"é\"}"), TEXT));
        assert_eq!(encode(b""), (Cow::Borrowed(""), TEXT));
    }

    #[test]
    fn a_nul_makes_it_base64() {
        assert_eq!(encode(b"a\0b").1, BASE64);
    }

    #[test]
    fn a_bad_column_says_why() {
        assert!(decode(b"***", BASE64).unwrap_err().contains("not base64"));
        assert!(decode(b"x", "rot13").unwrap_err().contains("rot13"));
    }

    proptest! {
        #[test]
        fn any_bytes_survive(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (stored, encoding) = encode(&body);
            prop_assert!(!stored.contains('\0'));
            prop_assert_eq!(decode(stored.as_bytes(), encoding).unwrap().into_owned(), body);
        }
    }
}

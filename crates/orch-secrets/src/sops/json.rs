//! JSON to a tree, in the order of the file and with the places of its values.

use std::collections::BTreeSet;

use super::document::Fault;
use super::node::{Data, Entry, MAX_DEPTH, MAX_NODES, Value};
use crate::Secret;

/// Reads one map.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, nodes: 0, depth: 0 };
    reader.space();
    let root = reader.value()?;
    if !matches!(root.data, Data::Map(_)) {
        return Err(Fault::at(root.span.start, "a sops file in JSON is a map"));
    }
    reader.space();
    if reader.at < text.len() {
        return Err(Fault::at(reader.at, "something stands behind the end of the JSON"));
    }
    Ok(root)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    nodes: usize,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Fault::too_large("it has too many values"));
        }
        let data = match self.bytes.get(self.at) {
            Some(b'{') => self.nested(Self::map)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Data::Text(Secret::from(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Value::new(start..self.at, data))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Data, Fault>) -> Result<Data, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::too_large("lists and maps lie too deep in each other"));
        }
        self.at += 1;
        self.space();
        let data = read(self)?;
        self.depth -= 1;
        Ok(data)
    }

    fn map(&mut self) -> Result<Data, Fault> {
        let mut entries = Vec::new();
        let mut taken = BTreeSet::new();
        if self.take(b'}') {
            return Ok(Data::Map(entries));
        }
        loop {
            let start = self.at;
            if self.bytes.get(start) != Some(&b'"') {
                return self.refuse("a key must be text");
            }
            let key = self.string()?;
            let key_span = start..self.at;
            if !taken.insert(key.clone()) {
                return Err(Fault::at(start, "a key stands twice in one map"));
            }
            self.space();
            if !self.take(b':') {
                return self.refuse("a `:` is missing");
            }
            self.space();
            let value = self.value()?;
            entries.push(Entry { key, key_span, value });
            self.space();
            if self.take(b'}') {
                return Ok(Data::Map(entries));
            }
            self.comma()?;
        }
    }

    fn list(&mut self) -> Result<Data, Fault> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Data::List(items));
        }
        loop {
            items.push(self.value()?);
            self.space();
            if self.take(b']') {
                return Ok(Data::List(items));
            }
            self.comma()?;
        }
    }

    fn comma(&mut self) -> Result<(), Fault> {
        if !self.take(b',') {
            return self.refuse("a `,` or an end is missing");
        }
        self.space();
        Ok(())
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at;
        self.at += 1;
        let end = loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break self.at,
                Some(b'\\') => self.at += 2,
                Some(byte) if *byte < 0x20 => return self.refuse("a control character stands in a text"),
                Some(_) => self.at += 1,
                None => {
                    self.at = self.bytes.len();
                    return self.refuse("a text has no end");
                }
            }
        };
        self.at = end + 1;
        unescape(&self.text[start + 1..end]).ok_or(Fault::at(start, "an escape in a text is not JSON"))
    }

    /// sops up to 3.13.1 takes every number for a float, later ones know whole numbers; see `open` for what that means.
    fn number(&mut self) -> Result<Data, Fault> {
        let start = self.at;
        let in_number = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        self.at += self.bytes[start..].iter().take_while(|byte| in_number(byte)).count();
        let text = &self.text[start..self.at];
        let number: Result<serde_json::Number, _> = text.parse();
        let number = number.map_err(|_| Fault::at(start, "this is not a number"))?;
        if let Some(value) = number.as_i64() {
            return Ok(Data::Int(value));
        }
        let float = text.parse().ok().filter(|value: &f64| value.is_finite());
        float.map(Data::Float).ok_or(Fault::at(start, "a number is too large"))
    }

    fn word(&mut self) -> Result<Data, Fault> {
        let words = [("null", Data::Null), ("true", Data::Bool(true)), ("false", Data::Bool(false))];
        for (word, data) in words {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(data);
            }
        }
        self.refuse("this is not JSON")
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn space(&mut self) {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at +=
            self.bytes[self.at.min(self.bytes.len())..].iter().take_while(|byte| is_space(byte)).count();
    }

    fn refuse<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault::at(self.at, what))
    }
}

/// Takes escapes out of a text. Half of a surrogate pair becomes what Go makes of it.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        plain.push(match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (first, behind) = unit(rest)?;
                rest = behind;
                let second = rest.strip_prefix("\\u").and_then(unit);
                match (first, second) {
                    (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, behind))) => {
                        rest = behind;
                        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00))?
                    }
                    _ => char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            _ => return None,
        });
    }
    plain.push_str(rest);
    Some(plain)
}

fn unit(text: &str) -> Option<(u32, &str)> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, &text[4..]))
}

/// Writes a text as Go's `json.Marshal` does.
pub(super) fn quote(text: &str, into: &mut String) {
    into.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => into.extend(['\\', c]),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            '\u{8}' => into.push_str("\\b"),
            '\u{c}' => into.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => into.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if u32::from(c) < 0x20 => into.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => into.push(c),
        }
    }
    into.push('"');
}

/// Writes a number as Go's `json.Marshal` does. Nothing for what JSON has no number for.
pub(super) fn float(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Some(format!("{value}"));
    }
    let text = format!("{value:e}");
    Some(if text.contains("e-") { text } else { text.replace('e', "e+") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            "[]",
            "{",
            "{\"a\"}",
            "{\"a\":1,}",
            "{\"a\":01}",
            "{\"a\":1}x",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\n\"}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_lose_their_escapes() {
        assert_eq!(unescape(r"a\n\u00e9\ud83d\ude00\ud800x").as_deref(), Some("a\n\u{e9}\u{1f600}\u{fffd}x"));
    }
}

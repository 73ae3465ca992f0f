//! JSON (RFC 8259) to values with their places.
//!
//! Strict: no comments, no trailing commas. Written here because the usual readers give no places.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Data, Entry, Finding, MAX_DEPTH, MAX_VALUES, Reporter, Span, Value, refuse_duplicate_keys};

/// Reading stopped; why has been reported.
struct Stopped;

pub(super) fn read<'a>(text: &'a str, problems: &mut Reporter<'a>) -> Option<Value<'a>> {
    let mut reader = Reader { text, at: 0, depth: 0, values: 0, problems };
    let value = reader.value().ok()?;
    reader.skip_space();
    if reader.at < text.len() {
        reader.fail("expected the end of the file").ok()?;
    }
    Some(value)
}

struct Reader<'a, 'p> {
    text: &'a str,
    at: usize,
    depth: usize,
    values: usize,
    problems: &'p mut Reporter<'a>,
}

impl<'a> Reader<'a, '_> {
    fn value(&mut self) -> Result<Value<'a>, Stopped> {
        self.skip_space();
        self.values += 1;
        if self.values > MAX_VALUES {
            return self.fail(format!("a file may hold at most {MAX_VALUES} values"));
        }
        let start = self.at;
        let data = match self.peek() {
            Some(b'{') => self.nested(Self::map)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Data::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Value { span: Span::new(start, self.at), data })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Data<'a>, Stopped>) -> Result<Data<'a>, Stopped> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(format!("lists and maps may nest {MAX_DEPTH} deep"));
        }
        self.at += 1;
        let data = read(self)?;
        self.depth -= 1;
        Ok(data)
    }

    fn list(&mut self) -> Result<Data<'a>, Stopped> {
        let mut items = Vec::new();
        self.skip_space();
        if self.eat(b']') {
            return Ok(Data::List(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.eat(b']') {
                return Ok(Data::List(items));
            }
            if !self.eat(b',') {
                return self.fail("expected `,` or `]`");
            }
        }
    }

    fn map(&mut self) -> Result<Data<'a>, Stopped> {
        let mut entries = Vec::new();
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Data::Map(entries));
        }
        loop {
            entries.push(self.entry()?);
            self.skip_space();
            if self.eat(b'}') {
                refuse_duplicate_keys(&entries, self.problems);
                return Ok(Data::Map(entries));
            }
            if !self.eat(b',') {
                return self.fail("expected `,` or `}`");
            }
        }
    }

    fn entry(&mut self) -> Result<Entry<'a>, Stopped> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.fail("expected a key in double quotes");
        }
        let start = self.at;
        let key = self.string()?;
        let key_span = Span::new(start, self.at);
        self.skip_space();
        if !self.eat(b':') {
            return self.fail("expected `:` after the key");
        }
        Ok(Entry { key, key_span, value: self.value()? })
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Stopped> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                self.at = self.text.len();
                return self.fail("expected `\"` at the end of the text");
            };
            let (part, from) = (&rest[..stop], self.at);
            self.at += stop;
            match rest.as_bytes()[stop] {
                b'"' => {
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(&self.text[start..from + stop]),
                        Some(text) => Cow::Owned(text + part),
                    });
                }
                b'\\' => {
                    let text = owned.get_or_insert_with(String::new);
                    text.push_str(part);
                    let escaped = self.escape()?;
                    owned.get_or_insert_with(String::new).push(escaped);
                }
                _ => return self.fail("a control character inside text must be escaped"),
            }
        }
    }

    /// Reads `\n`, `\u00e9`, or a surrogate pair; stands on the backslash.
    fn escape(&mut self) -> Result<char, Stopped> {
        let code = self.text.as_bytes().get(self.at + 1).copied();
        self.at += 2;
        let simple = match code {
            Some(plain @ (b'"' | b'\\' | b'/')) => plain as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.at -= 2;
                return self.fail("this is not a JSON escape");
            }
        };
        Ok(simple)
    }

    fn unicode(&mut self) -> Result<char, Stopped> {
        let first = self.hex4()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            match self.hex4()? {
                second @ 0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                _ => first,
            }
        } else {
            first
        };
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.fail("half of a surrogate pair stands alone"),
        }
    }

    fn hex4(&mut self) -> Result<u32, Stopped> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        match u32::from_str_radix(digits, 16) {
            Ok(code) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                self.at += 4;
                Ok(code)
            }
            _ => self.fail("expected four hexadecimal digits"),
        }
    }

    fn number(&mut self) -> Result<Data<'a>, Stopped> {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let word = &rest[..end];
        let digits = word.trim_start_matches('-');
        let zero_led = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        // Rust reads `-.5` and `1.e3` as numbers too.
        let bare_point = digits.split('.').any(|part| !part.starts_with(|c: char| c.is_ascii_digit()));
        let data = match (word.parse(), word.parse()) {
            _ if zero_led || bare_point => None,
            (Ok(int), _) => Some(Data::Int(int)),
            (_, Ok(float)) => Some(Data::Float(float)),
            _ => None,
        };
        match data {
            Some(data) => {
                self.at += end;
                Ok(data)
            }
            None => self.fail("this is not a JSON number"),
        }
    }

    fn word(&mut self) -> Result<Data<'a>, Stopped> {
        for (word, data) in [("true", Data::Bool(true)), ("false", Data::Bool(false)), ("null", Data::Null)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(data);
            }
        }
        self.fail("expected a value")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fail<T>(&mut self, message: impl Into<String>) -> Result<T, Stopped> {
        let end = self.text[self.at.min(self.text.len())..].chars().next().map_or(0, char::len_utf8);
        self.problems.report(Finding::new(Span::new(self.at, self.at + end), message));
        Err(Stopped)
    }
}

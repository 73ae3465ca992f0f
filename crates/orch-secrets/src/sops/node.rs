//! The tree of a file, in its order, with the places of its values.

use std::fmt;
use std::ops::Range;

use crate::Secret;
use crate::path::{KeyPath, Step};

/// How deep lists and maps may lie inside each other.
pub(crate) const MAX_DEPTH: usize = 100;
/// How many values, keys included, a file may have, aliases written out.
pub(crate) const MAX_NODES: usize = 200_000;
/// How large a file may be.
pub(crate) const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A value of a sops file, opened. It does not show itself.
#[derive(Clone, PartialEq)]
pub(crate) struct Value {
    /// Where it is written, as bytes of the file.
    pub(crate) span: Range<usize>,
    pub(crate) data: Data,
}

#[derive(Clone, PartialEq)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A moment, as RFC 3339 with as many digits as it needs.
    Time(String),
    Text(Secret),
    /// An item of a list that was a comment once.
    Comment(Secret),
    List(Vec<Value>),
    Map(Vec<Entry>),
}

#[derive(Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Value,
}

impl Value {
    pub(crate) fn new(span: Range<usize>, data: Data) -> Self {
        Self { span, data }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::new(0..0, Data::Text(Secret::from(text.to_owned())))
    }

    /// The bytes of one value: text as it is, numbers and the like as `sops decrypt --extract` prints them. Nothing
    /// where there are several values, or none.
    pub(crate) fn secret(&self) -> Option<Secret> {
        Some(match &self.data {
            Data::Text(text) | Data::Comment(text) => text.clone(),
            Data::Bool(value) => Secret::from(value.to_string()),
            Data::Float(value) => Secret::from(go_shortest(*value)),
            Data::Int(value) => Secret::from(value.to_string()),
            Data::Time(text) => Secret::from(text.clone()),
            Data::Null | Data::List(_) | Data::Map(_) => return None,
        })
    }

    /// The bytes that are encrypted, and that the MAC is made of.
    pub(crate) fn plain_bytes(&self) -> Option<Secret> {
        Some(match &self.data {
            Data::Bool(true) => Secret::from(String::from("True")),
            Data::Bool(false) => Secret::from(String::from("False")),
            Data::Float(value) => Secret::from(go_decimal(*value)),
            _ => return self.secret(),
        })
    }

    /// The word of sops for what it is.
    pub(crate) fn type_word(&self) -> &'static str {
        match &self.data {
            Data::Bool(_) => "bool",
            Data::Int(_) => "int",
            Data::Float(_) => "float",
            Data::Time(_) => "time",
            Data::Comment(_) => "comment",
            _ => "str",
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => std::str::from_utf8(text.expose()).ok(),
            _ => None,
        }
    }

    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.data, Data::Comment(_))
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Value] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// The entry of a map.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub(crate) fn field(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// One step further.
    pub(crate) fn step(&self, step: &Step) -> Option<&Value> {
        match step {
            Step::Key(key) => self.field(key),
            Step::Index(index) => self.items().iter().filter(|item| !item.is_comment()).nth(*index),
        }
    }

    pub(crate) fn at(&self, path: &KeyPath) -> Option<&Value> {
        path.steps().iter().try_fold(self, |value, step| value.step(step))
    }

    pub(crate) fn at_mut(&mut self, path: &KeyPath) -> Option<&mut Value> {
        path.steps().iter().try_fold(self, |value, step| match (step, &mut value.data) {
            (Step::Key(key), Data::Map(entries)) => {
                entries.iter_mut().find(|entry| entry.key == *key).map(|entry| &mut entry.value)
            }
            (Step::Index(index), Data::List(items)) => {
                items.iter_mut().filter(|item| !item.is_comment()).nth(*index)
            }
            _ => None,
        })
    }
}

/// Shows what it is and nothing of what it says.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value(..)")
    }
}

/// As Go's `FormatFloat(f, 'f', -1, 64)`.
pub(crate) fn go_decimal(value: f64) -> String {
    if value.is_nan() {
        String::from("NaN")
    } else if value.is_infinite() {
        String::from(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        format!("{value}")
    }
}

/// As Go's `FormatFloat(f, 'g', -1, 64)`, which is how numbers are printed that are extracted from YAML.
fn go_shortest(value: f64) -> String {
    if !value.is_finite() {
        return match go_decimal(value).as_str() {
            "NaN" => String::from(".nan"),
            "+Inf" => String::from(".inf"),
            _ => String::from("-.inf"),
        };
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..6).contains(&exponent) {
        return go_decimal(value);
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_bytes_that_go_gives_them() {
        for (value, decimal, shortest) in [
            (3.0, "3", "3"),
            (1e21, "1000000000000000000000", "1e+21"),
            (1.5, "1.5", "1.5"),
            (-0.0, "-0", "-0"),
            (1e-7, "0.0000001", "1e-07"),
            (1_234_567.5, "1234567.5", "1.2345675e+06"),
            (f64::INFINITY, "+Inf", ".inf"),
            (f64::NAN, "NaN", ".nan"),
        ] {
            assert_eq!((go_decimal(value).as_str(), go_shortest(value).as_str()), (decimal, shortest));
        }
    }
}

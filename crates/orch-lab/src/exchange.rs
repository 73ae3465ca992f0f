//! One question to an API and its answer, without the wire around them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value as Json;

/// One API of the lab.
#[async_trait]
pub trait Api: Send + Sync {
    /// Answers one question. What a question costs in time is spent here, or around here; never while others are kept waiting.
    async fn answer(&self, asked: Asked) -> Answer;
}

/// A question to an API, as it came over the wire.
#[derive(Clone)]
pub struct Asked {
    /// `GET`, `POST`, `PUT`, `DELETE`.
    pub method: String,
    /// The path as it was sent, still percent-encoded and without the query, such as `/api2/json/version`.
    pub path: String,
    /// What stands behind the `?`, as it was sent.
    pub query: String,
    /// The headers; their names are in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The parts of the path, decoded. A `+` is a plus here.
    pub fn segments(&self) -> Vec<String> {
        self.path.split('/').filter(|part| !part.is_empty()).map(decode).collect()
    }

    /// What stands behind the `?`, decoded, in order.
    pub fn query(&self) -> Vec<(String, String)> {
        form(self.query.as_bytes())
    }

    /// A body that is a form, decoded, in order.
    pub fn form(&self) -> Vec<(String, String)> {
        form(&self.body)
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The words beside the status, where they are not the usual ones: Proxmox says there what went wrong.
    pub reason: Option<String>,
    /// The headers, beside those that the wire needs.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer in JSON.
    pub fn json(status: u16, body: &Json) -> Self {
        let headers = vec![("content-type".into(), "application/json; charset=utf-8".into())];
        Self { status, reason: None, headers, body: body.to_string().into_bytes() }
    }

    /// An answer without a body.
    pub const fn empty(status: u16) -> Self {
        Self { status, reason: None, headers: Vec::new(), body: Vec::new() }
    }

    /// The same answer with these words beside the status.
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// The same answer with one more header.
    pub fn with(mut self, name: &str, value: &impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

fn form(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(&spaced(name)), decode(&spaced(value)))
    });
    pairs.collect()
}

/// In a form a `+` is a space.
fn spaced(text: &str) -> String {
    text.replace('+', " ")
}

/// Undoes one percent-encoding. What is not one is left as it is.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_is_a_space_in_forms_and_a_plus_in_paths() {
        let asked = Asked {
            method: "PUT".into(),
            path: "/a%2Fb/c+d".into(),
            query: "size=+1G&x=%2B1G&empty".into(),
            headers: BTreeMap::new(),
            body: b"k=%25zz&l=100%".to_vec(),
        };
        assert_eq!(asked.segments(), ["a/b", "c+d"]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(asked.query(), [pair("size", " 1G"), pair("x", "+1G"), pair("empty", "")]);
        assert_eq!(asked.form(), [pair("k", "%zz"), pair("l", "100%")]);
    }
}

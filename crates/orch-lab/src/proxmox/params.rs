//! The parameters of a call, wherever they came from: the path, the query, a form, JSON, or the parts of an upload.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::formats::truth;
use super::reply::Refusal;
use crate::exchange::Asked;

/// The parameters of a call.
#[derive(Default)]
pub(super) struct Params {
    values: BTreeMap<String, String>,
    /// The file of an upload.
    pub(super) file: Option<Vec<u8>>,
}

impl Params {
    /// What stands in the query and in the body.
    pub(super) fn of(asked: &Asked) -> Self {
        let mut params = Self::default();
        params.extend(asked.query());
        let kind = asked.header("content-type").unwrap_or_default();
        if let Some(boundary) =
            kind.strip_prefix("multipart/form-data").and_then(|rest| rest.split_once("boundary="))
        {
            params.read_parts(&asked.body, boundary.1.trim_matches('"'));
        } else if kind.starts_with("application/json") {
            let fields = serde_json::from_slice(&asked.body);
            params.extend(fields.into_iter().flat_map(|Fields(fields)| fields));
        } else {
            params.extend(asked.form());
        }
        params
    }

    fn extend(&mut self, pairs: impl IntoIterator<Item = (String, String)>) {
        for (name, value) in pairs {
            // What is sent twice is a list.
            self.values.entry(name).and_modify(|known| known.push_str(&format!(",{value}"))).or_insert(value);
        }
    }

    fn read_parts(&mut self, body: &[u8], boundary: &str) {
        let mark = format!("--{boundary}").into_bytes();
        let mut places = find_all(body, &mark).into_iter().peekable();
        while let Some(start) = places.next() {
            let Some(&end) = places.peek() else { break };
            let part = body.get(start + mark.len()..end).unwrap_or_default();
            let Some(head_end) = find_all(part, b"\r\n\r\n").first().copied() else { continue };
            let head = String::from_utf8_lossy(&part[..head_end]).into_owned();
            let content = part.get(head_end + 4..).unwrap_or_default();
            let content = content.strip_suffix(b"\r\n").unwrap_or(content);
            let field = |name: &str| {
                let (_, rest) = head.split_once(&format!(" {name}=\""))?;
                rest.split_once('"').map(|(value, _)| value.to_owned())
            };
            match (field("name"), field("filename")) {
                (Some(name), Some(file)) => {
                    self.values.insert(name, file);
                    self.file = Some(content.to_vec());
                }
                (Some(name), None) => {
                    self.values.insert(name, String::from_utf8_lossy(content).into_owned());
                }
                _ => {}
            }
        }
    }

    pub(super) fn insert(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn all(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// A parameter that the call cannot do without.
    pub(super) fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.get(name).ok_or_else(|| Refusal::parameter(name, "property is missing and it is not optional"))
    }

    /// A parameter that is the id of a guest.
    pub(super) fn id(&self, name: &str) -> Result<u32, Refusal> {
        let value = self.need(name)?;
        let wrong = || Refusal::parameter(name, format!("type check ('integer') failed - got '{value}'"));
        let id = value.parse::<u32>().map_err(|_| wrong())?;
        if id < 100 {
            return Err(Refusal::parameter(name, "value must have a minimum value of 100"));
        }
        Ok(id)
    }

    /// Whether a switch is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).and_then(truth).unwrap_or(false)
    }
}

/// The fields of a JSON body, as text.
struct Fields(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, Json>::deserialize(reader)?;
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        Ok(Self(given.map(|(name, value)| (name, text(value))).collect()))
    }
}

/// A value of JSON as a form would have it.
fn text(value: Json) -> String {
    match value {
        Json::String(text) => text,
        Json::Bool(truth) => u8::from(truth).to_string(),
        Json::Array(list) => list.into_iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn find_all(within: &[u8], what: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut place = 0;
    while place + what.len() <= within.len() {
        if within[place..].starts_with(what) {
            places.push(place);
            place += what.len();
        } else {
            place += 1;
        }
    }
    places
}

//! The body of a question, read field by field; what is missing or of another kind is refused with the field's name.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::labels;
use super::refusal::Refusal;

/// The fields of a JSON object. A field that is null counts as not given.
#[derive(Clone, Copy)]
pub(super) struct Body<'a>(pub(super) &'a Map<String, Json>);

impl<'a> Body<'a> {
    pub(super) fn any(self, field: &str) -> Option<&'a Json> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    fn read<T>(
        self,
        field: &str,
        kind: &str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let read = |value| read(value).ok_or_else(|| Refusal::invalid(field, format!("must be {kind}")));
        self.any(field).map(read).transpose()
    }

    pub(super) fn text(self, field: &str) -> Result<Option<&'a str>, Refusal> {
        self.read(field, "a string", Json::as_str)
    }

    pub(super) fn whole(self, field: &str) -> Result<Option<u64>, Refusal> {
        self.read(field, "a whole number", Json::as_u64)
    }

    pub(super) fn flag(self, field: &str) -> Result<Option<bool>, Refusal> {
        self.read(field, "a boolean", Json::as_bool)
    }

    /// What is named by its id, as a number or as text, or by its name.
    pub(super) fn id_or_name(self, field: &str) -> Result<Option<String>, Refusal> {
        self.read(field, "an id or a name", id_or_name)
    }

    pub(super) fn list(self, field: &str) -> Result<&'a [Json], Refusal> {
        let list = self.read(field, "a list", |value| value.as_array().map(Vec::as_slice))?;
        Ok(list.unwrap_or_default())
    }

    pub(super) fn objects(self, field: &str) -> Result<Vec<Body<'a>>, Refusal> {
        let object = |value: &'a Json| value.as_object().map(Body);
        self.list(field)?.iter().map(|value| needed(object(value), field)).collect()
    }

    pub(super) fn ids(self, field: &str) -> Result<Vec<u64>, Refusal> {
        self.list(field)?.iter().map(|value| needed(value.as_u64(), field)).collect()
    }

    pub(super) fn texts(self, field: &str) -> Result<Vec<String>, Refusal> {
        self.list(field)?.iter().map(|value| needed(value.as_str().map(str::to_owned), field)).collect()
    }

    pub(super) fn ids_or_names(self, field: &str) -> Result<Vec<String>, Refusal> {
        self.list(field)?.iter().map(|value| needed(id_or_name(value), field)).collect()
    }

    pub(super) fn object(self, field: &str) -> Result<Option<Body<'a>>, Refusal> {
        self.read(field, "an object", |value| value.as_object().map(Body))
    }

    pub(super) fn labels(self) -> Result<Option<BTreeMap<String, String>>, Refusal> {
        let Some(given) = self.object("labels")? else { return Ok(None) };
        let label = |(key, value): (&String, &Json)| {
            let value = needed(value.as_str(), "labels")?;
            labels::check(key, value).map_err(|why| Refusal::invalid("labels", why))?;
            Ok((key.clone(), value.to_owned()))
        };
        given.0.iter().map(label).collect::<Result<_, _>>().map(Some)
    }
}

/// A field that has to be given.
pub(super) fn needed<T>(value: Option<T>, field: &str) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::invalid(field, "is missing or of the wrong kind"))
}

fn id_or_name(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|id| id.to_string()))
}

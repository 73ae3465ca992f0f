//! Reading what Proxmox answers: numbers may come as text and text as numbers, unknown fields do not matter, and one that is
//! missing is named together with the question.

use serde_json::{Map, Value as Json};

use super::trouble::Trouble;

/// The fields of one thing in an answer.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    call: &'a str,
    map: &'a Map<String, Json>,
}

impl<'a> Fields<'a> {
    /// Those of the answer itself.
    pub(super) fn of(call: &'a str, answer: &'a Json) -> Result<Self, Trouble> {
        let map = answer.as_object().ok_or_else(|| unreadable(call, "the answer is no object"))?;
        Ok(Self { call, map })
    }

    /// Those of each thing in an answer that is a list.
    pub(super) fn each(call: &'a str, answer: &'a Json) -> Result<Vec<Self>, Trouble> {
        let list = answer.as_array().ok_or_else(|| unreadable(call, "the answer is no list"))?;
        list.iter().map(|entry| Self::of(call, entry)).collect()
    }

    /// A field as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        text(self.map.get(name)?)
    }

    /// A field as a number; fractions are cut off.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        number(self.map.get(name)?)
    }

    /// Whether a field says yes.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| {
            matches!(value, Json::Bool(true)) || number(value).is_some_and(|number| number != 0)
        })
    }

    /// A field as text that must be there.
    pub(super) fn needs_text(&self, name: &str) -> Result<String, Trouble> {
        self.text(name).ok_or_else(|| self.without(name))
    }

    /// What is wrong where a field is missing.
    pub(super) fn without(&self, name: &str) -> Trouble {
        unreadable(self.call, &format!("an entry without `{name}`"))
    }

    /// Every field that can be text.
    pub(super) fn texts(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.map.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?)))
    }

    /// A field whatever it is.
    pub(super) fn raw(&self, name: &str) -> Option<&'a Json> {
        self.map.get(name)
    }
}

/// An answer that cannot be understood.
pub(super) fn unreadable(call: &str, why: &str) -> Trouble {
    Trouble::Unreadable { call: call.to_owned(), why: why.to_owned() }
}

/// A value as text, where it can be.
pub(super) fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(u8::from(*flag).to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

fn number(value: &Json) -> Option<u64> {
    let text = text(value)?;
    let whole = text.split_once('.').map_or(text.as_str(), |(whole, _)| whole);
    whole.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_come_as_text_and_text_as_numbers() {
        let answer =
            json!({ "memory": "128", "kvm": 0, "name": 7, "cpu": 2.5, "on": true, "extra": { "a": 1 } });
        let fields = Fields::of("GET /x", &answer).unwrap();
        assert_eq!((fields.number("memory"), fields.text("name")), (Some(128), Some("7".into())));
        assert_eq!((fields.number("cpu"), fields.number("extra")), (Some(2), None));
        assert!(fields.is_set("on") && fields.is_set("memory") && !fields.is_set("kvm"));
    }

    #[test]
    fn a_missing_field_is_told_with_the_question() {
        let answer = json!([{ "type": "qemu" }]);
        let fields = Fields::each("GET /cluster/resources", &answer).unwrap();
        let told = fields[0].needs_text("vmid").unwrap_err().to_string();
        assert_eq!(told, "GET /cluster/resources: an entry without `vmid`");
        assert!(Fields::each("GET /x", &json!({})).is_err() && Fields::of("GET /x", &json!(null)).is_err());
    }
}

//! Lists, maps and values that may be left out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Deref;

use serde_json::{Value as Json, json};

use super::{Decode, expected};
use crate::text::{Data, Reporter, Value};

impl<T: Decode> Decode for Option<T> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        match value.data {
            Data::Null => Some(None),
            _ => T::decode(value, cx).map(Some),
        }
    }

    fn placeholder() -> Self {
        None
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn schema() -> Json {
        or_null(T::schema())
    }
}

/// The schema of a value that may be written as nothing, which is the same as leaving it out.
pub(crate) fn or_null(mut schema: Json) -> Json {
    if let Some(Json::String(kind)) = schema.get("type") {
        schema["type"] = json!([kind, "null"]);
        if let Some(Json::Array(words)) = schema.get_mut("enum") {
            words.push(Json::Null);
        }
    }
    schema
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let Data::List(items) = &value.data else {
            return expected("a list", value, cx);
        };
        // A broken item is left out rather than replaced: its problem has been reported, and a stand-in among
        // nodes or users would be taken for one of them.
        Some(items.iter().filter_map(|item| T::decode(item, cx)).collect())
    }

    fn placeholder() -> Self {
        Self::new()
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// A list that must be given and must hold something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filled<T> {
    items: Vec<T>,
    /// Whether every item could be read as it stands. Where not, what the items are to each other is not known.
    is_whole: bool,
}

impl<T> Filled<T> {
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }
}

impl<T> Deref for Filled<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T: Decode> Decode for Filled<T> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let before = cx.count();
        match &value.data {
            Data::List(items) if items.is_empty() => {
                super::refuse(value.span, "expected at least one entry, found an empty list", cx)
            }
            _ => Vec::decode(value, cx).map(|items| Self { items, is_whole: cx.count() == before }),
        }
    }

    fn placeholder() -> Self {
        Self { items: Vec::new(), is_whole: false }
    }

    fn schema() -> Json {
        let mut schema = Vec::<T>::schema();
        schema["minItems"] = json!(1);
        schema
    }
}

/// Keys that can be decoded from the text of a map's key.
pub(crate) trait DecodeKey: Ord + Sized {
    /// Reads a key; the error says what is wrong with it.
    fn decode_key(text: &str) -> Result<Self, alloc::string::String>;
}

impl DecodeKey for alloc::string::String {
    fn decode_key(text: &str) -> Result<Self, alloc::string::String> {
        Ok(text.into())
    }
}

impl<K: DecodeKey, T: Decode> Decode for BTreeMap<K, T> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let Data::Map(entries) = &value.data else {
            return expected("a map", value, cx);
        };
        let mut map = Self::new();
        for entry in entries {
            match (K::decode_key(&entry.key), T::decode(&entry.value, cx)) {
                (Ok(key), Some(value)) => {
                    map.insert(key, value);
                }
                (Err(why), _) => super::refuse::<()>(entry.key_span, format!("key {why}"), cx).unwrap_or(()),
                // The name is there, though its value is broken: references to it must not be reported too.
                (Ok(key), None) => {
                    map.insert(key, T::placeholder());
                }
            }
        }
        Some(map)
    }

    fn placeholder() -> Self {
        Self::new()
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }

    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

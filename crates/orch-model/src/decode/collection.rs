//! Lists, maps and values that may be left out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

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
        let mut schema = T::schema();
        if let Some(Json::String(kind)) = schema.get("type") {
            schema["type"] = json!([kind, "null"]);
            if let Some(Json::Array(words)) = schema.get_mut("enum") {
                words.push(Json::Null);
            }
        }
        schema
    }
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
                (Ok(_), None) => {}
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

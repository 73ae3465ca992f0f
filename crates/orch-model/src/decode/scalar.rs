//! Text, booleans, numbers within bounds, version numbers and free values.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{Decode, expected, refuse};
use crate::text::{Data, Finding, Reporter, Value};

/// A text type with a grammar: how it is described in a schema, by pattern.
pub(crate) fn text_schema(pattern: &str) -> Json {
    json!({ "type": "string", "pattern": pattern })
}

/// Reads text that has a grammar. A number or a boolean is judged by how it is written: where quotes would be
/// enough, that is the advice, and elsewhere the grammar is.
pub(crate) fn decode_text<T: FromStr<Err = String>>(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<T> {
    if matches!(value.data, Data::Int(_) | Data::Float(_) | Data::Bool(_))
        && let Err(why) = cx.quote(value.span).parse::<T>()
    {
        return refuse(value.span, why, cx);
    }
    match String::decode(value, cx)?.parse() {
        Ok(parsed) => Some(parsed),
        Err(why) => refuse(value.span, why, cx),
    }
}

impl Decode for String {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        match &value.data {
            Data::Text(text) => Some(text.to_string()),
            data @ (Data::Int(_) | Data::Float(_) | Data::Bool(_)) => {
                let message = format!("expected text, found {} `{}`", data.noun(), cx.quote(value.span));
                cx.report(Finding::new(value.span, message).hint("write it in quotes"));
                None
            }
            _ => expected("text", value, cx),
        }
    }

    fn placeholder() -> Self {
        Self::new()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }
}

impl Decode for bool {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        match value.data {
            Data::Bool(truth) => Some(truth),
            _ => expected("true or false", value, cx),
        }
    }

    fn placeholder() -> Self {
        false
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Within<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Within<MIN, MAX> {
    /// A constant within the bounds; one outside them does not compile.
    pub(crate) const fn new<const N: u32>() -> Self {
        const { assert!(N >= MIN && N <= MAX) };
        Self(N)
    }

    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

impl<const MIN: u32, const MAX: u32> Decode for Within<MIN, MAX> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        let Data::Int(number) = value.data else {
            return expected("a whole number", value, cx);
        };
        match u32::try_from(number) {
            Ok(number) if (MIN..=MAX).contains(&number) => Some(Self(number)),
            _ if number < i64::from(MIN) && MAX == u32::MAX => {
                refuse(value.span, format!("{number} is too small: at least {MIN}"), cx)
            }
            _ => refuse(value.span, format!("{number} is out of range: {MIN} to {MAX}"), cx),
        }
    }

    fn placeholder() -> Self {
        Self(MIN)
    }

    fn schema() -> Json {
        let mut schema = json!({ "type": "integer", "minimum": MIN });
        if MAX < u32::MAX {
            schema["maximum"] = json!(MAX);
        }
        schema
    }
}

/// The version of a file's layout; only `N` is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Version<const N: u32>;

impl<const N: u32> Decode for Version<N> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        match value.data {
            Data::Int(number) if number == i64::from(N) => Some(Self),
            Data::Int(number) => {
                refuse(value.span, format!("schema_version {number} is not understood, {N} is"), cx)
            }
            _ => expected("a whole number", value, cx),
        }
    }

    fn placeholder() -> Self {
        Self
    }

    fn schema() -> Json {
        json!({ "const": N })
    }
}

/// Free values: whatever the file says, without places.
impl Decode for Json {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        Some(match &value.data {
            Data::Null => Self::Null,
            Data::Bool(truth) => Self::Bool(*truth),
            Data::Int(int) => Self::from(*int),
            Data::Float(float) => match serde_json::Number::from_f64(*float) {
                Some(number) => Self::Number(number),
                None => return expected("a finite number", value, cx),
            },
            Data::Text(text) => Self::from(text.as_ref()),
            Data::List(items) => {
                Self::Array(items.iter().filter_map(|item| Self::decode(item, cx)).collect())
            }
            Data::Map(entries) => {
                let pairs =
                    entries.iter().filter_map(|e| Some((e.key.to_string(), Self::decode(&e.value, cx)?)));
                Self::Object(pairs.collect())
            }
        })
    }

    fn placeholder() -> Self {
        Self::Null
    }

    fn schema() -> Json {
        json!({})
    }
}

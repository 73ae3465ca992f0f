//! Values to types, with every mistake reported and none of them stopping the rest.
//!
//! [`Decode`] is to this crate what a derive is elsewhere, with three differences that a usual one cannot have: a
//! wrong field does not hide the next one, every message knows its place, and the JSON Schema that editors use
//! comes from the very same definition ([`record!`] and [`choice!`]), so that the two cannot differ.

pub(crate) mod choice;
mod collection;
mod fields;
mod located;
mod record;
mod scalar;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value as Json;

pub(crate) use choice::{Choice, choice};
pub(crate) use collection::{DecodeKey, Filled, or_null};
pub(crate) use fields::{Fields, with_article};
pub(crate) use located::Located;
pub(crate) use record::{Property, Record, properties_schema, record};
pub(crate) use scalar::{Version, Within, decode_text, text_schema};

use crate::nearest::nearest;
use crate::text::{Data, Finding, Reporter, Span, Value};

/// A type that can be read from a value of any of the languages.
pub(crate) trait Decode: Sized {
    /// Reads a value. `None` means that a problem was reported.
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self>;

    /// Stands in where decoding failed, so that the checks that follow can still tell what else is wrong. It never
    /// leaves the crate: a catalog exists only where no problem was reported.
    fn placeholder() -> Self;

    /// What a key that is not given means; `None` where the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// The JSON Schema of the values that [`decode`](Self::decode) takes.
    fn schema() -> Json;
}

/// Reports that a value is not what was expected, and what it is instead.
pub(crate) fn expected<T>(what: &str, value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<T> {
    let found = found(value, cx);
    cx.report(Finding::new(value.span, format!("expected {what}, found {found}")));
    None
}

/// What a value is, as a message says it.
fn found(value: &Value<'_>, cx: &Reporter<'_>) -> String {
    match &value.data {
        data @ (Data::Null | Data::List(_) | Data::Map(_)) => String::from(data.noun()),
        data => format!("{} `{}`", data.noun(), cx.quote(value.span)),
    }
}

/// How many names a hint lists before it says nothing.
const MAX_LISTED: usize = 12;

/// `did you mean ...?`, or the possible words where there are few, or nothing.
pub(crate) fn suggestion<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
    cx: &Reporter<'_>,
) -> Option<String> {
    if !cx.may_suggest() {
        return None;
    }
    if let Some(near) = nearest(wanted, candidates.clone()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let few: Vec<&str> = candidates.into_iter().take(MAX_LISTED + 1).collect();
    let is_listable = !few.is_empty() && few.len() <= MAX_LISTED;
    is_listable.then(|| format!("choose from `{}`", few.join("`, `")))
}

/// Reports a finding at a span and yields nothing: the common end of a failed decode.
pub(crate) fn refuse<T>(span: Span, message: impl Into<String>, cx: &mut Reporter<'_>) -> Option<T> {
    cx.report(Finding::new(span, message));
    None
}

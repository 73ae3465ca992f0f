//! A value that remembers its place, for the checks that come after decoding.

use core::ops::Deref;

use serde_json::Value as Json;

use super::Decode;
use crate::text::{Reporter, Span, Value};

/// A decoded value and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    value: T,
    origin: Origin,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It stood here.
    File(Span),
    /// The file says nothing, which means this value.
    Default,
    /// What the file says could not be read; this stands in for it.
    StandIn,
}

impl<T> Located<T> {
    /// A value that no file gave.
    pub(crate) const fn default_value(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// The value with its place, or nothing for a default or a stand-in: checks use this so as not to complain about
    /// what nobody wrote, or a second time about what could not be read.
    pub(crate) fn known(&self) -> Option<(&T, Span)> {
        match self.origin {
            Origin::File(span) => Some((&self.value, span)),
            Origin::Default | Origin::StandIn => None,
        }
    }

    /// Whether the value is not what the file says, because that could not be read.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.origin == Origin::StandIn
    }
}

/// Two located values are equal when their values are: moving a line changes nothing that a site means.
impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: serde::Serialize> serde::Serialize for Located<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: Decode> Decode for Located<T> {
    fn decode(value: &Value<'_>, cx: &mut Reporter<'_>) -> Option<Self> {
        T::decode(value, cx).map(|decoded| Self { value: decoded, origin: Origin::File(value.span) })
    }

    fn placeholder() -> Self {
        Self { value: T::placeholder(), origin: Origin::StandIn }
    }

    fn absent() -> Option<Self> {
        T::absent().map(Self::default_value)
    }

    fn schema() -> Json {
        T::schema()
    }
}

//! A value that remembers its place, for the checks that come after decoding.

use core::ops::Deref;

use serde_json::Value as Json;

use super::Decode;
use crate::text::{Reporter, Span, Value};

/// A decoded value and where it stood; the place is missing where the value is a stand-in for a broken one, or a
/// default.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    value: T,
    span: Option<Span>,
}

impl<T> Located<T> {
    /// A value that no file gave.
    pub(crate) const fn default_value(value: T) -> Self {
        Self { value, span: None }
    }

    /// The value with its place, or nothing for a stand-in: checks use this so as not to complain twice.
    pub(crate) fn known(&self) -> Option<(&T, Span)> {
        self.span.map(|span| (&self.value, span))
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
        T::decode(value, cx).map(|decoded| Self { value: decoded, span: Some(value.span) })
    }

    fn placeholder() -> Self {
        Self::default_value(T::placeholder())
    }

    fn absent() -> Option<Self> {
        T::absent().map(Self::default_value)
    }

    fn schema() -> Json {
        T::schema()
    }
}

//! The entries of a map while a record is read from it: each is taken once, and what is left over is unknown.

use alloc::format;
use alloc::vec::Vec;

use super::{Decode, expected, suggestion};
use crate::text::{Data, Entry, Finding, Reporter, Span, Value};

/// The entries of one map that no field has taken yet.
pub(crate) struct Fields<'v, 'a> {
    entries: &'v [Entry<'a>],
    known: Vec<&'static str>,
    /// What the record is called in messages.
    noun: &'static str,
    span: Span,
}

impl<'v, 'a> Fields<'v, 'a> {
    /// Opens a map; anything else is reported.
    pub(crate) fn of(value: &'v Value<'a>, noun: &'static str, cx: &mut Reporter<'_>) -> Option<Self> {
        match &value.data {
            Data::Map(entries) => Some(Self { entries, known: Vec::new(), noun, span: value.span }),
            _ => expected(&format!("the keys of a {noun}"), value, cx),
        }
    }

    /// Takes a field that must be given unless its type knows what absence means.
    pub(crate) fn take<T: Decode>(&mut self, key: &'static str, cx: &mut Reporter<'_>) -> T {
        self.take_or(key, T::absent, cx)
    }

    /// Takes a field with a default of its own.
    pub(crate) fn take_or<T: Decode>(
        &mut self,
        key: &'static str,
        default: impl FnOnce() -> Option<T>,
        cx: &mut Reporter<'_>,
    ) -> T {
        self.known.push(key);
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else {
            return default().unwrap_or_else(|| {
                let message = format!("this {} has no `{key}`, which is required", self.noun);
                cx.report(Finding::new(self.span, message));
                T::placeholder()
            });
        };
        if matches!(entry.value.data, Data::Null)
            && let Some(absent) = default()
        {
            return absent;
        }
        T::decode(&entry.value, cx).unwrap_or_else(T::placeholder)
    }

    /// Takes a field without which the record cannot be read at all.
    pub(crate) fn take_known<T: Decode>(&mut self, key: &'static str, cx: &mut Reporter<'_>) -> Option<T> {
        let before = cx.count();
        let value = self.take(key, cx);
        (cx.count() == before).then_some(value)
    }

    /// The keys that no field has taken, with their values.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'v Entry<'a>> {
        self.entries.iter().filter(|entry| !self.known.iter().any(|known| entry.key == *known))
    }

    /// Reports every key that no field has taken.
    pub(crate) fn finish(self, cx: &mut Reporter<'_>) {
        for entry in self.rest() {
            let message = format!("a {} has no key `{}`", self.noun, entry.key);
            let hint = suggestion(&entry.key, self.known.iter().copied(), cx);
            cx.report(Finding::new(entry.key_span, message).hint_option(hint));
        }
    }
}

//! The entries of a map while a record is read from it: each is taken once, and what is left over is unknown.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Decode, expected, suggestion};
use crate::nearest::nearest;
use crate::text::{Data, Entry, Finding, Reporter, Span, Value};
use crate::word::shorten;

/// The entries of one map that no field has taken yet.
pub(crate) struct Fields<'v, 'a> {
    entries: &'v [Entry<'a>],
    known: Vec<&'static str>,
    /// What the record is called in messages.
    noun: &'static str,
    span: Span,
    /// Required keys that are not there.
    missing: Vec<&'static str>,
}

impl<'v, 'a> Fields<'v, 'a> {
    /// Opens a map; anything else is reported.
    pub(crate) fn of(value: &'v Value<'a>, noun: &'static str, cx: &mut Reporter<'_>) -> Option<Self> {
        match &value.data {
            Data::Map(entries) => {
                let (known, missing) = (Vec::new(), Vec::new());
                Some(Self { entries, known, noun, span: value.span, missing })
            }
            _ => expected(&format!("the keys of {}", with_article(noun)), value, cx),
        }
    }

    /// Gives the record a more exact name, once more is known about it.
    pub(crate) const fn is_called(&mut self, noun: &'static str) {
        self.noun = noun;
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
                self.missing.push(key);
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
        self.report_missing(cx);
        (cx.count() == before).then_some(value)
    }

    /// The keys that no field has taken, with their values.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'v Entry<'a>> {
        self.entries.iter().filter(|entry| !self.known.iter().any(|known| entry.key == *known))
    }

    /// Reports every required key that is missing, and every key that no field has taken.
    pub(crate) fn finish(mut self, cx: &mut Reporter<'_>) {
        let told = self.report_missing(cx);
        for entry in self.rest().filter(|entry| !told.contains(&entry.key_span)) {
            let hint = suggestion(&entry.key, self.known.iter().copied(), cx);
            cx.report(self.unknown(entry).hint_option(hint));
        }
    }

    /// Reports the required keys that are missing so far. One that is there with a slip in it is a single mistake and
    /// told as an unknown key; the places of those are yielded.
    fn report_missing(&mut self, cx: &mut Reporter<'_>) -> Vec<Span> {
        let mut told = Vec::new();
        for key in core::mem::take(&mut self.missing) {
            let is_meant =
                |entry: &&Entry<'_>| !told.contains(&entry.key_span) && nearest(&entry.key, [key]).is_some();
            if let Some(entry) = self.rest().find(is_meant) {
                told.push(entry.key_span);
                cx.report(self.unknown(entry).hint(format!("did you mean `{key}`?")));
            } else {
                let message = format!("this {} has no `{key}`, which is required", self.noun);
                cx.report(Finding::new(self.span, message));
            }
        }
        told
    }

    fn unknown(&self, entry: &Entry<'_>) -> Finding {
        let message = format!("{} has no key `{}`", with_article(self.noun), shorten(&entry.key));
        Finding::new(entry.key_span, message)
    }
}

/// `a node`, `an ssh section`.
pub(crate) fn with_article(noun: &str) -> String {
    let is_open = noun.starts_with(['a', 'e', 'i', 'o'])
        || ["ssh ", "https "].iter().any(|start| noun.starts_with(start));
    format!("{} {noun}", if is_open { "an" } else { "a" })
}

//! Which values of a file may be secrets that somebody wrote down instead of mentioning them.
//!
//! No excerpt shows them, whatever else is wrong in their line. It goes by the names of keys and works before
//! anything is decoded, because a file that cannot be decoded is shown too.

use crate::nearest::nearest;
use crate::source::FileKind;
use crate::text::{Data, Reporter, Span, Value};

/// The keys that take a mention of a secret.
const KEYS: [&str; 4] = ["token", "api_token", "kubeconfig", "signing_keys"];
/// Parts of names that people give to secrets.
const WORDS: [&str; 6] = ["token", "password", "passwd", "secret", "kubeconfig", "signing_key"];
/// Keys that speak of secrets without holding one.
const HARMLESS: [&str; 1] = ["accept_legacy_tokens"];

/// Conceals what may be a secret in a file that could be read.
pub(crate) fn conceal_secrets(kind: FileKind, value: &Value<'_>, cx: &mut Reporter<'_>) {
    if may_hold_secrets(kind) {
        conceal_within(value, false, cx);
    }
}

/// Conceals what may be a secret in a file that could not: whatever follows such a key in its line.
pub(crate) fn conceal_lines(kind: FileKind, text: &str, cx: &mut Reporter<'_>) {
    if !may_hold_secrets(kind) {
        return;
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let word = WORDS.iter().filter_map(|word| line.find(word)).min();
        let value = word.and_then(|word| line[word..].find([':', '=']).map(|colon| word + colon + 1));
        if let Some(value) = value {
            let blank = line[value..].len() - line[value..].trim_start().len();
            cx.conceal(Span::new(start + value + blank, start + line.trim_end().len()));
        }
        start += line.len();
    }
}

const fn may_hold_secrets(kind: FileKind) -> bool {
    matches!(kind, FileKind::Site | FileKind::Host)
}

fn conceal_within(value: &Value<'_>, is_secret: bool, cx: &mut Reporter<'_>) {
    match &value.data {
        Data::Null => {}
        Data::Map(entries) => {
            for entry in entries {
                conceal_within(&entry.value, is_secret || names_a_secret(&entry.key), cx);
            }
        }
        Data::List(items) => items.iter().for_each(|item| conceal_within(item, is_secret, cx)),
        Data::Text(text) if text.starts_with("secret:") => {}
        Data::Text(_) | Data::Bool(_) | Data::Int(_) | Data::Float(_) => {
            if is_secret {
                cx.conceal(value.span);
            }
        }
    }
}

fn names_a_secret(key: &str) -> bool {
    let has_word = || WORDS.iter().any(|word| key.contains(word));
    !HARMLESS.contains(&key) && key.len() <= 64 && (has_word() || nearest(key, KEYS).is_some())
}

//! What sops says about a file in the file: who can read it, which values are encrypted, and the MAC.

use std::collections::BTreeMap;

use super::error::SopsError;
use super::node::{Data, Value};
use super::select::{Rule, Selection};
use crate::reader::Reader;

/// Lists of recipients that are not age's, and the field that names each.
const OTHERS: [(&str, &str); 5] = [
    ("pgp", "fp"),
    ("kms", "arn"),
    ("gcp_kms", "resource_id"),
    ("azure_kv", "name"),
    ("hc_vault", "key_name"),
];

/// Makes a rule of what it looks for.
type MakeRule = fn(String) -> Rule;

/// The rules, by their names.
const KINDS: [(&str, MakeRule); 6] = [
    ("unencrypted_suffix", Rule::UnencryptedSuffix),
    ("encrypted_suffix", Rule::EncryptedSuffix),
    ("unencrypted_regex", Rule::UnencryptedRegex),
    ("encrypted_regex", Rule::EncryptedRegex),
    ("unencrypted_comment_regex", Rule::UnencryptedCommentRegex),
    ("encrypted_comment_regex", Rule::EncryptedCommentRegex),
];

/// How many recipients a file may have: each is tried with each identity.
const MAX_RECIPIENTS: usize = 1000;

/// The data key, or a share of it, for one recipient.
#[derive(Debug, Clone)]
pub(crate) struct Wrapped {
    pub(crate) reader: Reader,
    pub(crate) enc: String,
}

#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) groups: Vec<Vec<Wrapped>>,
    pub(crate) threshold: usize,
    pub(crate) last_modified: String,
    pub(crate) mac: String,
    pub(crate) selection: Selection,
}

impl Metadata {
    /// Reads the metadata, whatever format they stood in.
    pub(super) fn read(file: &str, node: &Value) -> Result<Self, SopsError> {
        let bad = |what| SopsError::BadMetadata { file: file.to_owned(), what };
        let (mac, last_modified) = (text(node, "mac"), text(node, "lastmodified"));
        if mac.is_none() && last_modified.is_none() {
            return Err(SopsError::Truncated { file: file.to_owned() });
        }
        let mac = mac.unwrap_or_default();
        if mac.is_empty() {
            return Err(SopsError::MacMissing { file: file.to_owned() });
        }
        let last_modified = last_modified.ok_or(bad("`lastmodified` is missing"))?;
        let groups = groups(node).ok_or(bad("there are no recipients, or they are not a list"))?;
        if groups.iter().map(Vec::len).sum::<usize>() > MAX_RECIPIENTS {
            return Err(SopsError::TooLarge { file: file.to_owned(), what: "it has too many recipients" });
        }
        let threshold = match node.field("shamir_threshold").map(|value| (&value.data, value.as_text())) {
            None | Some((Data::Null, _)) => Some(0),
            Some((Data::Int(number), _)) => usize::try_from(*number).ok(),
            // Flattened formats have text only, and older versions of sops wrote a float.
            Some((_, Some(text))) => text.strip_suffix(".000000").unwrap_or(text).parse().ok(),
            Some(_) => None,
        };
        let threshold = threshold.ok_or(bad("`shamir_threshold` is not a number"))?;
        let mac_only_encrypted = match node.field("mac_only_encrypted").map(|value| &value.data) {
            Some(Data::Bool(value)) => *value,
            Some(Data::Text(value)) => value.expose() == b"true",
            _ => false,
        };
        let rule = rule(node).map_err(bad)?;
        let selection = Selection { rule, mac_only_encrypted };
        Ok(Self { groups, threshold, last_modified, mac, selection })
    }

    /// Whether the data key is shared out among groups.
    pub(crate) fn is_shared(&self) -> bool {
        self.groups.len() > 1
    }
}

/// A field as text. Where YAML took it for a number, its own text is wanted, and that is the same for whole numbers.
fn text(node: &Value, key: &str) -> Option<String> {
    let value = node.field(key)?;
    match &value.data {
        Data::Text(_) => value.as_text().map(str::to_owned),
        Data::Int(number) => Some(number.to_string()),
        Data::Time(text) => Some(text.clone()),
        _ => None,
    }
}

/// The rule that says which values are encrypted: at most one.
pub(crate) fn rule(node: &Value) -> Result<Option<Rule>, &'static str> {
    let mut found =
        KINDS.iter().filter_map(|(key, rule)| text(node, key).filter(|text| !text.is_empty()).map(rule));
    let rule = found.next();
    match found.next() {
        Some(_) => Err("more than one rule says which values are encrypted"),
        None => Ok(rule),
    }
}

/// The recipients. Lists at the top are the one group; only without them there are several.
fn groups(node: &Value) -> Option<Vec<Vec<Wrapped>>> {
    let top = group(node)?;
    if !top.is_empty() {
        return Some(vec![top]);
    }
    let groups: Option<Vec<_>> = node.field("key_groups")?.items().iter().map(group).collect();
    groups.filter(|groups| !groups.is_empty())
}

fn group(node: &Value) -> Option<Vec<Wrapped>> {
    let mut group = Vec::new();
    for (list, name) in OTHERS {
        for item in items(node, list)? {
            let text = text(item, name).unwrap_or_default();
            group.push(Wrapped { reader: Reader::other(list, &text), enc: String::new() });
        }
    }
    for item in items(node, "age")? {
        let (recipient, enc) = (text(item, "recipient")?, text(item, "enc")?);
        group.push(Wrapped { reader: Reader::listed(&recipient), enc });
    }
    Some(group)
}

/// The items of a list, which may be missing or null. Nothing where it is something else.
fn items<'a>(node: &'a Value, key: &str) -> Option<&'a [Value]> {
    match node.field(key).map(|value| &value.data) {
        None | Some(Data::Null) => Some(&[]),
        Some(Data::List(items)) => Some(items),
        Some(_) => None,
    }
}

/// Puts together what formats without lists and maps write as `age__list_0__map_recipient`.
pub(super) fn unflatten<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut root = Flat::default();
    for (key, value) in fields {
        root.insert(&tokens(key), value);
    }
    root.value()
}

/// A name that says where a value stands: `age`, 0, `recipient`. Whether each part is an index, and the part.
fn tokens(key: &str) -> Vec<(bool, String)> {
    let separators = [(false, "__map_"), (true, "__list_")];
    let mut tokens = Vec::new();
    let (mut is_index, mut rest) = (false, key);
    loop {
        let next =
            separators.iter().filter_map(|(index, word)| Some((rest.find(word)?, *index, word.len()))).min();
        let end = next.map_or(rest.len(), |(at, ..)| at);
        tokens.push((is_index, rest[..end].to_owned()));
        let Some((at, index, length)) = next else { return tokens };
        (is_index, rest) = (index, &rest[at + length..]);
    }
}

#[derive(Default)]
struct Flat {
    leaf: Option<Value>,
    /// By index, or by name.
    parts: BTreeMap<(bool, usize, String), Flat>,
}

impl Flat {
    fn insert(&mut self, tokens: &[(bool, String)], value: &Value) {
        // Nothing of sops lies deeper; what does is nothing that we look for.
        if tokens.len() > 8 {
            return;
        }
        match tokens.split_first() {
            None => {
                let text = value.as_text().unwrap_or_default().replace("\\n", "\n");
                self.leaf = Some(Value::new(value.span.clone(), Data::Text(text.into())));
            }
            Some(((is_index, name), rest)) => {
                let index = if *is_index { name.parse().unwrap_or(usize::MAX) } else { 0 };
                self.parts.entry((*is_index, index, name.clone())).or_default().insert(rest, value);
            }
        }
    }

    fn value(self) -> Value {
        let is_list = self.parts.keys().next().is_some_and(|(is_index, ..)| *is_index);
        match self.leaf {
            Some(leaf) => leaf,
            None if is_list => {
                Value::new(0..0, Data::List(self.parts.into_values().map(Self::value).collect()))
            }
            None => {
                let entry = |((_, _, key), part): (_, Self)| super::node::Entry {
                    key,
                    key_span: 0..0,
                    value: part.value(),
                };
                Value::new(0..0, Data::Map(self.parts.into_iter().map(entry).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_names_say_where_a_value_stands() {
        let show = |key: &str| {
            let parts = tokens(key)
                .into_iter()
                .map(|(is_index, part)| format!("{}{part}", if is_index { "#" } else { "" }));
            parts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(show("age__list_0__map_recipient"), "age #0 recipient");
        assert_eq!(show("mac"), "mac");
        assert_eq!(show("a\u{0}b__map_"), "a\u{0}b ");
    }
}

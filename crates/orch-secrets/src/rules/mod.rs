//! `.sops.yaml`: who may open which file, by the first rule whose expression matches its path.

mod edit;

use thiserror::Error;

pub use edit::{add_recipient, remove_recipient};

use crate::reader::Reader;
use crate::sops::{self, Data, Policy, Selection, SopsError, Value};

/// Where a site keeps the rules, in its folder.
pub const FILE: &str = ".sops.yaml";

/// Lists of recipients that are not age's, by their names in a rule and in metadata.
const OTHERS: [(&str, &str); 7] = [
    ("pgp", "pgp"),
    ("kms", "kms"),
    ("gcp_kms", "gcp_kms"),
    ("azure_keyvault", "azure_kv"),
    ("azure_kv", "azure_kv"),
    ("hc_vault_transit_uri", "hc_vault"),
    ("hc_vault", "hc_vault"),
];

/// The rules cannot be used, or not be changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RulesError {
    /// The text is not YAML as sops reads it.
    #[error(transparent)]
    Unreadable(SopsError),
    /// A rule is not as sops takes it.
    #[error("rule {number} of `.sops.yaml`: {what}")]
    BadRule {
        /// Which rule, from one.
        number: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// No rule is for a file.
    #[error("no rule of `.sops.yaml` is for `{path}`")]
    NoRule {
        /// The file.
        path: String,
    },
    /// A rule would have no recipient left.
    #[error("`{recipient}` is the last recipient of rule {number} of `.sops.yaml`")]
    LastRecipient {
        /// The recipient.
        recipient: Reader,
        /// Which rule, from one.
        number: usize,
    },
    /// The change is not one that can be made here.
    #[error("`.sops.yaml` cannot be changed here: {what}")]
    CannotEdit {
        /// Why not.
        what: &'static str,
    },
}

impl RulesError {
    /// What to try next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::BadRule { .. } => {
                "`sops` itself must be able to read it: see its README for the form"
            }
            Self::NoRule { .. } => "add a rule with a `path_regex` for it under `creation_rules`",
            Self::LastRecipient { .. } => "add another recipient first",
            Self::CannotEdit { .. } => "change it by hand, and then try again",
        }
    }
}

/// The rules of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(Vec<CreationRule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct CreationRule {
    path_regex: Option<String>,
    policy: Policy,
}

impl Rules {
    /// Reads the text of a `.sops.yaml`.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let root = read(text)?;
        rules(&root)?
            .iter()
            .zip(1..)
            .map(|(rule, number)| creation_rule(rule, number))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// What holds for a file, by its path relative to the folder of the rules: the first rule that matches.
    pub fn policy(&self, path: &str) -> Result<&Policy, RulesError> {
        Ok(&self.0[self.matching(path)?].policy)
    }

    fn matching(&self, path: &str) -> Result<usize, RulesError> {
        for (at, rule) in self.0.iter().enumerate() {
            let Some(pattern) = &rule.path_regex else { return Ok(at) };
            let bad =
                RulesError::BadRule { number: at + 1, what: "its `path_regex` is no regular expression" };
            if sops::compile(pattern).ok_or(bad)?.is_match(path.as_bytes()) {
                return Ok(at);
            }
        }
        Err(RulesError::NoRule { path: path.to_owned() })
    }
}

fn read(text: &str) -> Result<Value, RulesError> {
    sops::read_yaml(FILE, text).map_err(RulesError::Unreadable)
}

/// The rules of the tree.
fn rules(root: &Value) -> Result<&[Value], RulesError> {
    match root.field("creation_rules").map(|value| &value.data) {
        None | Some(Data::Null) => Ok(&[]),
        Some(Data::List(rules)) => Ok(rules),
        Some(_) => Err(RulesError::BadRule { number: 1, what: "`creation_rules` is not a list" }),
    }
}

fn creation_rule(rule: &Value, number: usize) -> Result<CreationRule, RulesError> {
    let bad = |what| RulesError::BadRule { number, what };
    if !matches!(rule.data, Data::Map(_)) {
        return Err(bad("it is not a map"));
    }
    let path_regex = match rule.field("path_regex") {
        None => None,
        Some(value) => Some(value.as_text().ok_or(bad("its `path_regex` is not text"))?.to_owned()),
    };
    let path_regex = path_regex.filter(|pattern| !pattern.is_empty());
    let groups = match rule.field("key_groups").map(Value::items).filter(|groups| !groups.is_empty()) {
        Some(groups) => groups.iter().map(|group| group_of(group, 0)).collect::<Option<Vec<_>>>(),
        None => group_of(rule, 0).map(|group| vec![group]),
    };
    let groups = groups.ok_or(bad("its recipients are not texts"))?;
    let threshold = match rule.field("shamir_threshold").map(|value| &value.data) {
        None => 0,
        Some(Data::Int(number)) => {
            usize::try_from(*number).map_err(|_| bad("`shamir_threshold` is below zero"))?
        }
        Some(_) => return Err(bad("`shamir_threshold` is not a number")),
    };
    let mac_only_encrypted =
        matches!(rule.field("mac_only_encrypted").map(|value| &value.data), Some(Data::Bool(true)));
    let selection = Selection { rule: sops::selection_rule(rule).map_err(bad)?, mac_only_encrypted };
    Ok(CreationRule { path_regex, policy: Policy { groups, threshold, selection } })
}

/// The recipients of a rule, or of one of its groups, each once.
fn group_of(node: &Value, depth: usize) -> Option<Vec<Reader>> {
    let mut group: Vec<Reader> = Vec::new();
    let merged = node.field("merge").map(Value::items).unwrap_or_default();
    if depth > 8 {
        return None;
    }
    for part in merged {
        group.extend(group_of(part, depth + 1)?);
    }
    for text in texts(node.field("age"))? {
        group.push(Reader::listed(text));
    }
    for (name, list) in OTHERS {
        let others = node.field(name);
        let named = texts(others).unwrap_or_else(|| {
            others.map(|value| value.items().iter().map(|_| name).collect()).unwrap_or_default()
        });
        group.extend(named.into_iter().map(|text| Reader::other(list, text)));
    }
    let mut seen = Vec::new();
    group.retain(|reader| {
        !seen.contains(reader) && {
            seen.push(reader.clone());
            true
        }
    });
    Some(group)
}

/// One text with commas, or a list of such.
fn texts(value: Option<&Value>) -> Option<Vec<&str>> {
    let parts = |text| str::split(text, ',').map(str::trim).filter(|part| !part.is_empty());
    match value.map(|value| (&value.data, value)) {
        None | Some((Data::Null, _)) => Some(Vec::new()),
        Some((Data::Text(_), value)) => Some(parts(value.as_text()?).collect()),
        Some((Data::List(items), _)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_text).collect();
            Some(texts?.into_iter().flat_map(parts).collect())
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;

//! Whether the secrets of a site are as they should be: every mention leads to something that opens, everybody who must read a
//! file can, and nothing lies about in clear.

mod identities;
mod plain;

use std::collections::BTreeSet;
use std::fmt;

use orch_model::{AgeRecipient, Identity, Mention, SecretRef};
use orch_secrets::rules::Rules;
use orch_secrets::{Env, Reader, SopsFile, Vault, VaultError};

use super::readers::reads;
use serde::Serialize;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// What it is. Never a value.
    pub what: String,
    /// The way out.
    pub hint: String,
}

/// A node that reads sops files itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// The node.
    pub node: Identity,
    /// By what it is known.
    pub recipient: AgeRecipient,
    /// The secrets that it needs.
    pub secrets: Vec<SecretRef>,
}

/// How the secrets of a site stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// How many mentions there are.
    pub mentions: usize,
    /// How many files.
    pub files: usize,
    /// What is not as it should be, each once.
    pub findings: Vec<Finding>,
}

/// Looks at everything. Changes nothing.
pub fn audit(vault: &Vault, mentions: &[Mention], nodes: &[Reads], env: &Env) -> Audit {
    let mut findings = Findings::default();
    for mention in mentions {
        if let Err(error) = vault.secret(&mention.secret) {
            findings.add_mention(mention, &error);
        }
    }
    let files = vault.files().unwrap_or_else(|error| {
        findings.add(error.to_string(), error.hint());
        Vec::new()
    });
    let rules = rules(vault, &mut findings);
    for file in &files {
        look_at(vault, file, rules.as_ref(), &mut findings);
    }
    for node in nodes {
        look_at_reader(vault, node, &mut findings);
    }
    plain::look(vault.root(), &mut findings);
    identities::look(env, &mut findings);
    Audit { mentions: mentions.len(), files: files.len(), findings: findings.told }
}

/// One file: that it opens, and that it is for those whom the rules name.
fn look_at(vault: &Vault, file: &str, rules: Option<&Rules>, findings: &mut Findings) {
    if let Err(error) = vault.open(file).as_ref() {
        findings.add(error.to_string(), error.hint());
    }
    let sops = vault.file(file);
    let (Ok(sops), Some(rules)) = (sops.as_ref(), rules) else { return };
    match rules.policy(file) {
        Ok(policy) => {
            let meant: Vec<&Reader> = policy.groups.iter().flatten().collect();
            compare(file, sops, &meant, findings);
        }
        Err(error) => findings.add(error.to_string(), error.hint().into()),
    }
}

fn compare(file: &str, sops: &SopsFile, meant: &[&Reader], findings: &mut Findings) {
    let recipients = sops.recipients();
    let found: Vec<&Reader> = recipients.iter().collect();
    let is_in = |reader: &Reader, readers: &[&Reader]| readers.iter().any(|other| other.is_same(reader));
    for reader in meant.iter().filter(|reader| !is_in(reader, &found)) {
        let what = format!("`{file}` is not for `{reader}`, whom `.sops.yaml` names for it");
        findings.add(what, format!("`sops updatekeys {file}` adds it"));
    }
    for reader in found.iter().filter(|reader| !is_in(reader, meant)) {
        let what = format!("`{file}` is for `{reader}`, whom `.sops.yaml` does not name for it");
        let hint = format!(
            "add it there, or take it off with `sops updatekeys {file}` and `orch secrets rotate {file}`"
        );
        findings.add(what, hint);
    }
}

/// One node that reads files itself: that it can.
fn look_at_reader(vault: &Vault, node: &Reads, findings: &mut Findings) {
    let files = node.secrets.iter().filter_map(|mention| vault.find(mention).ok()).map(|spot| spot.file);
    let files: BTreeSet<String> = files.collect();
    for file in files {
        if !reads(vault, &file, &node.recipient) {
            let what = format!("node `{}` is to read `{file}` itself, and it is not for it", node.node);
            findings.add(what, "`orch config` lets it in".into());
        }
    }
}

fn rules(vault: &Vault, findings: &mut Findings) -> Option<Rules> {
    vault.rules().unwrap_or_else(|error| {
        findings.add(error.to_string(), error.hint());
        None
    })
}

/// What is not as it should be, each once.
#[derive(Default)]
struct Findings {
    told: Vec<Finding>,
    seen: BTreeSet<String>,
}

impl Findings {
    fn add(&mut self, what: String, hint: String) {
        if self.seen.insert(what.clone()) {
            self.told.push(Finding { what, hint });
        }
    }

    fn add_mention(&mut self, mention: &Mention, error: &VaultError) {
        match error {
            // What is wrong with a whole file is told of the file.
            VaultError::Sops(_) | VaultError::Unreadable { .. } => self.add(error.to_string(), error.hint()),
            _ => self.add(format!("{}: {error}", mention.by), error.hint()),
        }
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, hint } in &self.findings {
            writeln!(f, "wrong: {what}\n  hint: {hint}")?;
        }
        let counted = |count: usize, noun: &str| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {noun}{plural}")
        };
        let (mentions, files) = (counted(self.mentions, "mention"), counted(self.files, "file"));
        match self.findings.len() {
            0 => write!(f, "{mentions} and {files}: every secret is there and opens"),
            wrong => write!(f, "{mentions} and {files}: {}", counted(wrong, "thing") + " wrong"),
        }
    }
}

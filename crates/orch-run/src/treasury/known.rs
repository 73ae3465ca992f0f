//! What a fleet becomes once its secrets are known: not their values, but by what these are known again.

use std::collections::BTreeSet;

use orch_model::config::SecretDigests;
use orch_model::{Config, Fleet, HostName, Identity, KeyName, Provider};
use orch_secrets::{Vault, VaultError};

use super::TreasuryError;

/// Has the configurations of these nodes say by what the values of their secrets are known again, and says of every secret
/// why it cannot be had, each reason once. Where there is one, the configuration is left as it was.
pub fn know_secrets(
    fleet: &mut Fleet,
    vault: &Vault,
    is_meant: impl Fn(&Identity) -> bool,
) -> Vec<TreasuryError> {
    let mut problems = Problems::default();
    for node in fleet.nodes.iter_mut().filter(|node| is_meant(&node.identity)) {
        if let Some(config) = node.config.take_if(|config| !config.role.secrets.is_empty()) {
            node.config = Some(match digests(&config, vault, &mut problems) {
                Some(digests) => config.with_secrets(digests),
                None => config,
            });
        }
    }
    problems.told
}

/// Says of hosts why what opens their API cannot be had.
pub fn judge_hosts(fleet: &Fleet, vault: &Vault, is_meant: impl Fn(&HostName) -> bool) -> Vec<TreasuryError> {
    let mut problems = Problems::default();
    for (name, host) in fleet.hosts.iter().filter(|(name, _)| is_meant(name)) {
        let mention = match &host.provider {
            Provider::Proxmox(proxmox) => &proxmox.api_token,
            Provider::Hetzner(hetzner) => &hetzner.token,
            Provider::Local => continue,
        };
        if let Err(error) = vault.secret(mention) {
            problems.tell(&format!("host `{name}`"), &error);
        }
    }
    problems.told
}

/// By what the secrets of one configuration are known again.
fn digests(config: &Config, vault: &Vault, problems: &mut Problems) -> Option<SecretDigests> {
    let mut digests = SecretDigests::new();
    for secret in &config.role.secrets {
        match vault.digest(&secret.from, &context(&config.node, &secret.name)) {
            Ok(digest) => drop(digests.insert(secret.name.clone(), digest)),
            Err(error) => {
                problems.tell(&format!("secret `{}` of spec `{}`", secret.name, config.spec), &error);
            }
        }
    }
    (digests.len() == config.role.secrets.len()).then_some(digests)
}

/// The same value has another digest on another node, and under another name: nobody can tell that two have the same.
pub(super) fn context(node: &Identity, name: &KeyName) -> String {
    format!("{node} {name}")
}

/// What is wrong, each once: many secrets are in one file that cannot be opened, and many nodes have one spec.
#[derive(Default)]
struct Problems {
    told: Vec<TreasuryError>,
    seen: BTreeSet<String>,
}

impl Problems {
    fn tell(&mut self, by: &str, error: &VaultError) {
        let what = match error {
            // What is wrong with a whole file is not the fault of one secret.
            VaultError::Sops(_) | VaultError::Unreadable { .. } => error.to_string(),
            _ => format!("{by}: {error}"),
        };
        if self.seen.insert(what.clone()) {
            self.told.push(TreasuryError { what, hint: error.hint() });
        }
    }
}

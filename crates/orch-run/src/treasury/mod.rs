//! Who can open the secrets of a site: what a run asks for when a node needs them, and never before.

mod audit;
mod drafts;
mod keeper;
mod known;
mod readers;
mod site;

use std::sync::Arc;

use orch_model::{AgeRecipient, Config, Identity, KeyName, Parcel, SecretRef};
use orch_secrets::Secret;
use thiserror::Error;

pub use audit::{Audit, Finding, Reads, audit};
pub use known::{judge_hosts, know_secrets};
pub use readers::{judge_readers, minding_readers};
pub use site::SiteTreasury;

/// Who can open the secrets of a site. May take a moment: files are read, and keys are tried.
pub trait Treasury: Send + Sync {
    /// These secrets of a node's configuration, encrypted to the node. A value that is no longer the one that the
    /// configuration was made with is refused.
    fn pack(&self, config: &Config, names: &[KeyName], to: &AgeRecipient) -> Result<Parcel, TreasuryError>;

    /// What opens the API of a host, at the moment when it is used.
    fn token(&self, mention: &SecretRef) -> Result<Secret, TreasuryError>;

    /// Lets a node read the sops files itself that hold its secrets; in words, what was changed for it.
    fn admit(&self, config: &Config, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError>;

    /// Whether somebody can read a file of the site, or is named by its rules, or is who works here.
    fn is_known(&self, recipient: &AgeRecipient) -> Result<bool, TreasuryError>;

    /// Whether there are sops files at all.
    fn has_files(&self) -> bool;

    /// Takes a node off every sops file that it can read, and makes these files anew, so that what it knows opens nothing
    /// any more; in words, what was changed, and which values it could read.
    fn dismiss(&self, node: &Identity, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError>;
}

/// Secrets cannot be had. What is said names files and paths, and never a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct TreasuryError {
    /// What cannot be done, and why.
    pub what: String,
    /// The way out.
    pub hint: String,
}

/// One that has nothing: for runs whose nodes have no secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTreasury;

impl NoTreasury {
    /// It, as it is handed around.
    pub fn shared() -> Arc<dyn Treasury> {
        Arc::new(Self)
    }
}

impl Treasury for NoTreasury {
    fn pack(&self, _: &Config, names: &[KeyName], _: &AgeRecipient) -> Result<Parcel, TreasuryError> {
        let names: Vec<&str> = names.iter().map(KeyName::as_str).collect();
        let what = format!("there is nobody here who could open {}", names.join(", "));
        Err(TreasuryError { what, hint: "run `orch` where the site is".into() })
    }

    fn token(&self, mention: &SecretRef) -> Result<Secret, TreasuryError> {
        let what = format!("there is nobody here who could open `{mention}`");
        Err(TreasuryError { what, hint: "run `orch` where the site is".into() })
    }

    fn admit(&self, _: &Config, _: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        Ok(Vec::new())
    }

    fn is_known(&self, _: &AgeRecipient) -> Result<bool, TreasuryError> {
        Ok(false)
    }

    fn has_files(&self) -> bool {
        false
    }

    fn dismiss(&self, _: &Identity, _: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        Ok(Vec::new())
    }
}

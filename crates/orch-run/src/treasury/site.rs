//! The sops files of a site, for a run or for one answer.

use std::collections::BTreeSet;

use orch_model::config::Secret;
use orch_model::{AgeRecipient, Config, Identity, KeyName, Parcel, SecretRef};
use orch_secrets::{Bundle, Held, Vault, VaultError};

use super::keeper::Keeper;
use super::known::context;
use super::{Treasury, TreasuryError};

/// Opens the secrets of a site.
pub struct SiteTreasury {
    vault: Vault,
}

impl SiteTreasury {
    /// Opens what is in this vault.
    pub const fn new(vault: Vault) -> Self {
        Self { vault }
    }

    /// Does something while nobody else changes the sops files of the site.
    pub fn alone<T>(&self, act: impl FnOnce() -> T) -> Result<T, TreasuryError> {
        let _keeper = Keeper::begin(&self.vault)?;
        Ok(act())
    }

    /// Puts a value that was made here where a mention leads, unless there is one by now. Whether it was put there.
    pub fn put(&self, mention: &SecretRef, value: &orch_secrets::Secret) -> Result<bool, TreasuryError> {
        Keeper::begin(&self.vault)?.put(mention, value)
    }

    /// What it opens.
    pub const fn vault(&self) -> &Vault {
        &self.vault
    }

    /// One secret of a configuration, if it is still the one that the configuration was made with.
    fn held(&self, config: &Config, secret: &Secret) -> Result<Held, TreasuryError> {
        let failed = |error: VaultError| TreasuryError {
            what: format!("secret `{}`: {error}", secret.name),
            hint: error.hint(),
        };
        let digest = self.vault.digest(&secret.from, &context(&config.node, &secret.name)).map_err(failed)?;
        if config.secret_digests().get(&secret.name) != Some(&digest) {
            let what = format!("secret `{}` was changed since the plan was made", secret.name);
            return Err(TreasuryError { what, hint: "run again, for the value that it has now".into() });
        }
        Ok(Held { digest, value: self.vault.secret(&secret.from).map_err(failed)? })
    }
}

impl Treasury for SiteTreasury {
    fn token(&self, mention: &SecretRef) -> Result<orch_secrets::Secret, TreasuryError> {
        self.vault
            .secret(mention)
            .map_err(|error| TreasuryError { what: error.to_string(), hint: error.hint() })
    }

    fn pack(&self, config: &Config, names: &[KeyName], to: &AgeRecipient) -> Result<Parcel, TreasuryError> {
        let mut bundle = Bundle::default();
        for name in names {
            let secret = config.role.secrets.iter().find(|secret| secret.name == *name);
            // Nobody is given what is not its own, whatever it asks for.
            let stranger = || TreasuryError {
                what: format!("`{}` asked for a secret that its spec does not name", config.node),
                hint: "look at what runs on that node".into(),
            };
            bundle.insert(name.clone(), self.held(config, secret.ok_or_else(stranger)?)?);
        }
        let unsealed = |error: orch_secrets::BundleError| TreasuryError {
            what: format!("the secrets of `{}` cannot be encrypted to it: {error}", config.node),
            hint: "`destroy` and `create` give the node new keys".into(),
        };
        bundle.pack(to).map_err(unsealed)
    }

    fn admit(&self, config: &Config, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        let mut files = BTreeSet::new();
        for secret in &config.role.secrets {
            let spot = self.vault.find(&secret.from);
            let spot = spot.map_err(|error| TreasuryError { what: error.to_string(), hint: error.hint() })?;
            files.insert(spot.file);
        }
        if files.is_empty() {
            return Ok(Vec::new());
        }
        Keeper::begin(&self.vault)?.admit(files, recipient)
    }

    fn is_known(&self, recipient: &AgeRecipient) -> Result<bool, TreasuryError> {
        Keeper::looking(&self.vault).is_known(recipient)
    }

    fn has_files(&self) -> bool {
        self.vault.files().is_ok_and(|files| !files.is_empty())
    }

    fn dismiss(&self, _node: &Identity, recipient: &AgeRecipient) -> Result<Vec<String>, TreasuryError> {
        Keeper::begin(&self.vault)?.dismiss(recipient)
    }
}

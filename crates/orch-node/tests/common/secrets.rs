//! Secrets of a node, and a driver that brings them.

use std::collections::BTreeMap;
use std::process::Output;

use orch_model::config::{Role, Secret};
use orch_model::{
    AgeRecipient, ApplyReport, Config, Delivery, Digest, KeyName, Lacking, NodeKeys, Parcel, SecretDigest,
    StorePath,
};
use orch_secrets::seal::Identity;
use orch_secrets::{Bundle, Held};

use super::{Tree, config_of, report};

/// What is in every value, and must be found nowhere else.
pub(crate) const MARKER: &str = "hunter2-in-clear";

/// A secret of root's.
pub(crate) fn secret(name: &str, path: &str) -> Secret {
    Secret {
        name: name.parse().unwrap(),
        from: format!("secret:{name}").parse().unwrap(),
        path: path.parse().unwrap(),
        mode: "0400".parse().unwrap(),
        owner: "root".parse().unwrap(),
    }
}

/// What a site has: a role, and the values of its secrets.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) role: Role,
    pub(crate) values: BTreeMap<KeyName, String>,
    /// What it evaluates to, where it is NixOS.
    pub(crate) system: Option<StorePath>,
}

impl Site {
    /// One with these secrets.
    pub(crate) fn of(secrets: Vec<Secret>) -> Self {
        let value = |secret: &Secret| (secret.name.clone(), format!("{MARKER} of {}", secret.name));
        let values = secrets.iter().map(value).collect();
        Self { role: Role { secrets, ..super::role() }, values, system: None }
    }

    /// One with a secret in memory.
    pub(crate) fn with_one() -> Self {
        Self::of(vec![secret("db", "/run/secrets/db")])
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.parse().unwrap(), value.into());
    }

    pub(crate) fn config(&self) -> Config {
        let digests = self.values.iter().map(|(name, value)| (name.clone(), digest_of(value)));
        let config = config_of(&self.role).with_secrets(digests.collect());
        match &self.system {
            Some(system) => config.with_system(system.clone()),
            None => config,
        }
    }

    /// The secrets of these names, sealed for somebody.
    pub(crate) fn pack(&self, names: &[KeyName], age: &AgeRecipient) -> Parcel {
        let mut bundle = Bundle::default();
        for name in names {
            bundle.insert(name.clone(), held(&self.values[name]));
        }
        bundle.pack(age).unwrap()
    }

    pub(crate) fn delivery(&self, parcel: Option<Parcel>) -> Vec<u8> {
        serde_json::to_vec(&Delivery { config: self.config(), parcel }).unwrap()
    }
}

pub(crate) fn held(value: &str) -> Held {
    Held { digest: digest_of(value), value: orch_secrets::Secret::from(value.to_owned()) }
}

pub(crate) fn digest_of(value: &str) -> SecretDigest {
    Digest::of_bytes(value.as_bytes()).to_string()[..32].parse().unwrap()
}

/// What a node answered to a push.
pub(crate) struct Answer(pub(crate) Output);

impl Answer {
    pub(crate) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }

    fn line(&self, number: usize) -> &[u8] {
        let mut lines = self.0.stdout.split(|byte| *byte == b'\n');
        lines.nth(number).unwrap_or_else(|| panic!("no line {number}: {:?}", self.0))
    }

    pub(crate) fn keys(&self) -> NodeKeys {
        serde_json::from_slice(self.line(0)).unwrap_or_else(|error| panic!("{error}: {:?}", self.0))
    }

    pub(crate) fn lacking(&self) -> Vec<KeyName> {
        let lacking: Result<Lacking, _> = serde_json::from_slice(self.line(1));
        lacking.unwrap_or_else(|error| panic!("{error}: {:?}", self.0)).lacking
    }

    pub(crate) fn report(&self) -> ApplyReport {
        report(&self.0)
    }
}

impl Tree {
    pub(crate) fn bring(&self, site: &Site, parcel: Option<Parcel>) -> Answer {
        Answer(self.run(&["push"], &site.delivery(parcel)))
    }

    /// Pushes as a driver does: what is lacking is brought the second time.
    pub(crate) fn give(&self, site: &Site) -> ApplyReport {
        let first = self.bring(site, None);
        if first.code() != Some(6) {
            return first.report();
        }
        let parcel = site.pack(&first.lacking(), &first.keys().age);
        self.bring(site, Some(parcel)).report()
    }

    /// What the node holds, opened by its own identity.
    pub(crate) fn vault(&self) -> Bundle {
        let identity: Identity = self.read("/var/lib/orch/age.key").parse().unwrap();
        match std::fs::read(self.at("/var/lib/orch/secrets.age")) {
            Ok(sealed) => Bundle::open(&identity, &sealed).unwrap(),
            Err(_) => Bundle::default(),
        }
    }

    pub(crate) fn held_names(&self) -> Vec<String> {
        self.vault().iter().map(|(name, _, _)| name.to_string()).collect()
    }

    /// The files of the tree in which something is, as this process sees it.
    pub(crate) fn files_with(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.at("/")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_symlink() {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.is_file() {
                    let content = std::fs::read(&path).unwrap();
                    if content.windows(text.len()).any(|window| window == text.as_bytes()) {
                        found.push(format!("/{}", path.strip_prefix(self.at("/")).unwrap().display()));
                    }
                }
            }
        }
        found.sort();
        found
    }
}

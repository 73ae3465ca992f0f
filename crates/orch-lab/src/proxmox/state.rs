//! Everything that a Proxmox VE remembers, and the file in which it does: killed at any moment, it goes on where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::guest::Guest;
use super::settings::ProxmoxSettings;

/// Everything that is remembered.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct State {
    /// What tickets are signed with.
    pub(super) key: String,
    pub(super) guests: BTreeMap<u32, Guest>,
    /// The volumes by their full names.
    pub(super) volumes: BTreeMap<String, Volume>,
    /// The tasks, the oldest first.
    pub(super) tasks: Vec<Task>,
    /// The tokens by their full names: `root@pam!orch`.
    pub(super) tokens: BTreeMap<String, Token>,
    pub(super) acl: BTreeSet<Grant>,
    pub(super) roles: BTreeMap<String, BTreeSet<String>>,
    pub(super) pools: BTreeMap<String, Pool>,
    /// What of the settings was put there once, and may have been removed since.
    #[serde(default)]
    planted: BTreeSet<String>,
    /// How many tasks were ever begun.
    pub(super) begun: u32,
}

/// A volume of a storage.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Volume {
    pub(super) content: String,
    pub(super) format: String,
    pub(super) bytes: u64,
    pub(super) owner: Option<u32>,
    pub(super) parent: Option<String>,
    pub(super) made: u64,
}

/// A task.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Task {
    pub(super) upid: String,
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) user: String,
    pub(super) token: Option<String>,
    pub(super) pid: u32,
    pub(super) begun: u64,
    pub(super) ended: Option<u64>,
    /// `OK`, or what it died of.
    pub(super) exit: Option<String>,
}

/// An API token.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Token {
    pub(super) secret: String,
    pub(super) is_separated: bool,
    /// In seconds; 0 for never.
    pub(super) expire: u64,
    pub(super) comment: Option<String>,
}

/// One line of the list of who may do what where.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    pub(super) path: String,
    /// A user or a token.
    pub(super) who: String,
    pub(super) role: String,
    pub(super) propagates: bool,
}

/// A pool.
#[derive(Serialize, Deserialize, Clone, Default)]
pub(super) struct Pool {
    pub(super) comment: Option<String>,
    pub(super) guests: BTreeSet<u32>,
    pub(super) storages: BTreeSet<String>,
}

impl State {
    /// What was kept, or what the settings begin with.
    pub(super) fn load(settings: &ProxmoxSettings) -> std::io::Result<Self> {
        let kept = settings.state.as_deref().map(std::fs::read);
        let mut state = match kept {
            Some(Ok(bytes)) => serde_json::from_slice::<Self>(&bytes)?,
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => Self { key: uuid::Uuid::new_v4().simple().to_string(), ..Self::default() },
        };
        state.plant(settings);
        // A worker dies with its daemon, and nobody writes the last line of its log.
        for task in state.tasks.iter_mut().filter(|task| task.exit.is_none()) {
            task.exit = Some("unexpected status".into());
            task.ended = Some(seconds());
        }
        Ok(state)
    }

    /// Puts there what the settings say is there from the beginning, once; tokens are always as the settings say.
    fn plant(&mut self, settings: &ProxmoxSettings) {
        for token in &settings.tokens {
            let name = format!("{}!{}", token.user, token.id);
            let planted = Token {
                secret: token.secret.clone(),
                is_separated: token.roles.is_some(),
                expire: 0,
                comment: None,
            };
            for (path, role) in token.roles.iter().flatten() {
                let (path, role) = (path.clone(), role.clone());
                self.acl.insert(Grant { path, who: name.clone(), role, propagates: true });
            }
            self.tokens.insert(name, planted);
        }
        for (name, bytes) in &settings.volumes {
            if self.planted.insert(name.clone()) {
                self.volumes.insert(name.clone(), Volume::file(name, *bytes));
            }
        }
        for template in &settings.templates {
            let is_new = self.planted.insert(template.vmid.to_string());
            if is_new && !self.guests.contains_key(&template.vmid) {
                Guest::plant(self, settings, template);
            }
        }
    }

    /// Writes everything down, whole or not at all.
    pub(super) fn keep(&self, path: &Path) -> std::io::Result<()> {
        let beside = path.with_extension("new");
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()?;
        std::fs::rename(beside, path)
    }

    pub(super) fn pool_of(&self, vmid: u32) -> Option<&str> {
        self.pools.iter().find(|(_, pool)| pool.guests.contains(&vmid)).map(|(id, _)| id.as_str())
    }

    /// How many bytes of a storage are taken.
    pub(super) fn used(&self, storage: &str) -> u64 {
        // A layer above another volume takes nothing until something is written.
        let whole = self.volumes.iter().filter(|(_, volume)| volume.parent.is_none());
        whole.filter(|(name, _)| storage_of(name) == storage).map(|(_, volume)| volume.bytes).sum()
    }
}

impl Volume {
    /// A file that belongs to no machine, such as an image.
    pub(super) fn file(name: &str, bytes: u64) -> Self {
        let content =
            name.split_once(':').and_then(|(_, rest)| rest.split_once('/')).map_or("", |(kind, _)| kind);
        let format = name.rsplit_once('.').map_or("raw", |(_, ending)| ending);
        let (content, format) = (content.to_owned(), format.to_owned());
        Self { content, format, bytes, owner: None, parent: None, made: seconds() }
    }
}

impl Task {
    pub(super) fn show(&self, node: &str) -> Json {
        let mut shown = json!({
            "upid": self.upid, "node": node, "type": self.kind, "id": self.id, "user": self.user,
            "pid": self.pid, "pstart": self.pid, "starttime": self.begun,
        });
        if let Some(token) = &self.token {
            shown["tokenid"] = token.as_str().into();
        }
        shown
    }

    pub(super) fn is_of(&self, caller: &str) -> bool {
        let full =
            self.token.as_ref().map_or_else(|| self.user.clone(), |token| format!("{}!{token}", self.user));
        full == caller || self.user == caller
    }
}

/// The storage that a volume's name begins with.
pub(super) fn storage_of(volume: &str) -> &str {
    volume.split_once(':').map_or("", |(storage, _)| storage)
}

/// The time since 1970 in milliseconds.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time since 1970 in seconds.
pub(super) fn seconds() -> u64 {
    now() / 1000
}

//! The things that a configuration asks for. Each can be looked at and changed, and knows nothing of the others.

mod absent;
mod authorized_keys;
mod fail2ban;
mod file;
mod hostname;
mod package;
mod secret;
mod service;
mod ssh_trial;
mod sshd;
mod sudo;
mod system;
mod timezone;
mod user;

pub(crate) use package::SHARES_PROGRAMS;

use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;

use orch_model::{Config, NodePath, UserName};

use crate::accounts;
use crate::error::ApplyError;
use crate::node::Node;

/// One thing that a configuration asks for.
pub(crate) trait Resource {
    /// What kind of thing, as reports say it.
    fn kind(&self) -> &'static str;

    /// Which one.
    fn name(&self) -> String;

    /// Compares what is with what should be. Changes nothing at all.
    fn look(&self, node: &Node) -> Result<Look, ApplyError>;

    /// Makes it as it should be; called only where it differs. May be repeated after a cut at any moment.
    fn change(&self, node: &Node) -> Result<(), ApplyError>;
}

/// What a look at a resource says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is as it should be.
    AsWanted,
    /// It is not; in words, how.
    Differs(String),
    /// It cannot be had on this kind of node, which is nobody's fault; in words, why.
    Skip(String),
}

impl Look {
    /// As wanted, unless there is a difference to tell.
    pub(crate) fn of(difference: Option<String>) -> Self {
        difference.map_or(Self::AsWanted, Self::Differs)
    }

    pub(crate) fn skip(why: &str) -> Self {
        Self::Skip(why.into())
    }
}

/// How much of a configuration is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// What a NixOS system finds when it is activated: its secrets.
    BeforeSystem,
}

/// Everything that a configuration asks for, in the order in which it is made: what others build on comes first. On NixOS
/// that is secrets and the system itself, which says all the rest.
pub(crate) fn all(node: &Node, config: &Config, extent: Extent) -> Vec<Box<dyn Resource>> {
    let claims = Rc::new(Claims::of(config));
    match (extent, config.system()) {
        // What is asked for no more stays: the system before may need it still, and may be needed again.
        (Extent::BeforeSystem, _) => secret::all(config, &claims).collect(),
        (Extent::Whole, None) if config.role.nixos.is_none() => all_of_files(node, config, claims),
        // Its files are those of its system, and writing them would be undone or be in its way.
        (Extent::Whole, None) => {
            let mut all = secrets(node, config, &claims);
            all.push(absent::system());
            all
        }
        (Extent::Whole, Some(system)) => {
            let mut all = secrets(node, config, &claims);
            all.push(Box::new(system::System::new(system.clone())));
            all
        }
    }
}

/// The same for a node that is not NixOS.
fn all_of_files(node: &Node, config: &Config, claims: Rc<Claims>) -> Vec<Box<dyn Resource>> {
    let role = &config.role;
    let mut all: Vec<Box<dyn Resource>> = vec![
        Box::new(hostname::Hostname::new(config, Rc::clone(&claims))),
        Box::new(timezone::Timezone::new(role.timezone.clone())),
    ];
    all.extend(package::all(&role.packages));
    for user in &role.users {
        all.push(Box::new(user::Account::new(user.name.clone())));
        all.push(Box::new(authorized_keys::AuthorizedKeys::new(user)));
        all.push(Box::new(sudo::Sudo::new(user, role.sudo_nopasswd)));
    }
    all.extend(role.files.iter().map(|file| -> Box<dyn Resource> {
        Box::new(file::PlainFile::new(file.clone(), Rc::clone(&claims)))
    }));
    all.extend(secrets(node, config, &claims));
    // After the files: some of them may be what these servers read.
    all.push(Box::new(sshd::Sshd::new(&role.ssh, claims)));
    all.push(Box::new(fail2ban::Fail2ban::new(role.fail2ban, role.ssh.port)));
    all.extend(service::all(&role.services));
    all.extend(absent::all(config));
    all
}

/// What a configuration says of secrets. What is asked for no more goes first: it may be in the way of what is.
fn secrets(node: &Node, config: &Config, claims: &Rc<Claims>) -> Vec<Box<dyn Resource>> {
    let mut all: Vec<Box<dyn Resource>> = Vec::new();
    if let Some(removed) = secret::Removed::of(node, config, claims) {
        all.push(Box::new(removed));
    }
    all.extend(secret::all(config, claims));
    if let Some(boot) = secret::Boot::of(node, config) {
        all.push(Box::new(boot));
    }
    all
}

/// The secrets of a configuration alone, for a node that has everything else already.
pub(crate) fn only_secrets(config: &Config) -> Vec<Box<dyn Resource>> {
    secret::all(config, &Rc::new(Claims::of(config))).collect()
}

/// What the configuration has a say in besides one resource: where its files and secrets lie, and whose keys it sets. What else writes
/// there leaves these to them, or is refused.
#[derive(Debug)]
pub(crate) struct Claims {
    files: Vec<NodePath>,
    secrets: Vec<NodePath>,
    users: Vec<UserName>,
}

impl Claims {
    fn of(config: &Config) -> Self {
        let role = &config.role;
        Self {
            files: role.files.iter().map(|file| file.path.clone()).collect(),
            secrets: role.secrets.iter().map(|secret| secret.path.clone()).collect(),
            users: role.users.iter().map(|user| user.name.clone()).collect(),
        }
    }

    /// Whether a file of the configuration lies there, whatever its path is called.
    pub(crate) fn hold(&self, node: &Node, path: &str) -> bool {
        let path = Path::new(path);
        count(node, &self.files, &node.place_of(path).unwrap_or_else(|_| path.into())) > 0
    }

    /// Whether two do. The links above the place are followed already.
    pub(crate) fn hold_twice(&self, node: &Node, place: &Path) -> bool {
        count(node, &self.files, place) > 1
    }

    /// Whether two secrets do. The links above the place are followed already.
    pub(crate) fn hold_secrets_twice(&self, node: &Node, place: &Path) -> bool {
        count(node, &self.secrets, place) > 1
    }

    /// Whether it is where the keys of a user of the configuration are.
    pub(crate) fn hold_keys(&self, node: &Node, place: &Path) -> Result<bool, ApplyError> {
        let is_named_so = place.file_name() == Some(OsStr::new("authorized_keys"));
        for user in self.users.iter().filter(|_| is_named_so) {
            let keys = accounts::home(node, user)?.join(".ssh/authorized_keys");
            if place == keys || node.place_of(&keys).is_ok_and(|keys| keys == place) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How many of these paths lead to a place.
fn count(node: &Node, paths: &[NodePath], place: &Path) -> usize {
    // A link above a file can lead anywhere, and yet its own name stays.
    let named = paths.iter().map(|path| Path::new(path.as_str()));
    let named = named.filter(|path| path.file_name() == place.file_name());
    named.filter(|path| node.place_of(path).is_ok_and(|found| found == place)).count()
}

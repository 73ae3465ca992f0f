//! The things that a configuration asks for. Each can be looked at and changed, and knows nothing of the others.

mod absent;
mod authorized_keys;
mod fail2ban;
mod file;
mod hostname;
mod package;
mod service;
mod sshd;
mod sudo;
mod timezone;
mod user;

pub(crate) use package::SHARES_PROGRAMS;

use std::collections::BTreeSet;
use std::rc::Rc;

use orch_model::{Config, NodePath};

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

/// Everything that a configuration asks for, in the order in which it is made: what others build on comes first.
pub(crate) fn all(config: &Config) -> Vec<Box<dyn Resource>> {
    let role = &config.role;
    let claims = Rc::new(Claims::of(config));
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
    all.push(Box::new(sshd::Sshd::new(&role.ssh, Rc::clone(&claims))));
    all.push(Box::new(fail2ban::Fail2ban::new(role.fail2ban, role.ssh.port)));
    all.extend(role.files.iter().map(|file| -> Box<dyn Resource> {
        Box::new(file::PlainFile::new(file.clone(), Rc::clone(&claims)))
    }));
    all.extend(service::all(&role.services));
    all.extend(absent::all(config));
    all
}

/// The paths that files of the configuration lie at: what else writes there leaves these to them.
#[derive(Debug)]
pub(crate) struct Claims {
    once: BTreeSet<NodePath>,
    twice: BTreeSet<NodePath>,
}

impl Claims {
    fn of(config: &Config) -> Self {
        let mut claims = Self { once: BTreeSet::new(), twice: BTreeSet::new() };
        for file in &config.role.files {
            if !claims.once.insert(file.path.clone()) {
                claims.twice.insert(file.path.clone());
            }
        }
        claims
    }

    /// Whether a file of the configuration lies there.
    pub(crate) fn hold(&self, path: &str) -> bool {
        self.once.contains(path)
    }

    /// Whether two do.
    pub(crate) fn hold_twice(&self, path: &NodePath) -> bool {
        self.twice.contains(path)
    }
}

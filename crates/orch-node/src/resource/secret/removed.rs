//! Secrets that orch has put on the node and that its configuration asks for no more: they are taken away, where what is
//! there is still what orch put.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use orch_model::{Config, KeyName, NodePath};

use super::paths::Paths;
use super::place::{self, Place};
use crate::error::ApplyError;
use crate::node::{Found, Node, split};
use crate::resource::{Claims, Look, Resource};
use crate::state::State;

/// What the configuration asks for no more.
pub(in crate::resource) struct Removed {
    wanted: Vec<(KeyName, NodePath)>,
    claims: Rc<Claims>,
}

/// What is on the node and should not be.
#[derive(Default)]
struct Strays {
    /// Where orch has put one.
    paths: Vec<NodePath>,
    /// What is in the folder of values.
    values: Vec<OsString>,
}

impl Removed {
    /// Nothing where orch never put a secret on the node and is not asked to.
    pub(in crate::resource) fn of(node: &Node, config: &Config, claims: &Rc<Claims>) -> Option<Self> {
        let secrets = config.role.secrets.iter();
        let wanted: Vec<_> = secrets.map(|secret| (secret.name.clone(), secret.path.clone())).collect();
        let removed = Self { wanted, claims: Rc::clone(claims) };
        // What cannot be looked at is told by the look.
        let has_none = removed.wanted.is_empty() && removed.strays(node).is_ok_and(|strays| strays.is_none());
        (!has_none).then_some(removed)
    }

    fn strays(&self, node: &Node) -> Result<Strays, ApplyError> {
        let Some(state) = State::find(node)? else { return Ok(Strays::default()) };
        let known = Paths::read(&state)?.paths;
        let paths = known.into_iter().filter(|path| !self.wants(node, path)).collect();
        let linked = |(name, path): &(KeyName, NodePath)| {
            let is_linked =
                Place::of(node, Path::new(path.as_str())).is_ok_and(|place| place == Place::Linked);
            is_linked.then(|| OsString::from(name.as_str()))
        };
        let linked: Vec<OsString> = self.wanted.iter().filter_map(linked).collect();
        let folder = node.folder(Path::new(place::FOLDER))?;
        let mut values = folder.map_or_else(|| Ok(Vec::new()), |folder| folder.names())?;
        values.retain(|name| !linked.contains(name));
        Ok(Strays { paths, values })
    }

    /// Whether a secret is wanted there, whatever its path is called.
    fn wants(&self, node: &Node, path: &NodePath) -> bool {
        let place = place_of(node, path);
        self.wanted.iter().any(|(_, wanted)| wanted == path || place_of(node, wanted) == place)
    }

    /// Takes away what orch put there. Something else is somebody else's.
    fn take_away(&self, node: &Node, path: &NodePath) -> Result<(), ApplyError> {
        if self.claims.hold(node, path.as_str()) {
            return Ok(());
        }
        let (above, name) = split(Path::new(path.as_str())).expect("a path of a secret has a name");
        let Some(folder) = node.folder(above)? else { return Ok(()) };
        if folder.is_in_memory()? {
            folder.remove_draft(name)?;
        }
        match folder.find(name, 0)? {
            Found::File { .. } if folder.is_in_memory()? => folder.remove(name),
            Found::Link(target) if target.starts_with(place::FOLDER) => folder.remove(name),
            _ => Ok(()),
        }
    }
}

fn place_of(node: &Node, path: &NodePath) -> PathBuf {
    let path = Path::new(path.as_str());
    node.place_of(path).unwrap_or_else(|_| path.into())
}

impl Strays {
    fn is_none(&self) -> bool {
        self.paths.is_empty() && self.values.is_empty()
    }

    fn words(&self) -> Option<String> {
        let paths: Vec<String> = self.paths.iter().map(|path| format!("`{path}`")).collect();
        match (paths.as_slice(), self.values.is_empty()) {
            ([], true) => None,
            ([], false) => Some("values are there that nobody asks for".into()),
            (paths, _) => Some(format!("nobody asks for {} any more", paths.join(", "))),
        }
    }
}

impl Resource for Removed {
    fn kind(&self) -> &'static str {
        "secrets"
    }

    fn name(&self) -> String {
        "removed".into()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        Ok(Look::of(self.strays(node)?.words()))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let (strays, state) = (self.strays(node)?, State::make(node)?);
        for path in &strays.paths {
            self.take_away(node, path)?;
        }
        if let Some(folder) = node.folder(Path::new(place::FOLDER))? {
            strays.values.iter().try_for_each(|name| folder.remove(name))?;
        }
        // Forgotten last: a cut before that finds them again.
        let mut known = Paths::read(&state)?;
        known.paths.retain(|path| !strays.paths.contains(path));
        if strays.paths.is_empty() { Ok(()) } else { known.keep(&state) }
    }
}

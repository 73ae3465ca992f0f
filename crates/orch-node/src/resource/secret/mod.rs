//! A secret of the configuration: its value, its mode, its owner.
//!
//! It is treated as a file is, but for two things: its value comes from what the node holds sealed, and in clear it is in
//! memory alone. Nothing that is said of it says anything of its value.

mod boot;
mod paths;
mod place;
mod removed;

pub(super) use boot::Boot;
pub(super) use removed::Removed;

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;

use orch_model::Config;
use orch_model::config::{Secret as Asked, SecretDigests};
use orch_secrets::{Bundle, Secret};

use super::{Claims, Look, Resource, file};
use crate::accounts;
use crate::error::ApplyError;
use crate::node::{Folder, Found, Node, Owner, Wanted, split};
use crate::state::State;
use crate::vault;
use paths::Paths;
use place::Place;

/// The secrets of a configuration.
pub(super) fn all(config: &Config, claims: &Rc<Claims>) -> impl Iterator<Item = Box<dyn Resource>> {
    let digests = config.secret_digests().clone();
    let values = Rc::new(Values { digests, held: OnceCell::new() });
    config.role.secrets.iter().map(move |asked| -> Box<dyn Resource> {
        let mode = u32::from_str_radix(asked.mode.as_str(), 8).expect("a file mode is octal digits");
        let (values, claims) = (Rc::clone(&values), Rc::clone(claims));
        Box::new(Given { asked: asked.clone(), mode, values, claims })
    })
}

/// A secret that is given to a node.
struct Given {
    asked: Asked,
    mode: u32,
    values: Rc<Values>,
    claims: Rc<Claims>,
}

/// What the node holds, opened when the first value is asked for.
struct Values {
    digests: SecretDigests,
    held: OnceCell<Result<Bundle, String>>,
}

impl Values {
    fn of(&self, node: &Node, asked: &Asked) -> Result<&Secret, ApplyError> {
        let impossible = |why: &str| Err(ApplyError::Impossible(why.into()));
        let Some(digest) = self.digests.get(&asked.name) else {
            return impossible("the value of this secret was not opened where the configuration was made");
        };
        let open = || -> Result<Bundle, ApplyError> {
            State::find(node)?.map_or_else(|| Ok(Bundle::default()), |state| vault::open(&state))
        };
        match self.held.get_or_init(|| open().map_err(|error| error.in_full())) {
            Ok(held) => match held.get(&asked.name, digest) {
                Some(value) => Ok(value),
                None => impossible("the value of this secret was not brought to this node"),
            },
            Err(why) => impossible(why),
        }
    }
}

impl Given {
    fn path(&self) -> &Path {
        Path::new(self.asked.path.as_str())
    }

    /// Its place once links are followed must be as fit as the one that was written, and nobody else's.
    fn check_path(&self, node: &Node) -> Result<(), ApplyError> {
        file::check_place(self.path())?;
        let place = node.place_of(self.path())?;
        file::check_place(&place)?;
        if self.claims.hold(node, self.asked.path.as_str()) {
            return Err(ApplyError::refused(self.path(), "the configuration has a file there too"));
        }
        if self.claims.hold_secrets_twice(node, &place) {
            return Err(ApplyError::refused(self.path(), "the configuration has two secrets there"));
        }
        file::check_keys(node, &self.claims, &place)
    }

    /// Says how what is at its path differs, and what holds its value where that is elsewhere.
    fn difference(&self, node: &Node, wanted: &Value<'_>) -> Result<Option<String>, ApplyError> {
        let (above, name) = split(self.path()).expect("a path of a secret has a name");
        let Some(folder) = node.folder(above)? else { return Ok(Some("it is not there".into())) };
        match Place::of(node, self.path())? {
            Place::Itself => {
                place::must_be_closed(&folder, wanted.owner)?;
                wanted.difference(&folder, name)
            }
            Place::Linked => match folder.find(name, 0)? {
                Found::Link(target) if target == place::target(&self.asked.name) => {
                    let name = self.asked.name.as_str().as_ref();
                    let folder = node.folder(place::FOLDER.as_ref())?;
                    folder
                        .map_or(Ok(Some("it is not there".into())), |folder| wanted.difference(&folder, name))
                }
                Found::File { .. } => Ok(Some("it is a file, and not a link into memory".into())),
                // Said as of any file.
                _ => wanted.difference(&folder, name),
            },
        }
    }
}

/// A secret as it should be found.
struct Value<'v> {
    clear: &'v Secret,
    mode: u32,
    owner: Owner,
}

impl Value<'_> {
    fn file(&self) -> Wanted<'_> {
        Wanted { content: self.clear.expose(), mode: self.mode, owner: self.owner }
    }

    fn difference(&self, folder: &Folder, name: &OsStr) -> Result<Option<String>, ApplyError> {
        let differs = |found| (Secret::new(found) != *self.clear).then_some("its value differs");
        folder.compare(name, &self.file(), differs)
    }
}

impl Resource for Given {
    fn kind(&self) -> &'static str {
        "secret"
    }

    fn name(&self) -> String {
        self.asked.name.to_string()
    }

    fn look(&self, node: &Node) -> Result<Look, ApplyError> {
        self.check_path(node)?;
        if !accounts::is_possible(node, &self.asked.owner) {
            return Ok(Look::skip(accounts::NO_ACCOUNTS));
        }
        let owner = accounts::owner(node, &self.asked.owner)?;
        // Before its value is looked for: where it has no place, that is what is to be said.
        Place::of(node, self.path())?;
        let clear = self.values.of(node, &self.asked)?;
        Ok(Look::of(self.difference(node, &Value { clear, mode: self.mode, owner })?))
    }

    fn change(&self, node: &Node) -> Result<(), ApplyError> {
        let owner = accounts::owner(node, &self.asked.owner)?;
        let wanted = Value { clear: self.values.of(node, &self.asked)?, mode: self.mode, owner };
        // Written down before it is put there, so that it is found again when nobody wants it any more.
        Paths::add(&State::make(node)?, &self.asked.path)?;
        let place = Place::of(node, self.path())?;
        if place == Place::Linked {
            place::folder(node)?.write(self.asked.name.as_str().as_ref(), &wanted.file())?;
        }
        let (above, name) = split(self.path()).expect("a path of a secret has a name");
        let folder = node.make_folder_where(above, 0o755, &file::check_place)?;
        file::check_place(&folder.path().join(name))?;
        match place {
            Place::Linked => folder.link(name, &place::target(&self.asked.name)),
            Place::Itself => {
                place::must_be_in_memory(&folder)?;
                place::must_be_closed(&folder, owner)?;
                folder.write(name, &wanted.file())
            }
        }
    }
}

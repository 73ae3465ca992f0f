//! A file that orch writes whole for a purpose of its own, in a folder that belongs to root.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use crate::error::ApplyError;
use crate::node::{Folder, Found, Node, Owner, Wanted, split};

/// No file that orch reads as a whole is larger: the largest is a configuration, whose size has a limit of its own.
const LARGEST: usize = 64 << 20;

/// A file of root's, with what it should hold.
pub(crate) struct SettingsFile<'a> {
    path: &'a Path,
    content: Cow<'a, [u8]>,
    mode: u32,
}

impl<'a> SettingsFile<'a> {
    pub(crate) fn new(path: &'a (impl AsRef<Path> + ?Sized), content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.as_ref(), content: Cow::Owned(content.into()), mode: 0o644 }
    }

    pub(crate) fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    /// Says how what is there differs from what should be.
    pub(crate) fn difference(&self, node: &Node) -> Result<Option<String>, ApplyError> {
        let (folder, name) = self.place();
        match node.folder(folder)? {
            Some(folder) => folder.difference(name, &self.wanted()),
            None => Ok(Some("it is not there".into())),
        }
    }

    pub(crate) fn write(&self, node: &Node) -> Result<(), ApplyError> {
        self.write_checked(node, |_| Ok(()))
    }

    /// Writes it once `check` has found its draft good. The draft is handed over as a path of the node.
    pub(crate) fn write_checked(
        &self,
        node: &Node,
        check: impl FnOnce(&Path) -> Result<(), ApplyError>,
    ) -> Result<(), ApplyError> {
        let (folder, name) = self.place();
        let folder = node.make_folder(folder, 0o755)?;
        folder.write_checked(name, &self.wanted(), |draft| check(&folder.path().join(draft)))
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { content: &self.content, mode: self.mode, owner: Owner::ROOT }
    }

    fn place(&self) -> (&Path, &OsStr) {
        split(self.path).expect("a file of orch's own has a name")
    }
}

impl Node {
    /// Reads a file of root's; nothing where it is not there.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ApplyError> {
        let (folder, name) = split(path).expect("a file has a name");
        match self.folder(folder)? {
            Some(folder) => self.read_in(&folder, name),
            None => Ok(None),
        }
    }

    /// Reads a file by its name; nothing where it is not there. A link is followed, once, where nobody but root could have
    /// put it there.
    pub(crate) fn read_in(&self, folder: &Folder, name: &OsStr) -> Result<Option<Vec<u8>>, ApplyError> {
        let target = match folder.find(name, 0)? {
            Found::Link(target) if folder.trusts_link(name)? => folder.path().join(target),
            _ => return folder.text(name),
        };
        let Some((above, name)) = split(&target) else { return Ok(None) };
        self.folder(above)?.map_or(Ok(None), |folder| folder.text(name))
    }

    /// The permissions of a file of root's; nothing where it is not there.
    pub(crate) fn mode(&self, path: &Path) -> Result<Option<u32>, ApplyError> {
        let (folder, name) = split(path).expect("a file has a name");
        Ok(match self.folder(folder)?.map(|folder| folder.find(name, 0)).transpose()? {
            Some(Found::File { mode, .. }) => Some(mode),
            _ => None,
        })
    }

    /// Takes a file of root's away, where it is there.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), ApplyError> {
        let (folder, name) = split(path).expect("a file has a name");
        self.folder(folder)?.map_or(Ok(()), |folder| folder.remove(name))
    }
}

impl Folder {
    /// Reads a file by its name; nothing where it is not there. A link is never followed, and what has a second name is not
    /// read where others could have given it this one: it may be a file that they cannot read themselves.
    pub(crate) fn text(&self, name: &OsStr) -> Result<Option<Vec<u8>>, ApplyError> {
        let refused = |why| Err(ApplyError::refused(&self.path().join(name), why));
        match self.find(name, LARGEST + 1)? {
            Found::Nothing => Ok(None),
            Found::File { content, .. } if content.len() > LARGEST => refused("it is too large"),
            Found::File { has_other_names: true, .. } if !self.is_closed()? => {
                refused("it is known under other names too")
            }
            Found::File { content, .. } => Ok(Some(content)),
            Found::Link(_) => refused("it is a link"),
            Found::Folder | Found::Other => refused("it is not a file"),
        }
    }
}

//! A file that orch writes whole for a purpose of its own, in a folder that belongs to root.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use crate::error::ApplyError;
use crate::node::{Folder, Found, Node, Owner, Wanted, split};

/// No file that orch reads to change a line of it is larger.
const LARGEST: usize = 16 << 20;

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

    /// Reads a file by its name; nothing where it is not there. Only a link that nobody but root could have put there is
    /// followed.
    pub(crate) fn read_in(&self, folder: &Folder, name: &OsStr) -> Result<Option<Vec<u8>>, ApplyError> {
        let path = folder.path().join(name);
        match folder.find(name, LARGEST + 1)? {
            Found::Nothing => Ok(None),
            Found::File { content, .. } if content.len() > LARGEST => {
                Err(ApplyError::refused(&path, "it is too large to be what it should"))
            }
            Found::File { content, .. } => Ok(Some(content)),
            Found::Link(target) if folder.trusts_link(name)? => self.read_behind(&folder.path().join(target)),
            Found::Link(_) => Err(ApplyError::refused(&path, "it is a link")),
            Found::Folder | Found::Other => Err(ApplyError::refused(&path, "it is not a file")),
        }
    }

    /// Reads what a link leads to. One link is what distributions use; a chain of them is not followed.
    fn read_behind(&self, path: &Path) -> Result<Option<Vec<u8>>, ApplyError> {
        let Some((above, name)) = split(path) else { return Ok(None) };
        let Some(folder) = self.folder(above)? else { return Ok(None) };
        match folder.find(name, LARGEST)? {
            Found::File { content, .. } => Ok(Some(content)),
            Found::Nothing => Ok(None),
            Found::Link(_) | Found::Folder | Found::Other => {
                Err(ApplyError::refused(path, "a link leads there, and it is not a file"))
            }
        }
    }

    /// Takes a file of root's away, where it is there.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), ApplyError> {
        let (folder, name) = split(path).expect("a file has a name");
        self.folder(folder)?.map_or(Ok(()), |folder| folder.remove(name))
    }
}

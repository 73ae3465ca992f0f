//! The SSH host key of the node's own, made by the program that makes all of them.
//!
//! Until it is shown it waits in `/var/lib/orch/host_key`. Whoever knows the node by the key that it was given at first must
//! learn of this one before, so it is shown when it is told to be, and not when it is made. Only what is shown already
//! is no longer kept: there is one whole copy of it at every moment.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use orch_model::PublicKey;
use orch_secrets::Secret;

use crate::error::ApplyError;
use crate::node::{Node, Owner, Wanted};
use crate::ssh_server;
use crate::state::{State, start_of};
use crate::tool::Tool;

const WAITING: &str = "host_key";
/// How the folders begin in which keys are made. What a cut leaves of them was never told to anybody.
const DRAFTS: &str = ".host_key-";
const SHOWN: [&str; 2] = ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"];
const FOLDER: &str = "/etc/ssh";
const LIMIT: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(5);

/// The SSH server of a node, as far as its key goes.
pub(super) struct Host<'n> {
    node: &'n Node,
    state: &'n State,
    keygen: Tool,
}

/// The node's own key.
pub(super) struct Own {
    pub(super) public: PublicKey,
    /// Whether it is the one that the server shows.
    pub(super) is_shown: bool,
}

impl<'n> Host<'n> {
    /// Nothing where there is no SSH server, or nothing that could make a key for it. The programs of a tree of files are not
    /// run.
    pub(super) fn of(node: &'n Node, state: &'n State) -> Option<Self> {
        let keygen = node.tool("ssh-keygen").filter(|_| ssh_server::is_here(node))?;
        Some(Self { node, state, keygen })
    }

    /// The node's own key, made where there is none: a key that the server shows is its own only where it was `noted`.
    pub(super) fn make(&self, noted: Option<&PublicKey>) -> Result<Own, ApplyError> {
        if let Some(public) = self.waiting()? {
            return Ok(Own { public, is_shown: false });
        }
        let shown = self.node.outside(&Path::new(FOLDER).join(SHOWN[0]));
        // One that cannot be read is nobody's.
        let shown = noted.filter(|_| shown.is_file()).and_then(|_| self.public_of(&shown).ok());
        match shown.filter(|shown| noted == Some(shown)) {
            Some(public) => Ok(Own { public, is_shown: true }),
            None => Ok(Own { public: self.generate()?, is_shown: false }),
        }
    }

    /// Puts the key that waits in the place of the one that is shown. The server is told before the key that waits is taken
    /// away: a cut leaves it there, and all of this is done again.
    pub(super) fn settle(&self) -> Result<(), ApplyError> {
        let Some(private) = self.state.text(WAITING)?.map(Secret::new) else { return Ok(()) };
        let public = format!("{}\n", self.public_of(&self.state.outside(WAITING))?);
        let folder = self.node.make_folder(Path::new(FOLDER), 0o755)?;
        for (name, content, mode) in
            [(SHOWN[0], private.expose(), 0o600), (SHOWN[1], public.as_bytes(), 0o644)]
        {
            folder.write(OsStr::new(name), &Wanted { content, mode, owner: Owner::ROOT })?;
        }
        ssh_server::reload(self.node)?;
        self.state.remove(WAITING)
    }

    /// The public half of the key that waits to be shown.
    fn waiting(&self) -> Result<Option<PublicKey>, ApplyError> {
        let path = self.state.outside(WAITING);
        if path.is_file() { self.public_of(&path).map(Some) } else { Ok(None) }
    }

    /// Makes one, in a folder of this try alone: where who makes it is killed, the program that it runs goes on, and must not
    /// write into what comes after.
    fn generate(&self) -> Result<PublicKey, ApplyError> {
        self.remove_drafts()?;
        let pid = std::process::id();
        let folder = format!("{DRAFTS}{pid}-{}", start_of(pid).unwrap_or_default());
        let folder = self.state.outside(&folder);
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(ApplyError::file("make", &folder))?;
        let draft = folder.join(WAITING);
        let path = draft.display().to_string();
        self.keygen.need(&["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", &path], &[], LIMIT)?;
        let public = self.public_of(&draft)?;
        self.keep(&draft).map_err(ApplyError::file("keep", &draft))?;
        self.remove_drafts()?;
        Ok(public)
    }

    /// Has a key wait, whole and on the disk.
    fn keep(&self, draft: &Path) -> io::Result<()> {
        File::open(draft)?.sync_all()?;
        let place = self.state.outside(WAITING);
        fs::rename(draft, &place)?;
        File::open(place.parent().unwrap_or(&place))?.sync_all()
    }

    fn remove_drafts(&self) -> Result<(), ApplyError> {
        for name in self.state.names()? {
            if name.to_string_lossy().starts_with(DRAFTS) {
                let path = self.state.outside(&name.to_string_lossy());
                remove(&path).map_err(ApplyError::file("remove", &path))?;
            }
        }
        Ok(())
    }

    /// Derived from the private half, which alone decides.
    fn public_of(&self, private: &Path) -> Result<PublicKey, ApplyError> {
        let place = private.display().to_string();
        let said = self.keygen.need(&["-y", "-f", &place], &[], LIMIT)?.stdout;
        let words = String::from_utf8_lossy(&said);
        // Without a comment: the key alone says which it is.
        let key: Vec<&str> = words.split_whitespace().take(2).collect();
        let parsed = key.join(" ").parse();
        parsed.map_err(|_| ApplyError::refused(private, "its public half is not one that SSH servers show"))
    }
}

/// Takes a folder away, also while a program that was left behind still writes the two files that it writes.
fn remove(folder: &Path) -> io::Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && Instant::now() < deadline => {
                thread::sleep(TICK);
            }
            done => return done,
        }
    }
}

//! The SSH host keys that a machine is given: it shows them from the first connection on.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value as Json;

use super::document::Document;
use super::ssh_restart;
use crate::error::ApplyError;
use crate::node::{Node, Owner, Wanted};

const FOLDER: &str = "/etc/ssh";
const KINDS: [&str; 3] = ["ed25519", "ecdsa", "rsa"];

/// Writes the keys, takes others away where that is asked for, and has the server show them. A machine that is given none
/// keeps those that it has.
pub(super) fn write(node: &Node, document: &Document) -> Result<(), ApplyError> {
    let text = |name: String| document.host_keys.get(&name).and_then(Json::as_str);
    let given: Vec<(&str, &str, Option<&str>)> = KINDS
        .iter()
        .filter_map(|kind| Some((*kind, text(format!("{kind}_private"))?, text(format!("{kind}_public")))))
        .collect();
    if given.is_empty() {
        return Ok(());
    }
    let folder = node.make_folder(Path::new(FOLDER), 0o755)?;
    if document.deletes_host_keys {
        for kind in KINDS {
            folder.remove(OsStr::new(&name(kind)))?;
            folder.remove(OsStr::new(&format!("{}.pub", name(kind))))?;
        }
    }
    for (kind, private, public) in given {
        // OpenSSH takes no key whose last line has no end.
        let write = |name: &str, text: &str, mode| {
            let content = format!("{}\n", text.trim_end());
            folder.write(OsStr::new(name), &Wanted { content: content.as_bytes(), mode, owner: Owner::ROOT })
        };
        write(&name(kind), private, 0o600)?;
        public.map_or(Ok(()), |public| write(&format!("{}.pub", name(kind)), public, 0o644))?;
    }
    ssh_restart::restart(node)
}

fn name(kind: &str) -> String {
    format!("ssh_host_{kind}_key")
}

//! Files that a machine is given at its first boot.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use orch_model::UserName;
use serde_json::Value as Json;

use super::document::File;
use crate::accounts;
use crate::error::ApplyError;
use crate::node::{Node, Owner, Wanted, split};

const USUAL_MODE: u32 = 0o644;

/// Writes a file, and makes the folders above it.
pub(super) fn write(node: &Node, file: &File) -> Result<(), ApplyError> {
    let path = Path::new(&file.path);
    let (above, name) = split(path)
        .filter(|_| path.is_absolute())
        .ok_or_else(|| ApplyError::refused(path, "it is no path of a file"))?;
    let mode = mode(file.permissions.as_ref())
        .ok_or_else(|| ApplyError::refused(path, "its permissions are not understood"))?;
    let mut content =
        content(file).ok_or_else(|| ApplyError::refused(path, "its encoding is not understood"))?;
    if file.append {
        let mut old = node.read(path)?.unwrap_or_default();
        old.append(&mut content);
        content = old;
    }
    let owner = owner(node, file.owner.as_deref().unwrap_or("root:root"))?;
    let folder = node.make_folder(above, 0o755)?;
    folder.write(name, &Wanted { content: &content, mode, owner })
}

fn content(file: &File) -> Option<Vec<u8>> {
    match file.encoding.as_deref() {
        None | Some("" | "text/plain") => Some(file.content.clone().into_bytes()),
        Some("b64" | "base64") => {
            let text: String = file.content.split_whitespace().collect();
            BASE64.decode(text).ok()
        }
        Some(_) => None,
    }
}

/// In octal, as text; YAML of old takes `0644` for a number, and so may whoever wrote it.
fn mode(permissions: Option<&Json>) -> Option<u32> {
    let mode = match permissions {
        None | Some(Json::Null) => USUAL_MODE,
        Some(Json::String(text)) => u32::from_str_radix(text.trim_start_matches("0o"), 8).ok()?,
        Some(Json::Number(number)) => u32::try_from(number.as_u64()?).ok()?,
        Some(_) => return None,
    };
    (mode <= 0o7777).then_some(mode)
}

fn owner(node: &Node, text: &str) -> Result<Owner, ApplyError> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    let unknown = |name: &str| ApplyError::Impossible(format!("there is no `{name}` to own it"));
    let name: UserName = user.parse().map_err(|_| unknown(user))?;
    let owner = accounts::owner(node, &name)?;
    if group.is_empty() || group == user {
        return Ok(owner);
    }
    let gid = gid(node, group)?.ok_or_else(|| unknown(group))?;
    Ok(Owner { gid, ..owner })
}

fn gid(node: &Node, group: &str) -> Result<Option<u32>, ApplyError> {
    let text = node.read(Path::new("/etc/group"))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let of = |line: &str| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok()).flatten()
    };
    Ok(text.lines().find_map(of))
}

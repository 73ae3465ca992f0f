//! The files below `secrets/`. Read, and never written.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::VaultError;
use crate::sops::MAX_BYTES;

/// Where a site keeps its sops files.
pub const FOLDER: &str = "secrets";
/// How deep folders are looked into.
const DEEPEST: usize = 8;

/// Every file, relative to the site, in order. What begins with a dot is not one of them.
pub(super) fn list(root: &Path) -> Result<Vec<String>, VaultError> {
    let mut found = Vec::new();
    walk(root, FOLDER, 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(root: &Path, folder: &str, depth: usize, found: &mut Vec<String>) -> Result<(), VaultError> {
    let unread =
        |error: &io::Error| VaultError::Unreadable { file: folder.to_owned(), why: error.to_string() };
    let entries = match fs::read_dir(root.join(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| unread(&error))?,
    };
    for entry in entries {
        let entry = entry.map_err(|error| unread(&error))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let path = format!("{folder}/{name}");
        // Following links: a site may share its secrets with another.
        match fs::metadata(root.join(&path)) {
            Ok(about) if about.is_dir() && depth < DEEPEST => walk(root, &path, depth + 1, found)?,
            Ok(about) if about.is_dir() => {}
            _ => found.push(path),
        }
    }
    Ok(())
}

/// What a file holds. Only regular ones are opened: a pipe would never end.
pub(super) fn read(root: &Path, file: &str) -> Result<Vec<u8>, VaultError> {
    let unread = |why: String| VaultError::Unreadable { file: file.to_owned(), why };
    let path = root.join(file);
    let about = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(VaultError::NoFile { file: file.to_owned() });
        }
        about => about.map_err(|error| unread(error.to_string()))?,
    };
    if !about.is_file() {
        return Err(unread("it is not a regular file".into()));
    }
    // One byte more than there may be, so that a file that grows meanwhile is refused and not cut.
    let most = MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| unread(error.to_string()))?;
    if bytes.len() > MAX_BYTES {
        return Err(unread(format!("it is larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

//! Generations of the profile, and what keeps systems from being collected as garbage.
//!
//! A new system is made a generation by hand: Nix would have the profile lead to it at once, and with it the boot default
//! of machines that have no boot loader.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::error::SystemError;
use super::places::Places;

/// Makes a system a generation without the profile leading to it. Its number is noted before there is a link, so that
/// whoever takes over after a cut can take it away; nothing is noted where the newest one is it already, which is where Nix
/// looks before it makes one.
pub(super) fn add(
    places: &Places,
    system: &str,
    mut note: impl FnMut(u64) -> Result<(), SystemError>,
) -> Result<(), SystemError> {
    let folder = places.profiles();
    fs::create_dir_all(&folder).map_err(SystemError::file("make", &folder))?;
    loop {
        let newest = newest(&folder)?;
        if newest.is_some_and(|number| places.generation(&link(number)).as_deref() == Some(system)) {
            return Ok(());
        }
        let number = newest.unwrap_or(0) + 1;
        note(number)?;
        let path = folder.join(link(number));
        match symlink(system, &path) {
            Ok(()) => return Ok(()),
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(SystemError::file("make the link", &path)(error)),
        }
    }
}

/// Takes a generation away that was made for a system, unless it is another's by now or the profile leads to it.
pub(super) fn remove(places: &Places, number: u64, system: &str) -> Result<(), SystemError> {
    let path = places.profiles().join(link(number));
    let leads_to = fs::read_link(places.profile()).ok();
    let is_used = leads_to.is_some_and(|target| target.file_name() == path.file_name());
    let is_ours = fs::read_link(&path).is_ok_and(|target| target == Path::new(system));
    if is_ours && !is_used {
        fs::remove_file(&path).map_err(SystemError::file("remove", &path))?;
    }
    Ok(())
}

/// What the profile leads to, as its link says it.
pub(super) fn current(places: &Places) -> Option<String> {
    fs::read_link(places.profile()).ok()?.into_os_string().into_string().ok()
}

/// Has the profile lead where it led before. Whether it could: that generation may be gone.
pub(super) fn restore(places: &Places, target: Option<&str>) -> Result<bool, SystemError> {
    let profile = places.profile();
    if current(places).as_deref() == target {
        return Ok(true);
    }
    let Some(target) = target else {
        fs::remove_file(&profile).map_err(SystemError::file("remove", &profile))?;
        return Ok(true);
    };
    if places.generation(target).is_none() {
        return Ok(false);
    }
    replace_link(&profile, target)?;
    Ok(true)
}

/// Keeps a system from being collected, under a name of ours; none takes the name's away.
pub(super) fn hold(places: &Places, name: &str, system: Option<&str>) -> Result<(), SystemError> {
    let folder = places.roots();
    fs::create_dir_all(&folder).map_err(SystemError::file("make", &folder))?;
    let path = folder.join(format!("orch-{name}"));
    match system {
        Some(system) => replace_link(&path, system),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SystemError::file("remove", &path)(error))
            }
            _ => Ok(()),
        },
    }
}

/// Puts a link in its place, whatever link was there.
pub(super) fn replace_link(path: &Path, target: &str) -> Result<(), SystemError> {
    let draft = path.with_extension("orch-draft");
    let _ = fs::remove_file(&draft);
    symlink(target, &draft).map_err(SystemError::file("make the link", path))?;
    fs::rename(&draft, path).map_err(SystemError::file("replace", path))
}

fn link(number: u64) -> String {
    format!("system-{number}-link")
}

fn newest(folder: &Path) -> Result<Option<u64>, SystemError> {
    let entries = fs::read_dir(folder).map_err(SystemError::file("list", folder))?;
    let number = |name: &str| name.strip_prefix("system-")?.strip_suffix("-link")?.parse::<u64>().ok();
    Ok(entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).max())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;

    #[test]
    fn a_generation_is_made_once_and_taken_away_only_where_it_is_ours() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::of(&Node::at(root.path()).unwrap());
        let [a, b] = ["a", "b"].map(|name| format!("/nix/store/{name}"));
        for system in [&a, &b] {
            fs::create_dir_all(places.at(system)).unwrap();
        }
        let added = |system: &str| {
            let mut noted = None;
            let note = |number| {
                assert!(!places.profiles().join(link(number)).is_symlink(), "it is noted before it is made");
                noted = Some(number);
                Ok(())
            };
            add(&places, system, note).unwrap();
            noted
        };
        assert_eq!(added(&a), Some(1));
        assert_eq!(added(&a), None);
        assert!(restore(&places, Some("system-1-link")).unwrap());
        assert_eq!(places.default_by_profile(), Some(a.clone()));
        assert_eq!(added(&b), Some(2));
        assert_eq!(places.default_by_profile(), Some(a.clone()), "the profile leads where it led");
        remove(&places, 1, &a).unwrap();
        remove(&places, 2, &a).unwrap();
        assert!(places.profiles().join("system-1-link").is_symlink(), "the profile leads to it");
        assert!(places.profiles().join("system-2-link").is_symlink(), "it is another's");
        remove(&places, 2, &b).unwrap();
        assert!(!places.profiles().join("system-2-link").is_symlink());
        assert!(!restore(&places, Some("system-9-link")).unwrap());
        assert!(restore(&places, None).unwrap() && current(&places).is_none());
    }
}

//! What a system is made of, for comparing two.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use orch_model::Digest;
use orch_model::system::Inventory;

use super::error::SystemError;
use super::nix::Nix;
use super::places::Places;
use super::view::BOOTED;
use crate::node::Node;

const UNITS: &str = "etc/systemd/system";

/// Of a system by its path, or of the one that runs.
pub(super) fn inventory(node: &Node, path: Option<&str>) -> Result<Inventory, SystemError> {
    let places = Places::of(node);
    let Some(system) = path.map_or_else(|| places.running(), |path| places.resolve(path)) else {
        let place = path.unwrap_or("/run/current-system").as_ref();
        return Err(SystemError::file("read", place)(std::io::Error::from(std::io::ErrorKind::NotFound)));
    };
    let folder = Path::new(&system);
    let boot = BOOTED.iter().filter_map(|name| Some(((*name).into(), places.resolve(folder.join(name))?)));
    Ok(Inventory {
        closure: Nix::of(node).closure(&system)?,
        units: units(&places.at(folder.join(UNITS))),
        boot: boot.collect(),
        system,
    })
}

/// Units by name, each with a digest of what it and its additions say.
fn units(folder: &Path) -> BTreeMap<String, String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let digest = |name: &str| -> Option<String> {
        let path = folder.join(name);
        if path.is_file() {
            return Some(Digest::of_bytes(&fs::read(path).ok()?).to_string());
        }
        is_additions(&path).then(|| {
            let texts: BTreeMap<String, Vec<u8>> = fs::read_dir(&path)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| {
                    Some((entry.file_name().into_string().ok()?, fs::read(entry.path()).ok()?))
                })
                .collect();
            Digest::of(&texts).to_string()
        })
    };
    names.filter_map(|name| Some((name.clone(), digest(&name)?))).collect()
}

/// Whether it is a folder of what is added to a unit.
fn is_additions(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "d")
}

//! Which system a node boots next, as its boot loader says it.
//!
//! Where there is no loader whose settings are known, the profile decides: so it is on machines in namespaces.

use std::fs;
use std::path::{Path, PathBuf};

use super::places::Places;

/// Where boot loaders have their settings. The EFI system partition may be mounted at either.
const BOOTS: [&str; 3] = ["/boot", "/efi", "/boot/efi"];

/// What boot loaders say.
enum Loader {
    /// There is none whose settings are known.
    Unknown,
    /// There is one, and what it boots cannot be told: it may remember that where nobody looks.
    Hides,
    /// There is one that boots this.
    Boots(String),
}

/// The system that is booted next; nothing where that cannot be told.
pub(super) fn boot_default(places: &Places) -> Option<String> {
    match Loader::of(places) {
        Loader::Unknown => places.default_by_profile(),
        Loader::Hides => None,
        Loader::Boots(system) => Some(system),
    }
}

/// Whether there is a boot loader that does not say what it boots.
pub(super) fn is_hidden(places: &Places) -> bool {
    matches!(Loader::of(places), Loader::Hides)
}

impl Loader {
    fn of(places: &Places) -> Self {
        for boot in BOOTS.map(|boot| places.at(boot)) {
            let read = |name: &str| fs::read_to_string(boot.join(name)).ok();
            let said = if let Some(settings) = read("loader/loader.conf") {
                by_systemd_boot(places, &boot, &settings)
            } else if let Some(menu) = read("grub/grub.cfg") {
                by_grub(&menu)
            } else if let Some(menu) = read("extlinux/extlinux.conf") {
                by_extlinux(&menu)
            } else {
                continue;
            };
            return said.map_or(Self::Hides, Self::Boots);
        }
        Self::Unknown
    }
}

fn by_systemd_boot(places: &Places, boot: &Path, settings: &str) -> Option<String> {
    let name = settings.lines().find_map(|line| word_after(line, "default"))?;
    let name = name.strip_suffix(".conf").or_else(|| name.strip_suffix(".efi")).unwrap_or(name);
    if let Some(entry) = entry(&boot.join("loader/entries"), name) {
        return fs::read_to_string(entry).ok()?.lines().find_map(init_of);
    }
    // An image that holds kernel and settings in one: its name tells the generation.
    let number = name.strip_prefix("nixos-generation-")?.split(|c: char| !c.is_ascii_digit()).next()?;
    places.generation(&format!("system-{number}-link"))
}

/// The file of an entry. Its name may end with how often it is still tried. A name that ends with a star means the newest
/// generation of those that begin so.
fn entry(folder: &Path, name: &str) -> Option<PathBuf> {
    let start = name.strip_suffix('*');
    let rank = |path: &Path| {
        let stem = path.file_stem()?.to_str()?;
        let stem = stem.split_once('+').map_or(stem, |(stem, _)| stem);
        match start {
            None => (stem == name).then_some(0),
            Some(start) if stem.starts_with(start) => stem.rsplit('-').next()?.parse::<u64>().ok(),
            Some(_) => None,
        }
    };
    let paths = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let (_, newest) = paths.filter_map(|path| Some((rank(&path)?, path))).max()?;
    Some(newest)
}

/// The entry at the number that is the default; NixOS has the default system first.
fn by_grub(menu: &str) -> Option<String> {
    let default = menu.lines().filter_map(|line| line.trim().strip_prefix("set default="));
    let number: usize = default.map(|value| value.trim_matches('"')).find_map(|value| value.parse().ok())?;
    let entries: Vec<&str> = menu.split("\nmenuentry ").skip(1).collect();
    entries.get(number)?.lines().find_map(init_of)
}

fn by_extlinux(menu: &str) -> Option<String> {
    let name = menu.lines().find_map(|line| word_after(line, "DEFAULT"))?;
    let mut lines = menu.lines().skip_while(|line| word_after(line, "LABEL") != Some(name)).skip(1);
    lines.by_ref().take_while(|line| word_after(line, "LABEL").is_none()).find_map(init_of)
}

fn word_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.next().filter(|word| *word == key).and_then(|_| words.next())
}

/// The system whose init a line of kernel parameters names.
fn init_of(line: &str) -> Option<String> {
    let init = line.split_whitespace().find_map(|word| word.strip_prefix("init="))?;
    init.strip_suffix("/init").map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;

    fn check(files: &[(&str, &str)], wanted: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let places = Places::of(&Node::at(root.path()).unwrap());
        assert_eq!(boot_default(&places).as_deref(), wanted, "{files:?}");
        assert_eq!(is_hidden(&places), !files.is_empty() && wanted.is_none(), "{files:?}");
    }

    #[test]
    fn what_a_boot_loader_says_is_understood() {
        let entry = "title NixOS\nlinux /EFI/x.efi\noptions init=/nix/store/a-nixos/init loglevel=4\n";
        let other = "options init=/nix/store/b-nixos/init\n";
        for (name, default) in [
            ("nixos-generation-7.conf", "nixos-generation-7.conf"),
            ("nixos-generation-7+2-1.conf", "nixos-generation-7.conf"),
            ("nixos-generation-7.conf", "nixos-generation-7"),
        ] {
            let entry_path = format!("boot/loader/entries/{name}");
            let conf = format!("timeout 5\ndefault {default}\nconsole-mode keep\n");
            check(
                &[
                    ("boot/loader/loader.conf", &conf),
                    (&entry_path, entry),
                    ("boot/loader/entries/nixos-generation-70.conf", other),
                ],
                Some("/nix/store/a-nixos"),
            );
        }
        check(
            &[
                ("boot/loader/loader.conf", "default nixos-*\n"),
                ("boot/loader/entries/nixos-generation-9.conf", other),
                ("boot/loader/entries/nixos-generation-10+3.conf", entry),
            ],
            Some("/nix/store/a-nixos"),
        );
        let grub = "if [ ${next_entry} ] ; then\n  set default=\"${next_entry}\"\nelse\n  set default=\"1\"\nfi\n\
                    menuentry \"A\" --class nixos {\n  linux /k init=/nix/store/a-nixos/init x\n}\n\
                    menuentry \"B\" --class nixos {\n  linux /k init=/nix/store/b-nixos/init x\n}\n";
        check(&[("boot/grub/grub.cfg", grub)], Some("/nix/store/b-nixos"));
        let extlinux = "DEFAULT nixos-default\nLABEL nixos-old\n  APPEND init=/nix/store/b-nixos/init\n\
                        LABEL nixos-default\n  LINUX ../k\n  APPEND init=/nix/store/a-nixos/init x\n";
        check(&[("boot/extlinux/extlinux.conf", extlinux)], Some("/nix/store/a-nixos"));
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        check(&[], None);
        check(&[("boot/loader/loader.conf", "default nixos-*\n")], None);
        check(&[("boot/grub/grub.cfg", "set default=\"saved\"\n")], None);
    }
}

//! What going over from one system to another changes: packages, units, and whether a reboot is needed for all of it.
//!
//! Pure: two inventories in, their differences out. What a node says of itself is made printable where it is shown.

mod name;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use orch_model::StorePath;
use orch_model::system::Inventory;
use serde::Serialize;

use self::name::Named;

/// What is different between two systems.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Changes {
    /// Packages whose versions are others.
    pub packages: Vec<PackageChange>,
    /// Units that are there, say, or are not any more.
    pub units: Vec<UnitChange>,
    /// What only a reboot brings about, by what it is: kernel, initrd and so on.
    pub reboot: Vec<BootChange>,
    /// How many paths come that the system before did not have.
    pub paths_added: usize,
    /// How many paths go.
    pub paths_removed: usize,
}

/// A package in other versions than before. Where there were or will be none, it comes or goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageChange {
    /// Its name.
    pub name: String,
    /// Versions that there were.
    pub before: Vec<String>,
    /// Versions that there will be.
    pub after: Vec<String>,
}

/// A unit and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitChange {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub change: Change,
}

/// What becomes of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It comes.
    Added,
    /// It becomes another.
    Changed,
    /// It goes.
    Removed,
}

/// Something that only a boot changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootChange {
    /// What it is.
    pub what: String,
    /// What there was, where there was something.
    pub before: Option<String>,
    /// What there will be, where there will be something.
    pub after: Option<String>,
}

impl Changes {
    /// Whether both systems are the same, path by path.
    pub const fn is_empty(&self) -> bool {
        self.packages.is_empty()
            && self.units.is_empty()
            && self.reboot.is_empty()
            && self.paths_added == 0
            && self.paths_removed == 0
    }

    /// Whether all of it takes effect only after a reboot.
    pub const fn needs_reboot(&self) -> bool {
        !self.reboot.is_empty()
    }
}

/// What is different in `after`.
pub fn changes(before: &Inventory, after: &Inventory) -> Changes {
    let [old, new] = [before, after].map(|inventory| inventory.closure.iter().collect::<BTreeSet<_>>());
    Changes {
        packages: packages(&old, &new),
        units: units(&before.units, &after.units),
        reboot: reboot(&before.boot, &after.boot),
        paths_added: new.difference(&old).count(),
        paths_removed: old.difference(&new).count(),
    }
}

fn packages(before: &BTreeSet<&StorePath>, after: &BTreeSet<&StorePath>) -> Vec<PackageChange> {
    let (old, new) = (versions(before), versions(after));
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let change = |name: &str| {
        let of = |versions: &BTreeMap<&str, BTreeSet<&str>>| {
            versions.get(name).into_iter().flatten().map(|version| (*version).to_owned()).collect::<Vec<_>>()
        };
        let (before, after) = (of(&old), of(&new));
        (before != after).then(|| PackageChange { name: name.to_owned(), before, after })
    };
    names.into_iter().filter_map(change).collect()
}

/// Packages by name. What has no version is not a package: files of the system itself, scripts, units.
fn versions<'p>(paths: &BTreeSet<&'p StorePath>) -> BTreeMap<&'p str, BTreeSet<&'p str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        if let Named { name, version: Some(version) } = Named::of(path) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
}

fn units(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<UnitChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| {
        let change = match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) if before == after => return None,
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            _ => Change::Changed,
        };
        Some(UnitChange { name: name.clone(), change })
    };
    names.into_iter().filter_map(change).collect()
}

fn reboot(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<BootChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |what: &String| {
        let (before, after) = (before.get(what), after.get(what));
        (before != after).then(|| BootChange {
            what: what.clone(),
            before: before.cloned(),
            after: after.cloned(),
        })
    };
    names.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn inventory(closure: &[&str], units: &[(&str, &str)], boot: &[(&str, &str)]) -> Inventory {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
        };
        // The first word of an entry is repeated to be its hash.
        let path = |entry: &&str| {
            let (hash, name) = entry.split_once(' ').unwrap();
            format!("/nix/store/{}-{name}", hash.repeat(32)).parse().unwrap()
        };
        Inventory {
            system: "system".into(),
            closure: closure.iter().map(path).collect(),
            units: map(units),
            boot: map(boot),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "an expectation is written where it is passed")]
    fn check(before: &Inventory, after: &Inventory, expected: Expect) {
        expected.assert_eq(&changes(before, after).to_string());
    }

    #[test]
    fn the_same_system_has_no_changes() {
        let system = inventory(&["a openssl-3.0.7"], &[("sshd.service", "1")], &[("kernel", "k")]);
        assert!(changes(&system, &system).is_empty());
        check(&system, &system, expect!["nothing changes\n"]);
    }

    #[test]
    fn packages_units_and_what_needs_a_reboot_are_told_apart() {
        let before = inventory(
            &["a openssl-3.0.7", "b openssl-3.0.7-bin", "c nano-7.2", "d etc", "f glibc-2.38-66"],
            &[("nginx.service", "1"), ("old.timer", "1"), ("sshd.service", "1")],
            &[("kernel", "/nix/store/k-linux-6.6.1/bzImage"), ("systemd", "/nix/store/s-systemd-255")],
        );
        let after = inventory(
            &["g openssl-3.0.8", "h openssl-3.0.8-bin", "i htop-3.3.0", "j etc", "k glibc-2.38-66"],
            &[("nginx.service", "2"), ("new.service", "1"), ("sshd.service", "1")],
            &[("kernel", "/nix/store/l-linux-6.6.2/bzImage"), ("systemd", "/nix/store/s-systemd-255")],
        );
        check(
            &before,
            &after,
            expect![[r"
                packages: 1 added, 1 changed, 1 removed
                  + htop 3.3.0
                  - nano 7.2
                  ~ openssl 3.0.7 -> 3.0.8
                units: 1 added, 1 changed, 1 removed
                  + new.service
                  ~ nginx.service
                  - old.timer
                needs a reboot: kernel
                paths: 5 added, 5 removed
            "]],
        );
    }

    #[test]
    fn a_package_in_two_versions_is_one_package() {
        let before = inventory(&["a python3-3.11.1", "b python3-3.12.0"], &[], &[]);
        let after = inventory(&["a python3-3.11.1", "c python3-3.12.4"], &[], &[]);
        check(
            &before,
            &after,
            expect![[r"
                packages: 1 changed
                  ~ python3 3.11.1, 3.12.0 -> 3.11.1, 3.12.4
                paths: 1 added, 1 removed
            "]],
        );
    }

    #[test]
    fn what_is_only_built_again_is_a_number() {
        let (before, after) =
            (inventory(&["a etc", "b bash-5.2"], &[], &[]), inventory(&["c etc", "d bash-5.2"], &[], &[]));
        check(&before, &after, expect!["paths: 2 added, 2 removed\n"]);
    }

    #[test]
    fn a_long_list_is_cut_and_what_a_node_says_is_made_printable() {
        let names: Vec<String> = (0..100).map(|number| format!("u{number:03}.service")).collect();
        let mut units: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        units.push(("a\u{1b}[31m", "1"));
        let text = changes(&Inventory::default(), &inventory(&[], &units, &[])).to_string();
        assert!(text.starts_with("units: 101 added\n") && text.contains("and 81 more"), "{text}");
        assert!(text.lines().count() < 30 && !text.contains('\u{1b}'));
    }
}

//! Rules of the house that a compiler does not know: which crate may use which, what is pure, what is allowed in.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

/// The crates of the workspace and what each may use of the others, tests included. Arrows point one way only:
/// model <- plan <- run <- providers <- cli, model <- node <- providers, run <- server <- cli.
const EDGES: [(&str, &[&str]); 11] = [
    ("orch-model", &[]),
    ("orch-plan", &["orch-model"]),
    ("orch-dag", &[]),
    ("orch-run", &["orch-dag", "orch-model", "orch-plan", "orch-run", "orch-secrets"]),
    ("orch-secrets", &["orch-model"]),
    ("orch-node", &["orch-model", "orch-secrets"]),
    ("orch-nix", &["orch-model"]),
    ("orch-providers", &["orch-model", "orch-nix", "orch-node", "orch-plan", "orch-run"]),
    ("orch-server", &["orch-model", "orch-node", "orch-run", "orch-secrets"]),
    ("orch-lab", &["orch-model", "orch-node", "orch-plan", "orch-providers", "orch-run"]),
    (
        "orch-cli",
        &[
            "orch-lab",
            "orch-model",
            "orch-nix",
            "orch-node",
            "orch-plan",
            "orch-providers",
            "orch-run",
            "orch-secrets",
            "orch-server",
        ],
    ),
];

/// Crates that see no file, variable, clock or network, and what they may use from outside.
const PURE: [(&str, &[&str]); 2] = [
    ("orch-model", &["base64", "granit-parser", "hmac", "serde", "serde_json", "sha2", "toml", "zeroize"]),
    ("orch-plan", &["serde", "uuid"]),
];

#[test]
fn crates_use_only_what_the_table_of_edges_allows() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        EDGES.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let members = members(&metadata);
    assert_eq!(
        members.keys().copied().collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect(),
        "every crate has its row in the table"
    );
    for (name, package) in &members {
        for (used, _) in dependencies(package).filter(|(used, _)| used.starts_with("orch-")) {
            assert!(allowed[name].contains(used), "`{name}` must not use `{used}`");
        }
    }
}

#[test]
fn pure_crates_use_nothing_that_could_reach_the_world() {
    let metadata = metadata();
    let members = members(&metadata);
    for (name, allowed) in PURE {
        for (used, kind) in dependencies(members[name]) {
            let is_fine = kind == "dev" || used.starts_with("orch-") || allowed.contains(&used);
            assert!(is_fine, "`{name}` is pure and must not use `{used}`");
        }
        // Without the standard library there is no file, no variable, no clock: the compiler holds the rule.
        let source = fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).unwrap();
        assert!(source.contains("\n#![no_std]\n"), "`{name}` is pure and so `no_std`");
        for path in sources(&root().join("crates").join(name).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(
                !text.contains("extern crate std"),
                "{}: brings the standard library back",
                path.display()
            );
        }
    }
}

#[test]
fn the_task_engine_knows_no_word_of_orch() {
    for path in sources(&root().join("crates/orch-dag")) {
        let text = fs::read_to_string(&path).unwrap().replace("orch_dag", "").replace("orch-dag", "");
        let text = text.to_lowercase();
        for word in ["orch", "manifest", "proxmox", "hetzner", "nixos", "provision"] {
            assert!(!text.contains(word), "{}: says `{word}`", path.display());
        }
    }
}

#[test]
fn every_dependency_has_a_licence_that_goes_with_ours() {
    let allowed = allowed_licences();
    let is_compatible = |expression: &str| is_compatible(expression, &allowed);
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, licence) = (text(&package["name"]), text(&package["license"]));
        assert!(is_compatible(licence), "`{name}` has the licence `{licence}`");
    }
    assert!(!is_compatible("GPL-3.0-only"), "the control is refused");
    assert!(!is_compatible("MIT AND GPL-2.0"), "both parts of an AND must fit");
    assert!(is_compatible("Unlicense OR MIT") && is_compatible("(MIT OR Apache-2.0) AND Unicode-3.0"));
}

#[test]
fn nothing_is_used_that_is_banned() {
    let banned = banned();
    assert!(banned.len() >= 8, "the list of deny.toml was read: {banned:?}");
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let name = text(&package["name"]);
        assert!(!banned.contains(name), "`{name}` is banned; deny.toml says why");
        let source = package["source"].as_str().unwrap_or("path");
        assert!(source == "path" || source.starts_with("registry+"), "`{name}` comes from {source}");
    }
}

#[test]
fn every_file_says_what_it_is() {
    for path in sources(&root().join("crates")).into_iter().chain(sources(&root().join("tests"))) {
        let text = fs::read_to_string(&path).unwrap();
        let begins = text.starts_with("//!") || text.starts_with("#![doc = include_str!");
        assert!(begins, "{}: begins without `//!`", path.display());
    }
}

#[test]
fn the_project_speaks_only_of_itself() {
    // The home of root is a place on nodes too; what a build leaves in it is not.
    let markers = ["/work/", "/root/.cargo", "/root/.rustup", "/root/.local", "TODO", "FIXME"];
    for folder in
        ["crates", "tests", "docs", "nix", "manifests", "specs", "hosts", "presets", "postures", ".ci"]
    {
        for path in files(&root().join(folder)) {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if path.ends_with("tests/architecture.rs") {
                continue;
            }
            for marker in markers {
                assert!(!text.contains(marker), "{}: holds `{marker}`", path.display());
            }
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Json {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn members(metadata: &Json) -> BTreeMap<&str, &Json> {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().filter(|package| package["source"].is_null()).map(|p| (text(&p["name"]), p)).collect()
}

/// What a crate uses, and as what: `normal`, `dev` or `build`.
fn dependencies(package: &Json) -> impl Iterator<Item = (&str, &str)> {
    let dependencies = package["dependencies"].as_array().unwrap();
    dependencies.iter().map(|used| (text(&used["name"]), used["kind"].as_str().unwrap_or("normal")))
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn is_compatible(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ");
    let and = |part: &str| {
        let part = part.trim().trim_start_matches('(').trim_end_matches(')');
        part.split(" OR ").any(|licence| allowed.contains(licence.trim()))
    };
    // `A OR B AND C` does not occur without parentheses, so every AND joins groups.
    expression.split(" AND ").all(and)
}

/// The licences that deny.toml allows.
fn allowed_licences() -> BTreeSet<String> {
    let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
    let (_, licences) = deny.split_once("[licenses]").unwrap();
    let (_, list) = licences.split_once("allow = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names that deny.toml bans.
fn banned() -> BTreeSet<String> {
    let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
    let (_, bans) = deny.split_once("[bans]").unwrap();
    let entries = bans.split("crate = \"").skip(1).chain(bans.split("name = \"").skip(1));
    entries.filter_map(|entry| entry.split(['"', '@']).next()).map(str::to_owned).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

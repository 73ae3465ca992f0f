//! The template of the flake is a site: what somebody starts from has no mistake in it.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

#[test]
fn the_template_of_the_flake_is_a_valid_site() {
    let valid = validate(&template());
    assert!(valid.status.success(), "{}", String::from_utf8_lossy(&valid.stderr));
}

#[test]
fn a_mistake_in_the_template_would_be_seen() {
    let copy = TempDir::new().unwrap();
    let copied = Command::new("cp").arg("-r").arg(template().join(".")).arg(copy.path()).status().unwrap();
    assert!(copied.success());
    let manifest = copy.path().join("manifests/hello.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(manifest, text.replace("spec: base", "spec: bass")).unwrap();
    assert_eq!(validate(copy.path()).status.code(), Some(1));
}

/// `orch init` writes these files too; whoever changes one of them means both.
#[test]
fn the_template_says_what_orch_init_writes() {
    let site = TempDir::new().unwrap();
    let made =
        Command::new(env!("CARGO_BIN_EXE_orch")).arg("init").arg(site.path().join("x")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for file in ["hosts/here", "manifests/hello", "specs/base", "presets/small", "postures/dev"] {
        let file = format!("{file}.yaml");
        let written = fs::read_to_string(site.path().join("x").join(&file)).unwrap();
        // The schemas that `orch init` puts beside them are not part of the template.
        let (_schema, written) = written.split_once('\n').unwrap();
        assert_eq!(fs::read_to_string(template().join(&file)).unwrap(), written, "{file}");
    }
}

fn validate(site: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_orch")).args(["validate", "--site"]).arg(site).output().unwrap()
}

fn template() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nix/template")
}

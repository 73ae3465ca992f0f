//! The generated reference under `docs/` is what the program says today. `UPDATE_EXPECT=1` writes it anew.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

#[test]
fn the_reference_of_the_command_line_is_current() {
    let mut page = String::from(
        "# The command line\n\nWritten by `UPDATE_EXPECT=1 cargo test --test reference`; do not edit by hand.\n",
    );
    let mut told = BTreeSet::new();
    for command in [
        "",
        "validate",
        "plan",
        "create",
        "config",
        "rollout",
        "diff",
        "test",
        "status",
        "destroy",
        "exec",
        "ssh",
        "ssh-config",
        "serve",
        "token",
        "token mint",
        "token inspect",
        "token revoke",
        "token list",
        "token rotate",
        "secrets",
        "secrets check",
        "secrets recipients",
        "secrets edit",
        "secrets rotate",
        "lab",
        "lab up",
        "lab down",
        "lab status",
        "lab fault",
        "graph",
        "runs",
        "runs list",
        "runs show",
        "runs pause",
        "runs resume",
        "runs abort",
        "init",
        "schema",
        "completions",
        "man",
    ] {
        let title = if command.is_empty() { "orch".to_owned() } else { format!("orch {command}") };
        told.insert(command);
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        page.push_str(&["\n## ", &title, "\n\n```text\n", &orch(&words), "```\n"].concat());
    }
    let help = orch(&["--help"]);
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next())
    {
        assert!(told.contains(command), "the reference has no word on `{command}`");
    }
    check("docs/cli.md", &page);
}

#[test]
fn the_schemas_are_current() {
    let folder = TempDir::new().unwrap();
    orch(&["schema", "--out", &folder.path().display().to_string()]);
    let mut count = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        check(&format!("docs/schema/{name}"), &fs::read_to_string(&path).unwrap());
        count += 1;
    }
    assert_eq!(count, 6, "every kind of file has its schema");
}

#[test]
fn manual_pages_and_completions_are_written_for_every_command() {
    let folder = TempDir::new().unwrap();
    orch(&["man", &folder.path().display().to_string()]);
    let pages: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for page in ["orch.1", "orch-plan.1", "orch-runs-show.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is among {pages:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = orch(&["completions", shell]);
        for verb in [
            "validate",
            "plan",
            "create",
            "destroy",
            "status",
            "exec",
            "ssh-config",
            "graph",
            "runs",
            "init",
            "man",
        ] {
            assert!(script.contains(verb), "the script for {shell} completes `{verb}`");
        }
    }
}

fn orch(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_orch")).args(args).env_clear().output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn check(path: &str, expected: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if fs::read_to_string(&path).is_ok_and(|committed| committed == expected) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_EXPECT").is_some(),
        "{} is out of date: UPDATE_EXPECT=1 writes it anew",
        path.display()
    );
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, expected).unwrap();
}

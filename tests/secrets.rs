//! `orch secrets`: what it says of a site, by its words and exit codes. Its files are made here, with keys that are gone with the
//! test.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, Reader, seal};
use tempfile::TempDir;

/// A site with secrets, and whoever opens them.
struct Site {
    folder: TempDir,
    you: seal::Identity,
}

impl Site {
    fn new() -> Self {
        let site = Self { folder: TempDir::new().unwrap(), you: seal::Identity::generate() };
        let rules = format!("creation_rules:\n  - age: {} # you\n", site.you.recipient());
        for (path, text) in [
            ("site.yaml", "name: home\n"),
            ("hosts/here.yaml", "provider: local\n"),
            ("presets/small.yaml", "{ cores: 1, memory: 512, disk: 1 }\n"),
            ("postures/dev.yaml", "{}\n"),
            ("manifests/m.yaml", MANIFEST),
            ("specs/base.yaml", SPEC),
            (".sops.yaml", &rules),
        ] {
            site.write(path, text);
        }
        site.seal("secrets/app.yaml", "db: hunter2\napi: { token: correct-horse }\n", &[&site.you]);
        site.write_private("identity", site.you.to_secret().expose());
        site
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Outside of the site, as an identity should be.
    fn write_private(&self, name: &str, bytes: &[u8]) {
        let path = self.home().join(name);
        fs::create_dir_all(self.home()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("target/home")
    }

    fn seal(&self, file: &str, plain: &str, readers: &[&seal::Identity]) {
        let policy = Policy::of(readers.iter().map(|reader| Reader::from(reader.recipient())));
        let sealed = encrypt(file, Format::of(file), plain.as_bytes(), &policy).unwrap();
        self.write(file, &String::from_utf8(sealed).unwrap());
    }

    /// Runs `orch secrets` with these words, and programs from this folder alone.
    fn secrets(&self, words: &str, programs: &Path) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orch"));
        command.arg("secrets").args(words.split_whitespace()).current_dir(self.folder.path()).env_clear();
        command.env("PATH", programs).env("HOME", self.home()).env("ORCH_STATE", self.home().join("state"));
        command.env("SOPS_AGE_KEY_FILE", self.home().join("identity")).output().unwrap()
    }

    fn check(&self) -> (String, i32) {
        let output = self.secrets("check", &self.home());
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    }
}

const MANIFEST: &str =
    "{ schema_version: 2, name: m, nodes: [{ name: web, type: vm, spec: base, preset: small }] }\n";
const SPEC: &str = "\
schema_version: 1
secrets:
  - { name: db, path: /run/secrets/db }
  - { name: api, from: \"secret:secrets/app.yaml#api.token\", path: /run/secrets/api }
";

#[test]
fn a_site_whose_secrets_are_there_is_found_sound() {
    let (said, code) = Site::new().check();
    assert_eq!((said.as_str(), code), ("2 mentions and 1 file: every secret is there and opens\n", 0));
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_a_way_out_and_without_a_value() {
    let site = Site::new();
    let other = seal::Identity::generate();
    site.write("hosts/mother.yaml", "{ provider: hetzner, token: secret:hcloud-token, location: nbg1 }\n");
    site.write(
        "site.yaml",
        "{ name: home, server: { signing_keys: { k1: \"secret:secrets/app.yaml#k1\" } } }\n",
    );
    site.seal("secrets/others.yaml", "theirs: POISON\n", &[&other]);
    site.write("secrets/plain.yaml", "password: POISON\n");
    let sealed = fs::read_to_string(site.path("secrets/app.yaml")).unwrap();
    site.write("secrets/cut.yaml", &sealed[..sealed.len() / 2]);
    site.write("notes.txt", &format!("words\n{}\n", String::from_utf8_lossy(other.to_secret().expose())));
    fs::set_permissions(site.home().join("identity"), Permissions::from_mode(0o644)).unwrap();
    let (said, code) = site.check();
    assert_eq!(code, 1, "{said}");
    for (what, hint) in [
        ("host `mother`: `secret:hcloud-token` leads nowhere", "orch secrets edit"),
        ("signing key `k1` of the site: `secrets/app.yaml` has no value at `k1`", "orch secrets edit"),
        ("no identity here can open `secrets/others.yaml`", "SOPS_AGE_KEY_FILE"),
        ("`secrets/plain.yaml` is not a sops file", "sops encrypt"),
        ("`secrets/cut.yaml` is cut short", "version control"),
        ("`secrets/others.yaml` is not for", "sops updatekeys"),
        ("`notes.txt` holds an age identity in clear, at line 2", "move it out"),
        ("holds identities, and others may read or write it", "chmod 600"),
    ] {
        let told = said.lines().position(|line| line.contains(what));
        let told = told.unwrap_or_else(|| unreachable!("not told: {what}\n{said}"));
        assert!(said.lines().nth(told + 1).unwrap().contains(hint), "{what}: no way out\n{said}");
    }
    assert!(!said.contains("POISON") && !said.contains("AGE-SECRET-KEY"), "{said}");
}

#[test]
fn an_unreadable_list_of_rules_is_not_taken_for_none() {
    let site = Site::new();
    site.write(".sops.yaml", "creation_rules: [\n");
    let (said, code) = site.check();
    assert!(code == 1 && said.contains(".sops.yaml"), "{said}");
}

#[test]
fn who_can_read_what_is_shown_and_you_are_among_them() {
    let site = Site::new();
    let other = seal::Identity::generate();
    site.seal("secrets/both.yaml", "a: b\n", &[&site.you, &other]);
    let output = site.secrets("recipients", &site.home());
    let you = site.you.recipient();
    let expected =
        format!("secrets/app.yaml\n  {you}  you\nsecrets/both.yaml\n  {you}  you\n  {}\n", other.recipient());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let json = site.secrets("recipients --json", &site.home());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[1]["recipients"][1]["you"], false);
}

#[test]
fn files_are_changed_by_the_users_own_sops_or_not_at_all() {
    let site = Site::new();
    let programs = site.home().join("bin");
    fs::create_dir_all(&programs).unwrap();
    let output = site.secrets("edit secrets/app.yaml", &programs);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && said.contains("there is no `sops` program"), "{said}");

    let log = site.home().join("log");
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\n", log.display());
    fs::write(programs.join("sops"), script).unwrap();
    fs::set_permissions(programs.join("sops"), Permissions::from_mode(0o755)).unwrap();
    assert!(site.secrets("edit secrets/new/deep.yaml", &programs).status.success());
    assert!(site.path("secrets/new").is_dir(), "sops would lose the text for want of its folder");
    let output = site.secrets("rotate", &programs);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1 file has a new key\n");
    let asked = fs::read_to_string(log).unwrap();
    assert_eq!(asked, "edit -- secrets/new/deep.yaml\nrotate --in-place -- secrets/app.yaml\n");
}

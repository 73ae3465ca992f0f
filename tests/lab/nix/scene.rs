//! A lab whose driver has a Nix store of its own, so that nothing of the machine's is seen in nodes by accident.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::common::{Lab, Need, Outcome, lacks};

/// What everything here needs.
pub(super) const NEEDS: [Need; 5] = [
    Need::Root,
    Need::Ssh,
    Need::Program("nix-store"),
    Need::Program("nix-instantiate"),
    Need::Program("unshare"),
];

/// How Nix is used as root and without a daemon. Nothing is fetched.
const NIX: &str = "experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\nsubstituters =\n\
                   require-sigs = false\n";

/// Puts a folder in the place of `/nix`, and becomes the program after it. Only this process and what it starts see that.
const OVER_NIX: &str = r#"mount --bind "$0" /nix && exec "$@""#;

const TIMEOUTS: &str = "timeouts: { create: 30s, boot: 20s, config: 90s, destroy: 20s }";

/// Whether something is missing that everything here needs.
#[track_caller]
pub(super) fn skips() -> bool {
    if !Path::new("/nix").is_dir() {
        crate::common::skip_unless_required("there is no folder `/nix` on this computer");
        return true;
    }
    lacks(&NEEDS)
}

/// A lab with nodes whose spec `nixos` is the module `modules/web`.
pub(super) struct NixLab {
    pub(super) lab: Lab,
    nix: TempDir,
}

impl NixLab {
    /// A lab with these nodes, all of the same module.
    pub(super) fn with_nodes(settings: &str, names: &[&str], module: &str) -> Self {
        let nodes: Vec<String> = names.iter().map(|name| node(name, "nixos")).collect();
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let lab = Lab::with_nodes(&format!("{TIMEOUTS}, {settings}"), &nodes);
        lab.write("specs/nixos.yaml", "schema_version: 1\nnixos: { modules: [modules/web] }\n");
        let scene = Self { lab, nix: TempDir::new().unwrap() };
        scene.module(module);
        scene
    }

    /// Writes the module anew: what stands in `standIn`.
    pub(super) fn module(&self, stand_in: &str) {
        self.lab.write("modules/web/default.nix", &format!("{{ ... }}: {{ standIn = {{ {stand_in} }}; }}\n"));
    }

    /// The program with these words, about to be run with the store of this lab.
    pub(super) fn command(&self, words: &str) -> Command {
        self.over_nix(Command::new("unshare"), &self.lab.command(words))
    }

    /// The same, for a program that is run by `unshare` in whatever way.
    pub(super) fn over_nix(&self, mut command: Command, plain: &Command) -> Command {
        command.args(["--mount", "sh", "-c", OVER_NIX]).arg(self.nix.path());
        command.arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("NIX_CONFIG", NIX).env("ORCH_NIXPKGS", stand_in()).env_remove("NIX_REMOTE");
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program with these words.
    pub(super) fn orch(&self, words: &str) -> Outcome {
        Outcome::of(&mut self.command(words), words)
    }

    /// Whether the driver's own store has something.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.nix.path().join(path.strip_prefix("/nix").unwrap()).exists()
    }

    /// What a node runs, as seen from outside of it.
    pub(super) fn runs(&self, name: &str) -> Option<PathBuf> {
        self.link(name, "run/current-system")
    }

    /// What a node boots, as seen from outside of it.
    pub(super) fn boots(&self, name: &str) -> Option<PathBuf> {
        let profiles = "nix/var/nix/profiles";
        let generation = self.link(name, &format!("{profiles}/system"))?;
        self.link(name, &format!("{profiles}/{}", generation.display()))
    }

    /// A file of a node.
    pub(super) fn read(&self, name: &str, path: &str) -> Option<String> {
        fs::read_to_string(self.lab.root(&format!("lab-{name}")).join(path)).ok()
    }

    /// A file of a node by its path there, which may be behind a link.
    #[track_caller]
    pub(super) fn read_in(&self, name: &str, path: &Path) -> String {
        let root = self.lab.root(&format!("lab-{name}"));
        let at = |path: &Path| root.join(path.strip_prefix("/").unwrap());
        let path = fs::read_link(at(path)).unwrap_or_else(|_| path.to_owned());
        fs::read_to_string(at(&path)).unwrap()
    }

    fn link(&self, name: &str, path: &str) -> Option<PathBuf> {
        fs::read_link(self.lab.root(&format!("lab-{name}")).join(path)).ok()
    }
}

/// A node with a spec.
pub(super) fn node(name: &str, spec: &str) -> String {
    format!("name: {name}, type: vm, image: any, preset: tiny, spec: {spec}")
}

/// What stands in for nixpkgs.
fn stand_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/nix/stand-in").canonicalize().unwrap()
}

/// A text as Nix reads it.
pub(super) fn text(plain: &str) -> String {
    let quoted = plain.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "\\${");
    format!("\"{quoted}\"")
}

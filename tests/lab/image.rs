//! Machines made from whole root file systems: a Debian whose systemd is their first process.

mod life;
mod packages;
mod pull;
mod refusals;
mod services;
mod tree;

use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use crate::common::{Lab, ORCH, Outcome, TIMEOUTS, assert_nothing_is_left, debian, wait_until};

/// A node that is a Debian of its own.
const WEB: &str = "name: web, type: vm, image: debian, preset: tiny, spec: plain";
/// Its machine.
const MACHINE: &str = "lab-web";

/// A lab whose machines are Debians, if one can be had here.
struct DebianLab(Lab);

impl Deref for DebianLab {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.0
    }
}

impl DebianLab {
    /// A lab with the node `web`, whose spec is this.
    fn with_spec(spec: &str) -> Option<Self> {
        let lab = Self::with_nodes(&[WEB])?;
        lab.write("specs/plain.yaml", spec);
        Some(lab)
    }

    fn with_nodes(nodes: &[&str]) -> Option<Self> {
        let root = debian()?;
        let lab = Lab::with_nodes(TIMEOUTS, nodes);
        lab.write("hosts/father.yaml", &host(&[("debian", root)]));
        Some(Self(lab))
    }

    /// Runs the program with these words.
    fn orch(&self, words: &str) -> Outcome {
        // What configures the machine is the very program under test, whatever else lies beside it.
        Outcome::of(self.command(words).env("ORCH_NODE", ORCH), words)
    }

    /// Runs a verb on the lab's manifest.
    fn all(&self, verb: &str) -> Outcome {
        self.orch(&format!("{verb} -M lab -H father --json"))
    }

    /// Runs a program in a machine, as its root, and gives what it says; its end does not matter.
    fn says(&self, machine: &str, argv: &[&str]) -> String {
        let mut command = Command::new("nsenter");
        command.args([
            "-m",
            "-u",
            "-i",
            "-n",
            "-p",
            "-C",
            "-t",
            &self.init(machine).unwrap().to_string(),
            "--",
        ]);
        Outcome::of(command.args(argv), &argv.join(" ")).stdout.trim().to_owned()
    }

    /// Writes a file of a machine.
    fn put(&self, machine: &str, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root(machine).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Destroys everything, and asserts that nothing is left.
    #[track_caller]
    fn destroy(&self) {
        self.orch("destroy -M lab -H father --yes --json").ends_with(0).every_node_is("changed");
        assert_nothing_is_left(self);
    }

    /// Waits until a machine's systemd has started everything, and asserts that nothing failed.
    #[track_caller]
    fn assert_all_is_up(&self, machine: &str) {
        let is = self.says(machine, &["systemctl", "is-system-running", "--wait"]);
        let failed = || self.says(machine, &["systemctl", "--failed", "--no-pager"]);
        assert_eq!(is, "running", "{}", failed());
    }

    fn wait_until_off(&self, machine: &str) {
        let init = self.init(machine).unwrap();
        wait_until("the machine is off", || !crate::common::is_alive(init));
    }
}

/// A host with these images.
fn host(images: &[(&str, &Path)]) -> String {
    let images: Vec<String> =
        images.iter().map(|(name, path)| format!("{name}: \"{}\"", path.display())).collect();
    format!("provider: local\nimages: {{ {} }}\n", images.join(", "))
}

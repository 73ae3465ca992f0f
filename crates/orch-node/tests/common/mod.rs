//! What the tests share: a tree of files that stands for a node, configurations for it, and the program itself.

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::panic, reason = "a test that cannot read an answer has failed")]

pub(crate) mod secrets;

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use orch_model::config::{File, Network, Role, Run, Services, Ssh, User};
use orch_model::{
    ApplyReport, Config, Digest, Identity, Inspection, NodeName, ResourceReport, RootLogin, SpecName,
    Timespan, Trigger, YesNo,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// A public key that nobody has the other half of.
pub(crate) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1 alice@laptop";

/// Tells the program that the programs of a tree may be run.
const STAND_INS: &str = "ORCH_NODE_STAND_INS";

/// A role that asks for as little as a role can.
pub(crate) fn role() -> Role {
    Role {
        domain: None,
        network: Network::Dhcp,
        timezone: "UTC".parse().unwrap(),
        users: Vec::new(),
        ssh: Ssh {
            port: 22,
            permit_root_login: RootLogin::ProhibitPassword,
            password_authentication: YesNo::No,
        },
        sudo_nopasswd: false,
        fail2ban: false,
        packages: Vec::new(),
        services: Services { enable: Vec::new(), disable: Vec::new() },
        hypervisor: None,
        files: Vec::new(),
        secrets: Vec::new(),
        enroll_recipient: false,
        nixos: None,
        health: Vec::new(),
        run: Run { trigger: Trigger::Manual, interval: Timespan::minutes(15) },
        config: std::collections::BTreeMap::new(),
    }
}

/// The configuration of a node with this role, as it arrives.
pub(crate) fn json_of(role: &Role) -> Json {
    let identity: Identity = "test.web@here".parse().unwrap();
    let (spec, hostname): (SpecName, NodeName) = ("base".parse().unwrap(), "web".parse().unwrap());
    let digest = Digest::of(&(&identity, &spec, &hostname, Digest::of(role)));
    let mut config = serde_json::to_value(role).unwrap();
    for (key, value) in [
        ("node", json!(identity)),
        ("spec", json!(spec)),
        ("hostname", json!(hostname)),
        ("digest", json!(digest)),
    ] {
        config[key] = value;
    }
    config
}

/// The configuration of a node with this role.
pub(crate) fn config_of(role: &Role) -> Config {
    serde_json::from_value(json_of(role)).unwrap()
}

/// A file of root's that everybody can read.
pub(crate) fn file(path: &str, content: &str) -> File {
    File {
        path: path.parse().unwrap(),
        content: content.into(),
        mode: "0644".parse().unwrap(),
        owner: "root".parse().unwrap(),
    }
}

/// A user with one key.
pub(crate) fn user(name: &str) -> User {
    User { name: name.parse().unwrap(), sudo: false, ssh_keys: vec![KEY.parse().unwrap()] }
}

/// A tree of files that stands for a node. It is gone when this is dropped.
pub(crate) struct Tree {
    folder: TempDir,
    /// Whether its programs are stand-ins, which the program is told.
    has_stand_ins: Cell<bool>,
    /// Who is in the mounts that the program is to see, where those are others than this process sees.
    mounts_of: Cell<Option<u32>>,
}

impl Tree {
    /// A small machine without any program.
    pub(crate) fn new() -> Self {
        Self::in_folder(folder())
    }

    /// The same on a disk; nothing where there is none.
    pub(crate) fn on_disk() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // What the kernel calls `tmpfs`.
        let is_in_memory = rustix::fs::statfs(folder.path()).unwrap().f_type == 0x0102_1994;
        (!is_in_memory).then(|| Self::in_folder(folder))
    }

    fn in_folder(folder: TempDir) -> Self {
        let tree = Self { folder, has_stand_ins: Cell::new(false), mounts_of: Cell::new(None) };
        fs::set_permissions(tree.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        tree.write(
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n",
        );
        tree.write("/etc/group", "root:x:0:\n");
        tree.write("/etc/shadow", "root:*:19000:0:99999:7:::\n");
        tree.write("/etc/gshadow", "root:*::\n");
        tree.write("/etc/hosts", "127.0.0.1 localhost\n");
        tree.folder("/root");
        tree
    }

    /// Where a path of the node is for this process.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn folder(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    /// A program of the node, as a script that stands in for it.
    pub(crate) fn program(&self, path: &str, script: &str) {
        self.has_stand_ins.set(true);
        self.write(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Has the program see the mounts that this process sees.
    pub(crate) fn see_mounts_of(&self, pid: u32) {
        self.mounts_of.set(Some(pid));
    }

    /// Has the program take the programs of this tree for what they are in any tree: not to be run.
    pub(crate) fn forget_stand_ins(&self) {
        self.has_stand_ins.set(false);
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, self.at(path)).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.at(path)).unwrap().permissions().mode() & 0o7777
    }

    /// Every path in the tree with its kind, mode, content and time of change: two that are equal are the same.
    pub(crate) fn snapshot(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let data = fs::symlink_metadata(&path).unwrap();
                let content = if data.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                let (digest, times) =
                    (Digest::of_bytes(&content).short(), (data.mtime_nsec(), data.ctime_nsec()));
                let who = (data.uid(), data.gid(), data.ino());
                lines.push(format!("{} {:o} {who:?} {times:?} {digest}", path.display(), data.mode()));
                if data.is_dir() {
                    folders.push(path);
                }
            }
        }
        lines.sort();
        lines
    }

    /// The program, set to work on this tree.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_orch-node");
        let mut command = match self.mounts_of.get() {
            None => Command::new(program),
            Some(pid) => {
                let mut command = Command::new("nsenter");
                command.args(["--mount", "--target", &pid.to_string(), program]);
                command
            }
        };
        command.arg("--root").arg(self.folder.path()).args(args).env_remove(STAND_INS);
        if self.has_stand_ins.get() {
            command.env(STAND_INS, "1");
        }
        command
    }

    pub(crate) fn start(&self, args: &[&str], input: &[u8]) -> Child {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may refuse before it has read everything.
        let _ = stdin.write_all(input);
        child
    }

    pub(crate) fn run(&self, args: &[&str], input: &[u8]) -> Output {
        self.start(args, input).wait_with_output().unwrap()
    }

    pub(crate) fn apply(&self, role: &Role) -> ApplyReport {
        report(&self.run(&["apply", "-"], &bytes(role)))
    }

    pub(crate) fn push(&self, role: &Role) -> ApplyReport {
        report(&self.run(&["push"], &delivery(role)))
    }

    pub(crate) fn inspect(&self, role: &Role) -> Inspection {
        let output = self.run(&["inspect"], &bytes(role));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

/// A folder in memory where there is one: what is written is brought to the disk each time, and disks are slow.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let is_fit = rustix::fs::statvfs(memory)
        .is_ok_and(|memory| !memory.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    let folder = if is_fit { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn bytes(role: &Role) -> Vec<u8> {
    serde_json::to_vec(&json_of(role)).unwrap()
}

/// A configuration as a driver brings it.
pub(crate) fn delivery(role: &Role) -> Vec<u8> {
    serde_json::to_vec(&json!({ "config": json_of(role) })).unwrap()
}

/// The report, which is the last line of an answer.
pub(crate) fn report(output: &Output) -> ApplyReport {
    let text = output.stdout.trim_ascii_end();
    let line = text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// What a report says of one resource.
pub(crate) fn of<'a>(resources: &'a [ResourceReport], kind: &str, name: &str) -> &'a ResourceReport {
    let is_it = |resource: &&ResourceReport| resource.kind == kind && resource.name == name;
    resources.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name} in {resources:?}"))
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until something holds, and says what was waited for where it never does.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

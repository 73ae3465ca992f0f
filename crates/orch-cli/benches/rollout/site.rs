//! Nodes on this computer whose system is a stand-in for NixOS, and a driver with a store of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::wire;

/// How Nix is used as root and without a daemon. Nothing is fetched.
const NIX: &str = "experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\nsubstituters =\n\
                   require-sigs = false\n";

/// Puts a folder in the place of `/nix`, and becomes the program after it. Only this process and what it starts see that.
const OVER_NIX: &str = r#"mount --bind "$0" /nix && exec "$@""#;

pub(crate) const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/rollout");

/// A site and its state. Its nodes are gone when it is.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) nodes: usize,
    /// Folders before those of `PATH`.
    front: Option<PathBuf>,
}

impl Site {
    /// So many nodes, made, and reached with this latency.
    pub(crate) fn of(nodes: usize, latency: Duration) -> Self {
        let mut site = Self { folder: TempDir::new().unwrap(), nodes, front: None };
        site.write("site/site.yaml", "{ name: bench, node_user: root, timezone: UTC }\n");
        site.write("site/hosts/here.yaml", "{ provider: local, images: { \"*\": this-machine } }\n");
        site.write("site/presets/small.yaml", "{ cores: 1, memory: 512, disk: 1 }\n");
        site.write("site/specs/nixos.yaml", "{ schema_version: 1, nixos: { modules: [modules/web] } }\n");
        let manifest = format!(
            "{{ schema_version: 2, name: bench, settings: {{ parallelism: {nodes} }},\n  nodes: [{{ name: node, \
             count: {nodes}, type: vm, spec: nixos, preset: small, image: any }}] }}\n"
        );
        site.write("site/manifests/bench.yaml", &manifest);
        for folder in ["nix", "sockets"] {
            fs::create_dir_all(site.path(folder)).unwrap();
        }
        site.change("0");
        site.orch("create --keep-connections 0");
        for root in site.roots() {
            // The nodes' own Nix, which the script speaks to.
            fs::create_dir_all(root.join("etc/nix")).unwrap();
            fs::write(root.join("etc/nix/nix.conf"), NIX).unwrap();
        }
        let ways = site.ssh_config();
        fs::write(site.path("ssh_config"), &ways).unwrap();
        if !latency.is_zero() {
            wire::put_ssh_into(&site.path("wire"), latency, &ways);
            site.front = Some(site.path("wire"));
        }
        site
    }

    /// Has the module ask for another system.
    pub(crate) fn change(&self, version: &str) {
        let text = serde_json::to_string(version).unwrap();
        self.write(
            "site/modules/web/default.nix",
            &format!("{{ ... }}: {{ standIn = {{ version = {text}; files.\"etc/release\" = {text}; }}; }}\n"),
        );
    }

    /// Runs a verb on every node; it must succeed.
    pub(crate) fn orch(&self, words: &str) {
        let mut words = words.split_whitespace().map(OsString::from);
        let mut argv: Vec<OsString> = vec![env!("CARGO_BIN_EXE_orch").into(), words.next().unwrap()];
        argv.extend(["-M", "bench", "-H", "here", "--site"].map(OsString::from));
        argv.extend([self.path("site").into(), "--state".into(), self.path("state").into()]);
        argv.extend(words);
        self.run(&argv);
    }

    /// Has the script do the same.
    pub(crate) fn script(&self) {
        let here = Path::new(HERE);
        let mut argv: Vec<OsString> = vec!["sh".into(), here.join("script.sh").into()];
        argv.extend([here.join("fleet.nix").into(), stand_in().into()]);
        argv.push(self.module().into());
        argv.extend([self.path("ssh_config").into(), self.path("sockets").into()]);
        argv.extend((1..=self.nodes).map(|number| OsString::from(format!("node-{number}"))));
        self.run(&argv);
    }

    /// Ends the connections that the script kept, and waits until they are gone.
    pub(crate) fn hang_up(&self) {
        for socket in fs::read_dir(self.path("sockets")).unwrap().flatten() {
            let mut ssh = Command::new("ssh");
            ssh.arg("-S").arg(socket.path()).args(["-O", "exit", "any"]);
            let _ = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        // Who ends a connection is answered before its socket is gone.
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::read_dir(self.path("sockets")).unwrap().count() > 0 {
            assert!(Instant::now() < deadline, "a connection of the script did not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs something with the store of this site; it must succeed.
    pub(crate) fn run(&self, argv: &[OsString]) {
        self.run_into(argv, "answer");
    }

    /// The same, with its answer in a file of this name.
    fn run_into(&self, argv: &[OsString], answer: &str) {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", OVER_NIX]).arg(self.path("nix")).args(argv);
        command.env("NIX_CONFIG", NIX).env("ORCH_NIXPKGS", stand_in()).env_remove("NIX_REMOTE");
        if let Some(front) = &self.front {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(front.clone()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders).unwrap());
        }
        // What stays behind for the next command keeps no pipe of ours open.
        let file = |name: &str| fs::File::create(self.path(name)).unwrap();
        command.stdin(Stdio::null()).stdout(file(answer)).stderr(file("said"));
        let status = command.status().unwrap();
        let told = |name: &str| fs::read_to_string(self.path(name)).unwrap();
        assert!(status.success(), "{argv:?} ended with {status}:\n{}\n{}", told(answer), told("said"));
    }

    /// Puts a file into the store of this site, and says where it is then.
    pub(crate) fn add_to_store(&self, file: &Path) -> String {
        self.run_into(&[OsString::from("nix-store"), "--add".into(), file.into()], "added");
        fs::read_to_string(self.path("added")).unwrap().trim().to_owned()
    }

    /// The module that all nodes have.
    pub(crate) fn module(&self) -> PathBuf {
        self.path("site/modules/web/default.nix")
    }

    /// Fails unless every node runs, and boots, a system of this version.
    pub(crate) fn assert_all_run(&self, version: &str) {
        let roots = self.roots();
        assert_eq!(roots.len(), self.nodes);
        for root in roots {
            let profiles = root.join("nix/var/nix/profiles");
            let generation = fs::read_link(profiles.join("system")).unwrap();
            for link in [root.join("run/current-system"), profiles.join(generation)] {
                let system = fs::read_link(&link).unwrap();
                assert!(
                    system.to_string_lossy().ends_with(&format!("-{version}")),
                    "{} is not {version}",
                    system.display()
                );
            }
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The configuration with which `ssh` reaches the nodes by their names.
    fn ssh_config(&self) -> String {
        let mut orch = Command::new(env!("CARGO_BIN_EXE_orch"));
        orch.args(["ssh-config", "-M", "bench", "-H", "here", "--site"]).arg(self.path("site"));
        let output = orch.arg("--state").arg(self.path("state")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The file systems of the nodes.
    fn roots(&self) -> Vec<PathBuf> {
        let machines = fs::read_dir(self.path("state/local/here")).unwrap().flatten();
        let boots = machines.filter_map(|machine| fs::read(machine.path().join("boot.json")).ok());
        let init = |boot: Vec<u8>| serde_json::from_slice::<Json>(&boot).unwrap()["init"]["pid"].as_u64();
        boots.filter_map(init).map(|init| PathBuf::from(format!("/proc/{init}/root"))).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.hang_up();
        }
        let mut orch = Command::new(env!("CARGO_BIN_EXE_orch"));
        orch.args(["destroy", "--yes", "-M", "bench", "-H", "here", "--site"]).arg(self.path("site"));
        orch.arg("--state").arg(self.path("state"));
        // Nobody is left to tell that something stayed.
        let _ = orch.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// What stands in for nixpkgs.
pub(crate) fn stand_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/nix/stand-in").canonicalize().unwrap()
}

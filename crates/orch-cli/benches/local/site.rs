//! A site with so many equal nodes on this computer.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use orch_secrets::seal;
use serde_json::Value as Json;
use tempfile::TempDir;

/// A site and its state directory. Its nodes are gone when it is.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) nodes: usize,
    /// A file with what opens its secrets, where it has any.
    identity: Option<PathBuf>,
}

impl Site {
    /// Nodes with one file to configure.
    pub(crate) fn of(nodes: usize) -> Self {
        Self::with(nodes, "spec: motd, ")
    }

    /// Nodes without a configuration.
    pub(crate) fn bare(nodes: usize) -> Self {
        Self::with(nodes, "")
    }

    fn with(nodes: usize, spec: &str) -> Self {
        let site = Self { folder: TempDir::new().unwrap(), nodes, identity: None };
        site.write("site.yaml", "{ name: bench, node_user: root, timezone: UTC }\n");
        site.write("hosts/here.yaml", "{ provider: local, images: { \"*\": this-machine } }\n");
        site.write("presets/small.yaml", "{ cores: 1, memory: 512, disk: 1 }\n");
        site.write_manifest(spec);
        site.change("first\n");
        site
    }

    /// The same, whose secrets this opens.
    pub(crate) fn with_identity(mut self, identity: &seal::Identity) -> Self {
        let path = self.path("identity");
        fs::write(&path, identity.to_secret().expose()).unwrap();
        self.identity = Some(path);
        self
    }

    /// Has the nodes be configured from now on.
    pub(crate) fn give_spec(&self) {
        self.write_manifest("spec: motd, ");
    }

    fn write_manifest(&self, spec: &str) {
        let nodes = self.nodes;
        let count = if nodes > 1 { format!("count: {nodes}, ") } else { String::new() };
        let name = if nodes > 1 { "node" } else { "node-1" };
        let manifest = format!(
            "{{ schema_version: 2, name: bench, settings: {{ parallelism: {} }},\n  \
             nodes: [{{ name: {name}, {count}type: vm, {spec}preset: small, image: any }}] }}\n",
            nodes.max(16)
        );
        self.write("manifests/bench.yaml", &manifest);
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join("site").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Has the spec ask for another text in the file.
    pub(crate) fn change(&self, text: &str) {
        let content = serde_json::to_string(text).unwrap();
        let spec = format!("{{ schema_version: 1, files: [{{ path: /etc/motd, content: {content} }}] }}\n");
        self.write("specs/motd.yaml", &spec);
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orch"));
        let mut words = words.split_whitespace();
        command.arg(words.next().unwrap()).args(["-M", "bench", "-H", "here"]);
        command
            .arg("--site")
            .arg(self.folder.path().join("site"))
            .arg("--state")
            .arg(self.state())
            .args(words);
        command.envs(self.identity.iter().map(|path| ("SOPS_AGE_KEY_FILE", path)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a verb on every node; it must succeed.
    pub(crate) fn orch(&self, words: &str) {
        let status = self.command(words).status().unwrap();
        assert!(status.success(), "`orch {words}` ended with {status}");
    }

    /// The same, and what it reports of it.
    pub(crate) fn report(&self, words: &str) -> Json {
        let output = self.command(&format!("{words} --json")).stdout(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "`orch {words}` ended with {}", output.status);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fails unless the file on every node is this one.
    pub(crate) fn assert_all_have(&self, text: &str) {
        let inits = self.inits();
        assert_eq!(inits.len(), self.nodes);
        for init in inits {
            let root = PathBuf::from(format!("/proc/{init}/root"));
            assert_eq!(fs::read_to_string(root.join("etc/motd")).unwrap(), text);
        }
    }

    /// What the first processes of all nodes use for themselves, in KiB: what they share counts by its share.
    pub(crate) fn memory_of_inits(&self) -> usize {
        let share = |init: &u64| {
            let rollup = fs::read_to_string(format!("/proc/{init}/smaps_rollup")).unwrap();
            let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap().to_owned();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
        };
        self.inits().iter().map(share).sum()
    }

    /// The configuration with which `ssh` reaches the nodes by their names.
    pub(crate) fn ssh_config(&self) -> PathBuf {
        let path = self.path("ssh_config");
        let output = self.command("ssh-config").stdout(Stdio::piped()).output().unwrap();
        fs::write(&path, output.stdout).unwrap();
        path
    }

    pub(crate) fn inits(&self) -> Vec<u64> {
        let machines = fs::read_dir(self.state().join("local/here")).unwrap().flatten();
        let boots = machines.filter_map(|machine| fs::read(machine.path().join("boot.json")).ok());
        boots
            .map(|boot| serde_json::from_slice::<Json>(&boot).unwrap()["init"]["pid"].as_u64().unwrap())
            .collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Nobody is left to tell that something stayed.
        let _ = self.command("destroy --yes").status();
    }
}

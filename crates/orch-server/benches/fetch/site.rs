//! A site of many nodes of one kind, and first tokens for them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use orch_model::{Identity, SiteName};
use orch_run::StateDir;
use orch_server::{Minter, ServerFolder, system_clock};
use tempfile::TempDir;

/// A spec as one has it: packages, services, a user, a few files. What a node is given is some kilobytes.
const SPEC: &str = "schema_version: 1
access: { posture: dev, users: [{ name: ops, sudo: true }] }
platform:
  packages: [curl, git, htop, jq, tmux]
  services: { enable: [ssh, cron] }
files:
  - { path: /etc/motd, content: \"Nothing to see here.\\n\" }
  - { path: /etc/profile.d/editor.sh, content: \"export EDITOR=vi\\n\" }
run: { interval: 15m }
";

/// How many flushes are measured.
const FLUSHES: u32 = 300;

/// A site and the state of its server.
pub(crate) struct Site {
    folder: TempDir,
    nodes: usize,
}

impl Site {
    pub(crate) fn of(nodes: usize) -> Self {
        let site = Self { folder: TempDir::new().unwrap(), nodes };
        site.write("site.yaml", "{ name: bench, timezone: UTC }\n");
        site.write("hosts/h.yaml", "provider: local\n");
        site.write("presets/small.yaml", "{ cores: 1, memory: 512, disk: 1 }\n");
        site.write("postures/dev.yaml", "{ sudo: { nopasswd: true } }\n");
        site.write("specs/base.yaml", SPEC);
        let manifest = format!(
            "{{ schema_version: 2, name: m, execution: {{ default_mode: pull }},\n  \
             nodes: [{{ name: node, count: {nodes}, type: vm, spec: base, preset: small, image: any }}] }}\n"
        );
        site.write("manifests/m.yaml", &manifest);
        site
    }

    /// Another one of the same size, whose server knows nobody yet.
    pub(crate) fn like(other: &Self) -> Self {
        Self::of(other.nodes)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join("site").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How often in a second a line is on the disk that the ledger is on, where each is waited for.
    pub(crate) fn flushes(&self) -> f64 {
        let mut file = fs::File::create(self.path().join("flushes")).unwrap();
        let begun = Instant::now();
        for _ in 0..FLUSHES {
            file.write_all(&[b'x'; 128]).and_then(|()| file.sync_data()).unwrap();
        }
        f64::from(FLUSHES) / begun.elapsed().as_secs_f64()
    }

    /// The first token of a node.
    pub(crate) fn token(&self, node: &Identity) -> String {
        let minter = Minter::of(&server_folder(self.path()), system_clock());
        minter.mint(node, &"base".parse().unwrap(), None).unwrap().1.expose().to_owned()
    }
}

/// The node of this number.
pub(crate) fn node(number: usize) -> Identity {
    format!("m.node-{}@h", number + 1).parse().unwrap()
}

pub(crate) fn root(base: &Path) -> PathBuf {
    base.join("site")
}

pub(crate) fn server_folder(base: &Path) -> ServerFolder {
    let state = StateDir::locate(Some(&base.join("state"))).unwrap();
    ServerFolder::of(&state, &"bench".parse::<SiteName>().unwrap())
}

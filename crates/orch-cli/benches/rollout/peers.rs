//! Other programs that deploy the same systems to the same nodes over the same SSH servers, where they are in `PATH`.
//!
//! colmena needs the module system of a nixpkgs (`ORCH_TEST_NIXPKGS`); deploy-rs its second program, `activate`, beside `deploy`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::json;

use crate::site::{HERE, Site, stand_in};

/// A program that deploys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Script,
    Colmena,
    DeployRs,
}

impl Peer {
    pub(crate) const ALL: [Self; 3] = [Self::Script, Self::Colmena, Self::DeployRs];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Colmena => "colmena",
            Self::DeployRs => "deploy-rs",
        }
    }

    /// What of it is not here.
    pub(crate) fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Colmena if program("colmena").is_none() => Some("there is no `colmena` in PATH"),
            Self::Colmena if env::var_os("ORCH_TEST_NIXPKGS").is_none() => {
                Some("colmena needs a nixpkgs, by `ORCH_TEST_NIXPKGS`")
            }
            Self::DeployRs if program("deploy").is_none() || program("activate").is_none() => {
                Some("there are no `deploy` and `activate` in PATH")
            }
            Self::Script | Self::Colmena | Self::DeployRs => None,
        }
    }

    /// Lays out what it reads. The script needs nothing.
    pub(crate) fn prepare(self, site: &Site) {
        let files = match self {
            Self::Script => return,
            Self::Colmena => &["hive.nix"][..],
            Self::DeployRs => &["flake.nix", "activatable"],
        };
        let folder = self.folder(site);
        fs::create_dir_all(&folder).unwrap();
        for file in files {
            fs::copy(Path::new(HERE).join("peers").join(file), folder.join(file)).unwrap();
        }
        let nodes: Vec<String> = (1..=site.nodes).map(|number| format!("node-{number}")).collect();
        let activate = match self {
            Self::DeployRs => Some(site.add_to_store(&program("activate").unwrap())),
            Self::Script | Self::Colmena => None,
        };
        let data = json!({
            "nixpkgs": stand_in(), "lib": env::var("ORCH_TEST_NIXPKGS").ok(), "nixos": Path::new(HERE).join("peers"),
            "fleet": Path::new(HERE).join("fleet.nix"), "module": site.module(), "nodes": nodes,
            "ssh_config": site.path("ssh_config"), "activate": activate,
        });
        fs::write(folder.join("data.json"), data.to_string()).unwrap();
    }

    /// Has it deploy what the module says now.
    pub(crate) fn deploy(self, site: &Site) {
        let (folder, config) = (self.folder(site), site.path("ssh_config"));
        match self {
            Self::Script => site.script(),
            Self::Colmena => {
                let mut argv: Vec<OsString> = vec!["env".into()];
                argv.push(assignment("SSH_CONFIG_FILE", &config));
                argv.push(assignment("ORCH_BENCH_DATA", &folder.join("data.json")));
                argv.extend(["colmena", "apply", "--parallel", "0", "-f"].map(OsString::from));
                argv.push(folder.join("hive.nix").into());
                site.run(&argv);
            }
            Self::DeployRs => {
                let flake = format!("path:{}", folder.display());
                site.run(&["deploy", "--skip-checks", &flake, "--", "--impure"].map(OsString::from));
            }
        }
    }

    fn folder(self, site: &Site) -> PathBuf {
        site.path(self.name())
    }
}

fn assignment(name: &str, value: &Path) -> OsString {
    let mut assignment = OsString::from(format!("{name}="));
    assignment.push(value);
    assignment
}

/// Where a program is.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

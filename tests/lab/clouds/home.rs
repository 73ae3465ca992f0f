//! A site with a host of every kind, and the lab that stands in for those that are elsewhere.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use orch_lab::{LabFile, Request};
use serde_json::Value as Json;

use super::people::People;
use crate::common::{Lab, Need, Outcome, TIMEOUTS, control_groups, find_marks, lacks, speaking_of};

/// What every test here needs.
pub(crate) const NEEDS: [Need; 2] = [Need::Root, Need::Ssh];

const MOTHER: &str = "provider: proxmox\n\
    api_endpoint: https://mother.example:8006\n\
    api_token: secret:mother\n\
    tls_fingerprint: \"3B:5E:0C:5A:11:6D:0A:D7:2F:88:4C:09:A1:52:E7:6F:90:3D:C4:1B:77:28:FE:35:60:9A:D2:4E:8C:13:B6:F1\"\n\
    node: mother\ndatastore: local-zfs\nbridge: vmbr0\nvmid_range: [10000, 19999]\n\
    images: { any: \"local:import/any.qcow2\", other: \"local:import/other.qcow2\" }\n";
const CLOUD: &str = "provider: hetzner\ntoken: secret:cloud\nlocation: nbg1\n\
    server_types: { tiny: cx22, wide: cx32 }\nfirewall: orch-base\nspread: true\n\
    images: { any: debian-13, other: debian-12 }\n";

/// The hosts that the lab stands in for.
pub(crate) const ELSEWHERE: [&str; 2] = ["mother", "cloud"];

/// A site, and a lab that is up for it.
pub(crate) struct Home {
    pub(crate) lab: Lab,
}

impl Home {
    /// The sample site of this repository; nothing where it cannot be had here, which is said then.
    #[track_caller]
    pub(crate) fn sample() -> Option<Self> {
        (!lacks(&NEEDS)).then(|| Self { lab: Lab::with_sample_site() }.up())
    }

    /// The small site with these nodes in its manifest `lab`.
    #[track_caller]
    pub(crate) fn with_nodes(nodes: &[&str]) -> Option<Self> {
        (!lacks(&NEEDS)).then(|| Self { lab: furnished(Lab::with_nodes(TIMEOUTS, nodes)) }.up())
    }

    /// The same with the lab up.
    #[track_caller]
    pub(crate) fn up(self) -> Self {
        self.lab.orch("lab up --quick").ends_with(0);
        self
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        self.lab.command(&format!("--lab {words}"))
    }

    /// Runs the program in the lab.
    pub(crate) fn orch(&self, words: &str) -> Outcome {
        Outcome::of(&mut self.command(words), words)
    }

    /// The lab's own folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.lab.state.join("lab")
    }

    /// What the lab says of itself.
    pub(crate) fn file(&self) -> LabFile {
        orch_lab::read(&self.folder()).unwrap()
    }

    /// Somebody at the API of a host.
    pub(crate) fn people(&self, host: &str) -> People {
        People::at(&self.file().hosts[host])
    }

    /// What a host was asked since this was last asked: methods and paths.
    pub(crate) fn calls(&self, host: &str) -> Vec<(String, String)> {
        let request = Request::Calls { host: Some(host.parse().unwrap()), reset: true };
        let answer = self.ask(&request);
        let calls = answer[host]["list"].as_array().unwrap();
        let word = |call: &Json, name: &str| call[name].as_str().unwrap().to_owned();
        calls.iter().map(|call| (word(call, "method"), word(call, "path"))).collect()
    }

    /// Asks the lab itself.
    pub(crate) fn ask(&self, request: &Request) -> Json {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(orch_lab::ask(&self.folder(), request)).unwrap()
    }

    /// Where machines of a host are kept on this computer.
    fn machines_folder(&self, host: &str) -> PathBuf {
        match host {
            "father" => self.lab.state.join("local/father"),
            _ => self.folder().join("hosts").join(host).join("local").join(host),
        }
    }

    /// The root of the running machine on a host that has this name for itself.
    #[track_caller]
    pub(crate) fn root(&self, host: &str, hostname: &str) -> PathBuf {
        let folders = fs::read_dir(self.machines_folder(host)).unwrap().flatten();
        let roots = folders.filter_map(|folder| {
            let boot: Json = serde_json::from_slice(&fs::read(folder.path().join("boot.json")).ok()?).ok()?;
            Some(PathBuf::from(format!("/proc/{}/root", boot["init"]["pid"])))
        });
        let name = |root: &PathBuf| fs::read_to_string(root.join("etc/hostname")).unwrap_or_default();
        let mut found: Vec<PathBuf> = roots.filter(|root| name(root).trim() == hostname).collect();
        assert_eq!(found.len(), 1, "there is one `{hostname}` on `{host}`: {found:?}");
        found.remove(0)
    }

    /// Asserts that no host has a machine, nor this computer anything of one.
    #[track_caller]
    pub(crate) fn assert_empty(&self, hosts: &[&str]) {
        for host in hosts {
            if *host != "father" {
                assert_eq!(self.people(host).machines(), [], "{host}");
            }
            let folder = self.machines_folder(host);
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            assert!(left.is_empty(), "{host}: {left:?}");
            let inits = speaking_of(&format!("__local init {}", folder.display()));
            assert!(inits.is_empty(), "{host}: {inits:?}");
        }
    }

    /// Takes the lab down, and asserts that nothing of it is left.
    #[track_caller]
    pub(crate) fn down(self) {
        let mut marks = Vec::new();
        find_marks(&self.folder(), 6, &mut marks);
        self.lab.orch("lab down").ends_with(0);
        let names = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let left: Vec<_> = names.map(|entry| entry.file_name()).filter(|name| name != "driver").collect();
        assert!(left.is_empty(), "{left:?}");
        let processes = speaking_of(&self.lab.state.display().to_string());
        assert!(processes.is_empty(), "{processes:?}");
        let groups = control_groups();
        assert!(!groups.iter().any(|group| marks.iter().any(|mark| group.ends_with(mark.as_str()))));
    }
}

/// Does the same on every host elsewhere at once.
pub(crate) fn on_each(doing: impl Fn(&'static str) + Sync) {
    std::thread::scope(|scope| {
        let doing = &doing;
        let threads = ELSEWHERE.map(|host| scope.spawn(move || doing(host)));
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// The small site, with hosts elsewhere.
pub(crate) fn furnished(lab: Lab) -> Lab {
    lab.write("hosts/mother.yaml", MOTHER);
    lab.write("hosts/cloud.yaml", CLOUD);
    lab.write("presets/tiny.yaml", "cores: 1\nmemory: 512\ndisk: 4\n");
    lab.write("presets/wide.yaml", "cores: 2\nmemory: 1024\ndisk: 6\n");
    lab
}

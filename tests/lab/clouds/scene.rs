//! A folder with machines in it, and what is needed to look at them as their users do.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use orch_lab::{Addresses, FirstBoot, LocalMachines, LocalMachinesSettings, Size, Wanted};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::common::{Guard, ORCH, speaking_of};

/// A key pair of SSH.
pub(crate) struct Pair {
    pub(crate) path: PathBuf,
    pub(crate) private: String,
    pub(crate) public: String,
}

/// Where machines are, and the key that opens them.
pub(crate) struct Scene {
    pub(crate) path: PathBuf,
    pub(crate) key: Pair,
    /// Whose machines they are: other tests run at the same time.
    lab: Uuid,
    _guard: Guard,
    _folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_owned();
        let key = pair(&path.join("user"));
        Self { key, lab: Uuid::new_v4(), _guard: Guard::of(&path), path, _folder: folder }
    }

    /// The machines of a host of this scene, and the address that the first of them will have.
    pub(crate) fn machines(&self) -> (LocalMachines, Ipv4Addr) {
        let addresses = Addresses::hold(&self.path.join("addresses.json")).unwrap();
        let [a, b, c, _] = addresses.of_api(0).unwrap().octets();
        let host = "cloud".parse().unwrap();
        let settings = settings(self.path.join("host"), host, self.lab, addresses);
        (LocalMachines::open(settings).unwrap(), Ipv4Addr::new(a, b, c, 10))
    }

    /// What a machine is given: the key of this scene for root, and this user data.
    pub(crate) fn first(&self, instance: &str, user_data: impl Into<Vec<u8>>) -> FirstBoot {
        FirstBoot {
            vendor_data: Vec::new(),
            instance: instance.into(),
            hostname: "web01".into(),
            user_data: user_data.into(),
            user: None,
            keys: vec![self.key.public.clone()],
        }
    }

    /// Runs a program on a machine, by SSH as root.
    pub(crate) fn ssh(&self, at: IpAddr, words: &[&str]) -> String {
        let mut command = Command::new("ssh");
        command.args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]);
        command.args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i"]);
        command.arg(&self.key.path).arg(format!("root@{at}")).args(words).stdin(Stdio::null());
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{words:?}: {}: {said}", ended.status);
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Everything of this scene's machines that is still there: processes, and files but for those of the scene itself.
    pub(crate) fn left(&self) -> Vec<String> {
        let processes = speaking_of(&format!("{} ", self.path.join("host").display()));
        let inits = speaking_of(&format!("__local init {}", self.path.display()));
        let mut left: Vec<String> =
            processes.into_iter().chain(inits).map(|pid| format!("process {pid}")).collect();
        for folder in ["host/local/cloud", "lab/hosts"] {
            let entries = fs::read_dir(self.path.join(folder)).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path().display().to_string()));
        }
        left
    }
}

pub(crate) fn settings(
    folder: PathBuf,
    host: orch_model::HostName,
    lab: Uuid,
    addresses: Arc<Addresses>,
) -> LocalMachinesSettings {
    LocalMachinesSettings::new(folder, host, lab, ORCH.into(), addresses)
}

pub(crate) fn wanted(id: &str) -> Wanted {
    Wanted {
        id: id.into(),
        name: format!("server-{id}"),
        size: Size { cores: 1, memory: 512, disk: 1 },
        image: "debian-13".into(),
        is_container: false,
    }
}

/// Makes a key pair.
pub(crate) fn pair(path: &Path) -> Pair {
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(path).status();
    assert!(made.unwrap().success());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let public = fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned();
    Pair { path: path.to_owned(), private: fs::read_to_string(path).unwrap(), public }
}

/// User data with a host key, and more.
pub(crate) fn cloud_config(host_key: &Pair, more: &serde_json::Value) -> String {
    let mut document = json!({
        "ssh_deletekeys": true,
        "ssh_keys": { "ed25519_private": host_key.private, "ed25519_public": host_key.public },
    });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("#cloud-config\n{document:#}\n")
}

/// Whether somebody takes connections there.
pub(crate) fn answers(at: IpAddr, port: u16) -> bool {
    TcpStream::connect_timeout(&(at, port).into(), Duration::from_secs(5)).is_ok()
}

/// The key that whoever answers there shows now; nothing where nobody does.
pub(crate) fn shown_key(at: IpAddr) -> Option<String> {
    let scanned = Command::new("ssh-keyscan").args(["-T", "5", "-t", "ed25519"]).arg(at.to_string()).output();
    let text = String::from_utf8(scanned.unwrap().stdout).unwrap();
    let line = text.lines().find(|line| !line.starts_with('#'))?;
    line.split_once(' ').map(|(_, key)| key.to_owned())
}

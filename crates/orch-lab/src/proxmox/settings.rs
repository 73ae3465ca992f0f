//! What a lab's Proxmox VE is: its node, storages, templates, who may do what, and how long things take.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::faults::Faults;
use crate::machines::Machines;

const GIB: u64 = 1 << 30;

/// One Proxmox VE of one node.
#[derive(Clone)]
pub struct ProxmoxSettings {
    /// The name of the node.
    pub node: String,
    /// Other nodes of the same cluster, which are dead: one alone has no quorum, and changes nothing.
    pub dead_nodes: Vec<String>,
    /// Where everything is kept; without it, a new one is as empty as these settings.
    pub state: Option<PathBuf>,
    /// Its storages.
    pub storages: Vec<ProxmoxStorage>,
    /// The templates that are there from the beginning.
    pub templates: Vec<ProxmoxTemplate>,
    /// Volumes that are there from the beginning, such as `local:import/debian-13.qcow2`, and their size in bytes.
    pub volumes: BTreeMap<String, u64>,
    /// Whether an image or container template exists only where it was put; otherwise whatever is asked for exists.
    pub strict_volumes: bool,
    /// How large an image is that exists because it was asked for.
    pub image_bytes: u64,
    /// The bridges of the node.
    pub bridges: Vec<String>,
    /// Users such as `root@pam`, and their passwords.
    pub users: BTreeMap<String, String>,
    /// API tokens that are there from the beginning.
    pub tokens: Vec<ProxmoxToken>,
    /// The published description of the API, against which parameters are checked; without it, a small table is used.
    pub description: Option<PathBuf>,
    /// How long things take.
    pub timings: ProxmoxTimings,
    /// How many tasks run at once; the others wait.
    pub workers: usize,
    /// The processor cores of the node.
    pub cores: u32,
    /// The memory of the node in bytes.
    pub memory: u64,
    /// What runs behind the API.
    pub machines: Arc<dyn Machines>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

impl ProxmoxSettings {
    /// A node with the storages that a new installation has, the user `root@pam` and the password `lab`.
    pub fn new(node: impl Into<String>, machines: Arc<dyn Machines>, faults: Faults) -> Self {
        Self {
            node: node.into(),
            dead_nodes: Vec::new(),
            state: None,
            storages: vec![
                ProxmoxStorage::new("local", "dir", &["iso", "vztmpl", "snippets", "import", "backup"]),
                ProxmoxStorage::new("local-zfs", "zfspool", &["images", "rootdir"]),
            ],
            templates: Vec::new(),
            volumes: BTreeMap::new(),
            strict_volumes: false,
            image_bytes: 2 * GIB,
            bridges: vec!["vmbr0".into()],
            users: BTreeMap::from([("root@pam".into(), "lab".into())]),
            tokens: Vec::new(),
            description: None,
            timings: ProxmoxTimings::default(),
            workers: 16,
            cores: 16,
            memory: 64 * GIB,
            machines,
            faults,
        }
    }

    pub(super) fn storage(&self, id: &str) -> Option<&ProxmoxStorage> {
        self.storages.iter().find(|storage| storage.id == id)
    }
}

/// One storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxmoxStorage {
    /// Its name.
    pub id: String,
    /// `dir`, `zfspool`, `lvmthin`.
    pub kind: String,
    /// What it may hold: `images`, `rootdir`, `iso`, `vztmpl`, `snippets`, `import`, `backup`.
    pub content: Vec<String>,
    /// How much it holds.
    pub bytes: u64,
    /// Where its files are: uploads go there, and `snippets/` below it is read when a machine starts.
    pub folder: Option<PathBuf>,
}

impl ProxmoxStorage {
    /// A storage of half a TiB, without a folder.
    pub fn new(id: &str, kind: &str, content: &[&str]) -> Self {
        let content = content.iter().map(|&content| content.to_owned()).collect();
        Self { id: id.to_owned(), kind: kind.to_owned(), content, bytes: 512 * GIB, folder: None }
    }

    pub(super) fn holds(&self, content: &str) -> bool {
        self.content.iter().any(|held| held == content)
    }

    pub(super) fn has_files(&self) -> bool {
        self.kind == "dir"
    }
}

/// A template that is there from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxmoxTemplate {
    /// Its id.
    pub vmid: u32,
    /// Its name.
    pub name: String,
    /// Where its disk is.
    pub storage: String,
    /// The size of its disk in GiB.
    pub disk: u32,
    /// Its memory in MiB.
    pub memory: u32,
    /// Its cores.
    pub cores: u32,
    /// What machines made from it are told to be made from.
    pub image: String,
}

impl ProxmoxTemplate {
    /// A small template on `local-zfs`, whose image has its name.
    pub fn new(vmid: u32, name: &str) -> Self {
        let storage = "local-zfs".to_owned();
        Self { vmid, name: name.to_owned(), storage, disk: 2, memory: 512, cores: 1, image: name.to_owned() }
    }
}

/// An API token that is there from the beginning.
#[derive(Clone)]
pub struct ProxmoxToken {
    /// Whose it is, such as `root@pam`.
    pub user: String,
    /// Its name.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// Paths and the roles that it has there, if it has less than its user.
    pub roles: Option<Vec<(String, String)>>,
}

impl ProxmoxToken {
    /// A token of `root@pam` that may do nearly everything.
    pub fn of_root(id: &str, secret: &str) -> Self {
        Self { user: "root@pam".into(), id: id.to_owned(), secret: secret.to_owned(), roles: None }
    }

    /// The same token with only these roles at these paths.
    pub fn with_roles(self, roles: &[(&str, &str)]) -> Self {
        let roles = roles.iter().map(|&(path, role)| (path.to_owned(), role.to_owned())).collect();
        Self { roles: Some(roles), ..self }
    }
}

/// How long things take. The default is what was measured on a real one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxmoxTimings {
    /// Before a failed authentication is answered.
    pub refused: Duration,
    /// How long a call that is sent on to a dead node hangs.
    pub unreachable: Duration,
    /// Creating a machine.
    pub create: Duration,
    /// Copying one.
    pub clone: Duration,
    /// Changing one in a task, and everything that is not named here.
    pub config: Duration,
    /// Starting one, beside what the machine itself takes.
    pub start: Duration,
    /// Stopping one.
    pub stop: Duration,
    /// How long a machine that ignores the power button is waited for.
    pub shutdown: Duration,
    /// Removing one.
    pub destroy: Duration,
    /// How long a storage is locked for a disk.
    pub allocate: Duration,
    /// How long a task waits for the lock of a machine or storage.
    pub lock: Duration,
    /// How long a copy waits for the locks of its source and its target.
    pub clone_lock: Duration,
    /// After a start, until the guest agent answers.
    pub agent: Duration,
    /// After a machine was made, until the cluster's list knows more than its id.
    pub report: Duration,
}

impl Default for ProxmoxTimings {
    fn default() -> Self {
        Self {
            refused: Duration::from_secs(3),
            unreachable: Duration::from_secs(30),
            create: Duration::from_millis(400),
            clone: Duration::from_millis(340),
            config: Duration::from_millis(230),
            start: Duration::from_millis(2200),
            stop: Duration::from_millis(660),
            shutdown: Duration::from_mins(3),
            destroy: Duration::from_millis(230),
            allocate: Duration::from_millis(50),
            lock: Duration::from_secs(10),
            clone_lock: Duration::from_secs(1),
            agent: Duration::from_secs(2),
            report: Duration::from_secs(10),
        }
    }
}

impl ProxmoxTimings {
    /// Everything at once, and locks that are waited for a little: for tests and for impatient people.
    pub const fn quick() -> Self {
        let moment = Duration::from_millis(2);
        Self {
            refused: Duration::ZERO,
            unreachable: Duration::from_millis(50),
            create: moment,
            clone: moment,
            config: moment,
            start: moment,
            stop: moment,
            shutdown: Duration::from_millis(50),
            destroy: moment,
            allocate: Duration::ZERO,
            lock: Duration::from_secs(5),
            clone_lock: Duration::from_secs(5),
            agent: Duration::ZERO,
            report: Duration::ZERO,
        }
    }
}

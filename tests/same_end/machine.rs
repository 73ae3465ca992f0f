//! A tree of files that stands for a machine, with the program set to work on it.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::ends::End;
use crate::machines::{Equipment, Furniture, LEFT, Left, PREAMBLE, PROGRAMS, UNITS};

/// Tells the program that the programs of a tree may be run.
const STAND_INS: &str = "ORCH_NODE_STAND_INS";

pub(crate) struct Machine {
    folder: TempDir,
    equipment: Equipment,
}

impl Machine {
    pub(crate) fn new(furniture: &Furniture) -> Self {
        let machine = Self { folder: folder(), equipment: furniture.equipment };
        fs::set_permissions(machine.root(), Permissions::from_mode(0o755)).unwrap();
        machine.write("/etc/passwd", PASSWD, 0o644);
        machine.write("/etc/group", "root:x:0:\nstaff:x:50:old\nold:x:1000:\n", 0o644);
        machine.write("/etc/shadow", "root:*:19000:0:99999:7:::\n", 0o640);
        machine.write("/etc/gshadow", "root:*::\n", 0o640);
        machine.write("/usr/share/zoneinfo/Europe/Berlin", "TZif", 0o644);
        machine.write("/usr/share/zoneinfo/Etc/UTC", "TZif", 0o644);
        machine.make_folder("/root");
        machine.make_folder("/home/old");
        // The node is given an enrolment there before it has a say in it.
        machine.make_folder("/var/lib/orch");
        fs::set_permissions(machine.at("/var/lib/orch"), Permissions::from_mode(0o700)).unwrap();
        machine.equip();
        for left in &furniture.left {
            machine.leave(LEFT[*left]);
        }
        machine
    }

    fn equip(&self) {
        match self.equipment {
            Equipment::Bare => {}
            Equipment::Shared => self.write("/run/orch/shares-programs", "", 0o644),
            Equipment::Whole => {
                for (path, script) in PROGRAMS {
                    self.write(path, &format!("{PREAMBLE}{script}\n"), 0o755);
                }
                self.make_folder("/run/systemd/system");
                for (unit, runs) in UNITS {
                    let (active, file) = if runs { ("active", "enabled") } else { ("inactive", "disabled") };
                    let state = format!("LoadState=loaded\nActiveState={active}\nUnitFileState={file}\n");
                    self.write(&format!("/db/units/{unit}"), &state, 0o644);
                }
                self.write("/db/installed", "vim\n", 0o644);
                self.write("/etc/ssh/sshd_config", "# mine\nX11Forwarding no\n", 0o600);
            }
        }
    }

    fn leave(&self, left: Left) {
        match left {
            Left::File(path, content, mode) => self.write(path, content, mode),
            Left::Folder(path) => self.make_folder(path),
            Left::Link(path, target) => {
                fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
                symlink(target, self.at(path)).unwrap();
            }
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Where a path of the machine is for this process.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    pub(crate) fn write(&self, path: &str, content: &str, mode: u32) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn make_folder(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    /// Runs the program on this machine.
    pub(crate) fn run(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orch"));
        command.arg("node").arg("--root").arg(self.root()).args(args).env_remove(STAND_INS);
        if self.equipment == Equipment::Whole {
            command.env(STAND_INS, "1");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may refuse before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// How it is now.
    pub(crate) fn end(&self) -> End {
        End::of(self.root())
    }
}

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nold:x:1000:1000::/home/old:/bin/sh\n\
                      nobody:x:65534:65534::/nonexistent:/bin/false\n";

/// A folder in memory where there is one: what is written is brought to the disk each time, and disks are slow.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let is_fit = rustix::fs::statvfs(memory)
        .is_ok_and(|memory| !memory.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    let folder = if is_fit { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.or_else(|_| tempfile::tempdir()).unwrap()
}

type Spoil = (&'static str, fn(&Machine));

/// One way each in which two machines can differ.
pub(crate) const SPOILS: [Spoil; 7] = [
    ("a text", |machine| machine.write("/etc/group", "root:x:0:\n", 0o644)),
    ("a mode", |machine| machine.write("/etc/passwd", PASSWD, 0o664)),
    ("a mode of a folder", |machine| {
        fs::set_permissions(machine.at("/root"), Permissions::from_mode(0o700)).unwrap();
    }),
    ("an owner", |machine| {
        let given = chown(machine.at("/etc/group"), Some(7), Some(7));
        // Nobody but root gives files away; for others it differs in its text.
        given.unwrap_or_else(|_| machine.write("/etc/group", "", 0o644));
    }),
    ("a file more", |machine| machine.write("/srv/more", "", 0o644)),
    ("a link", |machine| symlink("/x", machine.at("/srv-link")).unwrap()),
    ("something of orch's own that nobody expects", |machine| {
        machine.write("/var/lib/orch/more", "", 0o600);
    }),
];

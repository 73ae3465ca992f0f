//! A machine in namespaces of its own. What it has on its disk outlives its boots; all of it is gone when it is dropped.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use orch_model::Health;
use orch_model::StorePath;
use orch_model::system::{RolloutPhase, RolloutRecord, SwitchAnswer, SwitchLimits, SwitchOrder, SystemView};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::stand_in::StandIn;

/// What the namespaces hold before init is the first process in them. Nothing of the machine that the test is on can be
/// reached by what is gone over to: its store, its profiles, its boot loader and its state are out of sight.
const SCENE: &str = r#"
set -e
mount -t tmpfs none /run
mount -t tmpfs none /var/log
mkdir /run/orch
: > /run/orch/own-store
mount --bind "$2/nix" /nix
mount --bind "$2/lib" /var/lib
mount --bind "$2/boot" /boot
mount -t tmpfs none /etc/nix
printf 'build-users-group =\nsandbox = false\nsubstituters =\n' > /etc/nix/nix.conf
exec "$1" init
"#;

/// The same with a systemd as the first process, on a copy of this machine's files that is in memory. It may set nothing
/// that is about the whole computer.
const SYSTEMD_SCENE: &str = r#"
set -e
mount -t tmpfs none "$2/root"
cd "$2/root"
mkdir up work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$2/root/up,workdir=$2/root/work" root
cd root
cp "$1" usr/local/bin/orch-node
rm -rf etc/systemd/system
mkdir -p etc/systemd/system var/lib/orch old
: > etc/fstab
for unit in systemd-sysctl systemd-modules-load systemd-udevd systemd-networkd; do ln -s /dev/null etc/systemd/system/$unit.service; done
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for folder in run tmp dev; do mount -t tmpfs none $folder; done
for name in null zero full random urandom tty; do : > dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount --bind "$2/nix" nix
mount --bind "$2/lib/orch" var/lib/orch
mount --bind "$2/boot" boot
printf 'build-users-group =\nsandbox = false\nsubstituters =\n' > etc/nix/nix.conf
pivot_root . old
umount -l /old
exec env -i container=orch PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --show-status=no
"#;

/// Goes into a control group, where one is named, and becomes the rest.
const GROUPED: &str = r#"if test -n "$1"; then echo $$ > "$1/cgroup.procs" || exit 9; fi; shift; exec "$@""#;

pub(crate) const LIMITS: SwitchLimits = SwitchLimits { activate: 20, confirm: 20, health: 2, reboot: 10 };

pub(crate) struct Machine {
    /// Who made the namespaces of this boot, and its init.
    boot: Option<(Child, Pid)>,
    folder: TempDir,
    first: First,
    /// What a systemd takes for the root of all control groups: without it, it would be this computer's.
    group: Option<Group>,
}

/// A control group, gone with all in it when this is dropped.
struct Group(PathBuf);

impl Group {
    /// Nothing where this computer gives none.
    fn make(folder: &TempDir) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = fields
            .filter(|fields| fields.get(2) == Some(&"cgroup2"))
            .find_map(|fields| fields.get(1).copied())?;
        let name = folder.path().file_name()?.to_str()?;
        let path = PathBuf::from(root).join(format!("orch-test-{}", name.trim_start_matches('.')));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes are killed, and may take a moment to be gone.
        for _ in 0..200 {
            let mut find = Command::new("find");
            find.arg(&self.0).args(["-depth", "-type", "d", "-exec", "rmdir", "{}", "+"]);
            let _ = find.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The first process of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    OurInit,
    Systemd,
}

impl Machine {
    /// Nothing where it cannot be had here.
    pub(crate) fn start() -> Option<Self> {
        Self::start_by(First::OurInit)
    }

    fn start_by(first: First) -> Option<Self> {
        let lacks_systemd = first == First::Systemd && fs::metadata("/lib/systemd/systemd").is_err();
        let reason = if !rustix::process::geteuid().is_root() {
            Some("needs root")
        } else if !["nix-store", "setpriv", "unshare", "nsenter"].iter().all(|name| has(name)) {
            Some("needs nix-store, setpriv, unshare and nsenter")
        } else if !["/nix", "/etc/nix", "/boot"].iter().all(|path| fs::metadata(path).is_ok()) {
            Some("needs /nix, /etc/nix and /boot to lay others over")
        } else if fs::canonicalize("/bin/sh").is_ok_and(|path| path.starts_with("/nix")) {
            Some("needs programs outside of /nix")
        } else if lacks_systemd {
            Some("needs systemd to be installed")
        } else {
            None
        };
        if let Some(reason) = reason {
            println!("skipped: {reason}");
            return None;
        }
        let folder = TempDir::new().unwrap();
        for name in ["nix/store", "nix/var/nix/profiles", "lib/orch", "boot", "root"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let group = if first == First::Systemd { Group::make(&folder) } else { None };
        if first == First::Systemd && group.is_none() {
            println!("skipped: needs control groups of the second generation");
            return None;
        }
        let mut machine = Self { boot: None, folder, first, group };
        machine.boot();
        Some(machine)
    }

    /// One that runs and boots a good system, which another tool put there.
    pub(crate) fn with_first() -> Option<(Self, StorePath)> {
        Self::with_first_by(First::OurInit)
    }

    pub(crate) fn with_first_by(first: First) -> Option<(Self, StorePath)> {
        let machine = Self::start_by(first)?;
        let first = machine.add(&StandIn::good("first"));
        machine.shell(&format!(
            "nix-env -p /nix/var/nix/profiles/system --set {first} && {first}/bin/switch-to-configuration test \
             && ln -sfn {first} /run/booted-system"
        ));
        Some((machine, first))
    }

    pub(crate) fn boot(&mut self) {
        // It ends with the thread of its test, and takes all with it.
        let maker = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "sh", "-c", GROUPED, "sh"])
            .arg(self.group.as_ref().map_or(OsStr::new(""), |group| group.0.as_os_str()))
            .arg("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child=KILL"])
            .args(match self.first {
                First::OurInit => &["--mount-proc"][..],
                First::Systemd => &["--net", "--uts", "--ipc", "--cgroup"],
            })
            .args(["sh", "-c", if self.first == First::OurInit { SCENE } else { SYSTEMD_SCENE }])
            .args(["sh", env!("CARGO_BIN_EXE_orch-node")])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.folder.path().join("maker.log")).unwrap())
            .spawn()
            .unwrap();
        let init = wait_for("init", || child_of(maker.id()));
        self.boot = Some((maker, init));
        wait_for("the machine to be up", || self.is_up().then_some(()));
    }

    fn is_up(&self) -> bool {
        if self.first == First::OurInit {
            return self.log().contains("is up");
        }
        let state = self.enter().args(["systemctl", "is-system-running"]).output().unwrap();
        matches!(state.stdout.trim_ascii(), b"running" | b"degraded")
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.inside("/var/log/orch-init.log")).unwrap_or_default()
    }

    /// The power fails.
    pub(crate) fn cut_power(&mut self) {
        if let Some((mut maker, init)) = self.boot.take() {
            let _ = kill_process(init, Signal::KILL);
            let _ = maker.wait();
        }
    }

    fn init(&self) -> String {
        self.boot.as_ref().unwrap().1.as_raw_nonzero().to_string()
    }

    fn inside(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init()))
    }

    /// Runs a script inside, which must succeed.
    pub(crate) fn shell(&self, script: &str) -> String {
        let output = self.enter().args(["sh", "-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().into()
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.inside(path)).unwrap()
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        let namespaces: &[&str] = if self.first == First::OurInit { &["-m", "-p"] } else { &["-a"] };
        command.args(["-t", &self.init()]).args(namespaces).arg("--");
        command
    }

    /// Puts a system into the store.
    pub(crate) fn add(&self, system: &StandIn) -> StorePath {
        let folder = format!("/run/{}", system.name);
        let script = system.script();
        let output = self.enter().args(["sh", "-c", &script, "sh", &folder]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.shell(&format!("nix-store --add {folder}")).parse().unwrap()
    }

    /// The program, asked something about the system.
    pub(crate) fn ask(&self, args: &[&str], input: &str, variables: &[(&str, &str)]) -> Output {
        let mut child = self.begin(args, variables);
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The same, while it goes on.
    pub(crate) fn begin(&self, args: &[&str], variables: &[(&str, &str)]) -> Child {
        let mut command = self.enter();
        let here = env!("CARGO_BIN_EXE_orch-node");
        let program = if self.first == First::OurInit { here } else { "/usr/local/bin/orch-node" };
        command.args([program, "system"]).args(args);
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub(crate) fn answer<T: DeserializeOwned>(&self, args: &[&str], input: &str) -> T {
        let output = self.ask(args, input, &[]);
        assert!(output.status.success(), "{args:?}: {output:?}\n{}", self.rollout_log());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    pub(crate) fn rollout_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("lib/orch/rollout.log")).unwrap_or_default()
    }

    pub(crate) fn look(&self) -> SystemView {
        self.answer(&["look"], "{}")
    }

    pub(crate) fn order(&self, order: &SwitchOrder) -> SwitchAnswer {
        self.answer(&["switch"], &serde_json::to_string(order).unwrap())
    }

    /// The same, by a watcher that is killed once it has written down this phase.
    pub(crate) fn order_cut(&self, order: &SwitchOrder, phase: &str) -> Output {
        let text = serde_json::to_string(order).unwrap();
        self.ask(&["switch"], &text, &[("ORCH_NODE_CUT", phase)])
    }

    pub(crate) fn confirm(&self, id: &str) -> SwitchAnswer {
        self.answer(&["confirm", id], "")
    }

    /// What is on its disk of the rollout, read without asking it.
    pub(crate) fn record(&self) -> RolloutRecord {
        let text = fs::read(self.folder.path().join("lib/orch/rollout.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    pub(crate) fn wait_for_end(&self) -> RolloutRecord {
        wait_for("the end of the rollout", || Some(self.record()).filter(|record| record.phase.is_end()))
    }

    pub(crate) fn wait_for_phase(&self, phase: RolloutPhase) {
        wait_for("a phase", || (self.record().phase == phase).then_some(()));
    }

    /// What it runs, read by the test itself.
    pub(crate) fn running(&self) -> String {
        self.shell("readlink -f /run/current-system")
    }

    /// What it boots, as it has no boot loader.
    pub(crate) fn boots(&self) -> String {
        self.shell("readlink -f /nix/var/nix/profiles/system")
    }

    /// The system whose activation was the last one to get to its end.
    pub(crate) fn activated(&self) -> String {
        self.shell("cat /var/lib/orch/activated")
    }

    /// The processes that watch, by their numbers inside: who works first, where that can be told.
    pub(crate) fn watchers(&self) -> Vec<String> {
        let script = "for p in /proc/[0-9]*; do \
                      if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q 'system [w]atch'; then echo ${p#/proc/}; fi; done";
        self.shell(script).lines().map(String::from).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cut_power();
    }
}

/// An order with everything that a test does not care about.
pub(crate) fn order(id: &str, system: &StorePath) -> SwitchOrder {
    let (id, run, system) = (id.into(), "run-1".into(), system.clone());
    SwitchOrder { id, run, leased: false, system, health: Vec::new(), reboot: false, limits: LIMITS }
}

/// A check that holds where a script ends well.
pub(crate) fn health(script: &str) -> Health {
    Health::Command(["sh", "-c", script].map(String::from).into())
}

fn has(name: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/sbin"].iter().any(|folder| fs::metadata(format!("{folder}/{name}")).is_ok())
}

fn child_of(pid: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

/// Waits until something holds, and says what was waited for where it never does.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! The first process of a node, as one: in namespaces of its own, with a script in the place of the SSH server.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod common;

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{is_root, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// What the namespaces hold before init is the first process in them.
const SCENE: &str = r#"
mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir /run/orch || exit 9
if test -n "$2"; then
    : > /run/orch/sshd-wanted
    if test -e /usr/sbin/sshd; then mount --bind "$2" /usr/sbin/sshd
    else mount -t tmpfs none /usr/local/sbin && cp -p "$2" /usr/local/sbin/sshd; fi || exit 9
fi
exec "$1" init
"#;

/// A server that writes down that it was started, and stays.
const STAYS: &str = "#!/bin/sh\necho \"$*\" >> /run/orch/started\nexec sleep 1000\n";
/// One that dies of its start.
const DIES: &str = "#!/bin/sh\necho \"$*\" >> /run/orch/started\nexit 1\n";

/// A running init. Its namespaces and all in them are gone when this is dropped.
struct Machine {
    /// Not init itself, but who made its namespaces; it ends as init does.
    maker: Child,
    init: Pid,
    _folder: TempDir,
}

impl Machine {
    /// Nothing where this user may not do that.
    fn start(sshd: Option<&str>) -> Option<Self> {
        if !is_root() {
            println!("skipped: needs root");
            return None;
        }
        let folder = TempDir::new().unwrap();
        let server = sshd.map_or_else(PathBuf::new, |script| {
            let path = folder.path().join("sshd");
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            path
        });
        let maker = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--mount-proc",
                "--kill-child=KILL",
                "sh",
                "-c",
                SCENE,
                "sh",
            ])
            .arg(env!("CARGO_BIN_EXE_orch-node"))
            .arg(server)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let init = wait_for("init", || child_of(maker.id()));
        let machine = Self { maker, init, _folder: folder };
        wait_for("the node to be up", || {
            machine.read("/var/log/orch-init.log").contains("is up").then_some(())
        });
        Some(machine)
    }

    fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init.as_raw_nonzero()))
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    fn starts(&self) -> usize {
        self.read("/run/orch/started").lines().count()
    }

    /// The processes in it, but for the first.
    fn processes(&self) -> Vec<(u32, String)> {
        let entries = fs::read_dir(self.path("/proc")).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let state = |pid: u32| self.read(&format!("/proc/{pid}/stat"));
        pids.filter(|pid| *pid != 1).map(|pid| (pid, state(pid))).collect()
    }

    /// Runs a script inside.
    fn run(&self, script: &str) {
        let pid = self.init.as_raw_nonzero().to_string();
        let done =
            Command::new("nsenter").args(["-t", &pid, "-m", "-p", "sh", "-c", script]).status().unwrap();
        assert!(done.success());
    }

    fn stop(&mut self) -> Option<i32> {
        kill_process(self.init, Signal::TERM).unwrap();
        self.maker.wait().unwrap().code()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Its maker may be gone already, and everything else with it.
        let _ = self.maker.kill();
        let _ = self.maker.wait();
    }
}

fn child_of(pid: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

#[test]
fn the_ssh_server_runs_once_and_again_when_it_dies() {
    let Some(machine) = Machine::start(Some(STAYS)) else { return };
    wait_for("the first start", || (machine.starts() == 1).then_some(()));
    assert_eq!(machine.read("/run/orch/started"), "-D -e -f /etc/ssh/sshd_config\n");
    assert!(machine.path("/run/sshd").is_dir());
    let server = wait_for("the server", || {
        machine.processes().iter().find(|(_, stat)| stat.contains("(sleep)")).map(|(pid, _)| *pid)
    });
    machine.run(&format!("kill -9 {server}"));
    wait_for("the second start", || (machine.starts() == 2).then_some(()));
    let running = || machine.processes().iter().filter(|(_, stat)| stat.contains("(sleep)")).count();
    wait_for("one server", || (running() == 1).then_some(()));
    assert!(machine.read("/var/log/orch-init.log").contains("has ended by signal 9"));
}

#[test]
fn no_server_is_started_where_none_is_wanted() {
    let Some(mut machine) = Machine::start(None) else { return };
    assert_eq!(machine.processes(), []);
    assert_eq!(machine.stop(), Some(0));
}

#[test]
fn no_second_server_is_started_beside_one_that_somebody_else_runs() {
    let Some(machine) = Machine::start(Some(DIES)) else { return };
    // A process of that name, and a file that names it.
    machine.run(
        "mkdir /run/x && cp \"$(command -v sleep)\" /run/x/sshd
         /run/x/sshd 1000 < /dev/null > /dev/null 2>&1 & echo $! > /run/sshd.pid",
    );
    wait_for("init to notice", || {
        machine.read("/var/log/orch-init.log").contains("an SSH server runs already").then_some(())
    });
    let starts = machine.starts();
    machine.run("kill $(cat /run/sshd.pid)");
    wait_for("the next start", || (machine.starts() > starts).then_some(()));
}

#[test]
fn a_server_that_keeps_dying_is_given_more_and_more_time() {
    let Some(machine) = Machine::start(Some(DIES)) else { return };
    wait_for("four starts", || (machine.starts() >= 4).then_some(()));
    let log = machine.read("/var/log/orch-init.log");
    let times: Vec<jiff::Timestamp> = log
        .lines()
        .filter(|line| line.contains("is started"))
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let pauses: Vec<i64> =
        times.windows(2).map(|pair| pair[1].as_millisecond() - pair[0].as_millisecond()).collect();
    for (pause, least) in pauses.iter().zip([100, 200, 400]) {
        assert!(*pause >= least, "{pauses:?}");
    }
}

#[test]
fn orphans_are_reaped() {
    let Some(machine) = Machine::start(None) else { return };
    machine.run("for n in 1 2 3 4 5 6 7 8 9; do (sleep 0.05 < /dev/null > /dev/null 2>&1 &) ; done");
    wait_for("all orphans to be gone", || machine.processes().is_empty().then_some(()));
}

#[test]
fn everything_ends_when_the_node_is_stopped() {
    let Some(mut machine) = Machine::start(Some(STAYS)) else { return };
    machine.run("(trap '' TERM; sleep 1000 < /dev/null > /dev/null 2>&1 & exec sleep 1000 < /dev/null > /dev/null 2>&1) &");
    wait_for("three processes", || (machine.processes().len() >= 3).then_some(()));
    let log = fs::File::open(machine.path("/var/log/orch-init.log")).unwrap();
    let begin = Instant::now();
    assert_eq!(machine.stop(), Some(0));
    assert!(begin.elapsed() > Duration::from_secs(2), "those who do not listen are given time");
    assert!(begin.elapsed() < Duration::from_secs(10));
    let log = std::io::read_to_string(log).unwrap();
    assert!(log.contains("some processes had to be ended") && log.contains("is down"), "{log}");
}

#[test]
fn those_who_listen_are_not_waited_for_longer_than_they_need() {
    let Some(mut machine) = Machine::start(Some(STAYS)) else { return };
    wait_for("the server", || (machine.starts() == 1).then_some(()));
    let begin = Instant::now();
    assert_eq!(machine.stop(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[test]
fn whoever_started_the_node_gets_its_streams_back() {
    let Some(mut machine) = Machine::start(Some(STAYS)) else { return };
    // The maker of the namespaces has them too, but init and its children must not.
    let mut out = machine.maker.stdout.take().unwrap();
    let pipe = fs::read_link(format!("/proc/{}/fd/1", machine.maker.id())).unwrap();
    wait_for("the server", || (machine.starts() == 1).then_some(()));
    let insiders = [machine.init.as_raw_nonzero().get().unsigned_abs()];
    for pid in
        insiders.into_iter().chain(child_of(insiders[0]).map(|pid| pid.as_raw_nonzero().get().unsigned_abs()))
    {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
            assert_ne!(fs::read_link(entry.path()).unwrap_or_default(), pipe, "process {pid}");
        }
    }
    assert_eq!(machine.stop(), Some(0));
    let mut said = String::new();
    out.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn it_is_small_and_sleeps() {
    let Some(machine) = Machine::start(None) else { return };
    let status = fs::read_to_string(format!("/proc/{}/status", machine.init.as_raw_nonzero())).unwrap();
    let value = |key: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(value("RssAnon:") < 1024, "{status}");
    assert_eq!(value("Threads:"), 1);
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", machine.init.as_raw_nonzero())).unwrap();
        let fields: Vec<String> = stat.split(' ').map(String::from).collect();
        (fields[13].parse::<u64>().unwrap(), fields[14].parse::<u64>().unwrap())
    };
    let before = ticks();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(ticks(), before, "it has nothing to do");
}

#[test]
fn only_the_first_process_can_be_init() {
    let output = Command::new(env!("CARGO_BIN_EXE_orch-node")).arg("init").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

//! The first process of a node that pulls: it runs what fetches, beside the SSH server, from the moment there is an
//! enrolment. The server that the enrolment names is not there, so that nothing is ever applied to the machine of the test.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{is_root, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// What the namespaces hold before init is the first process in them. No server can be reached from there.
const SCENE: &str = r#"
mount -t tmpfs none /run && mount -t tmpfs none /var/log && mount -t tmpfs none /var/lib || exit 9
mkdir -m 0700 /var/lib/orch || exit 9
test -z "$2" || printf '%s' "$2" > /var/lib/orch/enrolment.json
head -c 2000000 /dev/zero > /var/log/orch-node.log
exec "$1" init
"#;

const ENROLMENT: &str =
    r#"{"node":"test.web@here","mode":"pull","server":"https://127.0.0.1:1","pins":[],"token":"x.y"}"#;

/// A running init. Its namespaces and all in them are gone when this is dropped.
struct Machine {
    maker: Child,
    init: Pid,
}

impl Machine {
    /// Nothing where this user may not do that.
    fn start(enrolment: &str) -> Option<Self> {
        if !is_root() {
            println!("skipped: needs root");
            return None;
        }
        let maker = Command::new("unshare")
            .args(["--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child=KILL"])
            .args(["sh", "-c", SCENE, "sh", env!("CARGO_BIN_EXE_orch-node"), enrolment])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let init = wait_for("init", || child_of(maker.id()));
        let machine = Self { maker, init };
        wait_for("the node to be up", || machine.log().contains("is up").then_some(()));
        Some(machine)
    }

    fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init.as_raw_nonzero()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("/var/log/orch-init.log")).unwrap_or_default()
    }

    /// What fetches: its number outside, once it is what it says.
    fn fetcher(&self) -> Option<Pid> {
        let pid = child_of(self.init.as_raw_nonzero().get().unsigned_abs())?;
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
        (line == b"orch-node\0run\0").then_some(pid)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.maker.kill();
        let _ = self.maker.wait();
    }
}

fn child_of(pid: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

#[test]
fn what_fetches_runs_and_again_when_it_dies() {
    let Some(mut machine) = Machine::start(ENROLMENT) else { return };
    let first = wait_for("what fetches", || machine.fetcher());
    assert!(
        fs::metadata(machine.path("/var/log/orch-node.log")).unwrap().len() < 1 << 20,
        "its log is bounded"
    );
    wait_for("it to be at it", || machine.path("/var/lib/orch/pull.lock").exists().then_some(()));
    kill_process(first, Signal::KILL).unwrap();
    let second = wait_for("it to run again", || machine.fetcher().filter(|pid| *pid != first));
    assert!(machine.log().contains("the node program has ended by signal 9"));
    assert_ne!(first, second);
    kill_process(machine.init, Signal::TERM).unwrap();
    let begin = Instant::now();
    assert_eq!(machine.maker.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2), "it stops when it is told to");
}

#[test]
fn an_enrolment_that_comes_later_is_found_when_init_is_told_to_look() {
    let Some(machine) = Machine::start("") else { return };
    fs::write(machine.path("/var/lib/orch/enrolment.json"), ENROLMENT).unwrap();
    assert!(machine.fetcher().is_none());
    kill_process(machine.init, Signal::HUP).unwrap();
    wait_for("what fetches", || machine.fetcher());
    kill_process(machine.init, Signal::HUP).unwrap();
    wait_for("it to be at it", || machine.path("/var/lib/orch/pull.lock").exists().then_some(()));
    assert_eq!(machine.log().matches("the node program is started").count(), 1, "one is enough");
}

//! A pushed configuration: its worker outlives whoever brought it, two pushes do not get in each other's way, and a cut at
//! any moment is healed by the next.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use common::{Tree, bytes, config_of, delivery, file, report, role};
use orch_model::config::Role;
use orch_model::{ApplyReport, ApplyStatus, Health};
use rustix::process::{Pid, Signal, kill_process};

/// Waits until something holds, and says what was waited for where it never does.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A role whose apply stops at a package until the test opens a gate, and the tree that it is for.
struct Gate {
    tree: Tree,
    role: Role,
}

impl Gate {
    fn new() -> Self {
        let tree = Tree::new();
        let folder = tree.at("/gate");
        fs::create_dir(&folder).unwrap();
        let folder = folder.display();
        tree.program("/usr/bin/dpkg-query", &format!("cat '{folder}/installed' 2>/dev/null; exit 0"));
        tree.program(
            "/usr/bin/apt-get",
            &format!(
                "echo $$ > '{folder}/reached'
                 while test -d '{folder}' && ! test -e '{folder}/open'; do sleep 0.02; done
                 printf 'htop\\thtop\\t1\\tinstalled\\n' > '{folder}/installed'"
            ),
        );
        let mut role = role();
        role.packages = vec!["htop".parse().unwrap()];
        role.files = vec![file("/etc/motd", "hello")];
        Self { tree, role }
    }

    fn start(&self) -> Child {
        self.tree.start(&["push", "--limit", "20"], &delivery(&self.role))
    }

    fn wait_until_reached(&self) {
        wait_for("the worker to reach the gate", || self.tree.at("/gate/reached").exists().then_some(()));
    }

    fn open(&self) {
        self.tree.write("/gate/open", "");
    }

    fn kept(&self, name: &str) -> Option<ApplyReport> {
        let text = fs::read(self.tree.at("/var/lib/orch").join(name)).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// The worker, as the lock names it.
    fn worker(&self) -> Pid {
        let holder = fs::read(self.tree.at("/var/lib/orch/apply.lock")).unwrap();
        let holder: serde_json::Value = serde_json::from_slice(&holder).unwrap();
        Pid::from_raw(i32::try_from(holder["pid"].as_i64().unwrap()).unwrap()).unwrap()
    }
}

/// Whatever a failed test leaves waiting is let go.
impl Drop for Gate {
    fn drop(&mut self) {
        let _ = fs::write(self.tree.at("/gate/open"), "");
    }
}

fn is_gone(pid: Pid) -> bool {
    !Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists()
}

#[test]
fn the_worker_survives_whoever_pushed() {
    let gate = Gate::new();
    let mut pusher = gate.start();
    gate.wait_until_reached();
    assert_eq!(
        gate.kept("failed.json").unwrap().error.as_deref(),
        Some("the work was begun and then cut short")
    );
    pusher.kill().unwrap();
    pusher.wait().unwrap();
    let worker = gate.worker();
    assert_eq!(rustix::process::getsid(Some(worker)).unwrap(), worker, "it is in a session of its own");
    // The loss of a terminal reaches it as this.
    kill_process(worker, Signal::HUP).unwrap();
    gate.open();
    let report = wait_for("the report", || gate.kept("complete.json"));
    assert!(report.changed());
    wait_for("the worker's end", || is_gone(worker).then_some(()));
    assert_eq!(gate.tree.read("/etc/motd"), "hello");
    assert!(gate.kept("failed.json").is_none());
    assert!(
        fs::read_to_string(gate.tree.at("/var/lib/orch/apply.log"))
            .unwrap()
            .contains("changed file /etc/motd")
    );
}

#[test]
fn a_second_push_of_the_same_gets_the_first_ones_result() {
    let gate = Gate::new();
    let first = gate.start();
    gate.wait_until_reached();
    let second = gate.start();
    wait_for("the second to wait for the lock", || is_waiting_for_lock(&second).then_some(()));
    gate.open();
    let first = report(&first.wait_with_output().unwrap());
    let second = report(&second.wait_with_output().unwrap());
    assert_eq!(first, second);
    assert_eq!(first.attempts, 1);
}

#[test]
fn a_push_of_something_else_waits_for_its_turn() {
    let gate = Gate::new();
    let first = gate.start();
    gate.wait_until_reached();
    let mut other = gate.role.clone();
    other.files = vec![file("/etc/motd", "other")];
    let second = gate.tree.start(&["push", "--limit", "20"], &delivery(&other));
    wait_for("the second to wait for the lock", || is_waiting_for_lock(&second).then_some(()));
    gate.open();
    assert_eq!(report(&first.wait_with_output().unwrap()).spec_digest, config_of(&gate.role).digest());
    let second = report(&second.wait_with_output().unwrap());
    assert_eq!(second.spec_digest, config_of(&other).digest());
    assert_eq!(gate.tree.read("/etc/motd"), "other");
    assert_eq!(
        gate.tree.read("/var/lib/orch/spec.prev.json"),
        serde_json::to_string(&config_of(&gate.role)).unwrap()
    );
}

/// Whether a thread of the process sleeps in the kernel for a lock, as the kernel tells.
fn is_waiting_for_lock(child: &Child) -> bool {
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let pid = child.id().to_string();
    locks.lines().any(|line| line.contains("->") && line.split_whitespace().any(|word| word == pid))
}

#[test]
fn a_limit_ends_the_waiting_and_not_the_work() {
    let gate = Gate::new();
    let output = gate.tree.run(&["push", "--limit", "0"], &delivery(&gate.role));
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("goes on"));
    gate.wait_until_reached();
    let mut other = gate.role.clone();
    other.packages.clear();
    let output = gate.tree.run(&["push", "--limit", "0"], &delivery(&other));
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    gate.open();
    wait_for("the report", || gate.kept("complete.json"));
}

#[test]
fn a_worker_stops_between_resources_when_it_is_cancelled() {
    let gate = Gate::new();
    let pusher = gate.start();
    gate.wait_until_reached();
    let worker = gate.worker();
    // The word is given here too, so that it has surely arrived before the gate is opened.
    kill_process(worker, Signal::TERM).unwrap();
    let cancel = gate.tree.start(&["cancel", "--grace", "20"], &[]);
    wait_for("the cancelling to find the worker", || holds(&cancel, worker).then_some(()));
    gate.open();
    let said = cancel.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "the work was stopped\n");
    let report = report(&pusher.wait_with_output().unwrap());
    assert_eq!(report.status, ApplyStatus::Failed);
    assert!(report.error.unwrap().contains("cancelled"));
    assert!(!gate.tree.at("/etc/motd").exists(), "what came after was not begun");
    let said = gate.tree.run(&["cancel"], &[]);
    assert_eq!(String::from_utf8_lossy(&said.stdout), "nothing is being applied\n");
}

/// Whether a process has hold of another by a file descriptor.
fn holds(child: &Child, held: Pid) -> bool {
    let infos = fs::read_dir(format!("/proc/{}/fdinfo", child.id())).into_iter().flatten().flatten();
    let line = format!("Pid:\t{}", held.as_raw_nonzero());
    let texts = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    texts.into_iter().any(|text| text.lines().any(|other| other == line))
}

#[test]
fn a_worker_that_does_not_stop_is_ended_with_all_that_it_started() {
    let gate = Gate::new();
    let pusher = gate.start();
    gate.wait_until_reached();
    let installer = wait_for("the installer's number", || {
        Pid::from_raw(gate.tree.read("/gate/reached").trim().parse().ok()?)
    });
    let said = gate.tree.run(&["cancel", "--grace", "0"], &[]);
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        "the work did not stop by itself and was ended\n",
        "{said:?}"
    );
    wait_for("the installer's end", || is_gone(installer).then_some(()));
    let output = pusher.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(report(&output).error.unwrap().contains("left no report"), "{output:?}");
    // The next push heals it.
    gate.open();
    let healed = gate.tree.push(&gate.role);
    assert_eq!((healed.status, healed.attempts), (ApplyStatus::Complete, 2), "{healed:?}");
}

#[test]
fn a_cut_at_any_moment_is_healed_by_the_next_push() {
    let mut role = role();
    role.users = vec![common::user("ops")];
    role.files = (0..20).map(|n| file(&format!("/opt/{n}/{n}"), &n.to_string())).collect();
    // In turn the one who works is cut, and the one who pushes and hands over.
    let orders: [(&[&str], _); 2] = [(&["apply", "-"], bytes(&role)), (&["push"], delivery(&role))];
    for (step, (order, input)) in (0..48).zip(orders.iter().cycle()) {
        let tree = Tree::new();
        let mut child = tree.start(order, input);
        std::thread::sleep(Duration::from_micros(350 * step));
        child.kill().unwrap();
        child.wait().unwrap();
        let report = tree.push(&role);
        assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
        assert!(!tree.push(&role).changed());
        let drafts = tree.snapshot().iter().filter(|line| line.contains("/.orch-")).count();
        assert_eq!(drafts, 0, "{:?}", tree.snapshot());
    }
}

#[test]
fn a_worker_without_the_lock_does_nothing() {
    let tree = Tree::new();
    let digest = config_of(&role()).digest().to_string();
    tree.push(&role());
    let before = tree.read("/var/lib/orch/complete.json");
    let stranger = fs::OpenOptions::new().read(true).write(true).open(tree.at("/etc/hosts")).unwrap();
    let hosts = tree.read("/etc/hosts");
    let output = tree.command(&["worker", &digest]).stdin(stranger).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("not the lock"), "{output:?}");
    assert_eq!((tree.read("/var/lib/orch/complete.json"), tree.read("/etc/hosts")), (before, hosts));
}

#[test]
fn a_configuration_is_complete_only_once_the_node_is_healthy() {
    let tree = Tree::new();
    let mut role = role();
    let flag = tree.at("/healthy").display().to_string();
    role.health = vec![Health::Command(vec!["test".into(), "-e".into(), flag.clone()])];
    let push =
        |role: &Role| -> ApplyReport { report(&tree.run(&["push", "--health", "1"], &delivery(role))) };
    let sick = push(&role);
    assert_eq!(sick.status, ApplyStatus::Failed);
    assert!(sick.error.unwrap().starts_with("it was configured, and is not healthy: command test -e "));
    assert!(
        !tree.at("/var/lib/orch/complete.json").exists(),
        "whoever looks later does not take it for done"
    );
    fs::write(&flag, "").unwrap();
    let well = push(&role);
    assert_eq!((well.status, well.attempts, well.health.len()), (ApplyStatus::Complete, 2, 1));
    assert!(tree.at("/var/lib/orch/complete.json").exists());
    fs::remove_file(&flag).unwrap();
    assert_eq!(push(&role).status, ApplyStatus::Failed, "what was healthy once is looked at again");
    role.files = vec![file("/etc/passwd", "no")];
    assert_eq!(push(&role).health, [], "what failed is not checked");
}

#[test]
fn work_ends_between_two_resources_when_its_time_is_over() {
    let tree = Tree::new();
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    let output = tree.run(&["apply", "--limit", "0", "-"], &bytes(&role));
    let report: ApplyReport = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.error.unwrap().starts_with("the time limit was reached before "));
    assert!(!tree.at("/etc/motd").exists());
}

#[test]
fn the_last_report_and_the_digest_can_be_asked_for() {
    let tree = Tree::new();
    let mut role = role();
    let ask = |args: &[&str]| {
        let output = tree.run(args, &[]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let digest = |role: &Role| config_of(role).digest().to_string();
    assert_eq!(ask(&["report"]), (Some(1), String::new()));
    assert_eq!(ask(&["has", &digest(&role)]).1, "no\n");
    let first = tree.push(&role);
    assert_eq!(ask(&["has", &digest(&role)]).1, "yes\n");
    assert_eq!(serde_json::from_str::<ApplyReport>(&ask(&["report"]).1).unwrap(), first);
    let good = digest(&role);
    role.files = vec![file("/etc/passwd", "no")];
    let failed = tree.push(&role);
    assert_eq!(serde_json::from_str::<ApplyReport>(&ask(&["report"]).1).unwrap(), failed);
    assert!(!tree.at("/var/lib/orch/complete.json").exists());
    assert_eq!((ask(&["has", &good]).1, ask(&["has", &digest(&role)]).1), ("no\n".into(), "no\n".into()));
    assert_eq!(tree.inspect(&role).applied, None);
    assert_eq!(tree.mode("/var/lib/orch"), 0o700);
}

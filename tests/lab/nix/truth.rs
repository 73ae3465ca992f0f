//! Every way in which an activation can go wrong, with the watcher alive and killed, the driver killed, and the link cut: what
//! the report claims is what is read from the node by the test itself, and every case ends by itself.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value as Json;

use super::scene::{NixLab, node, skips};
use crate::common::{Need, Outcome, Running, kill, lacks, speaking_of};

/// What a good system does: whatever a bad one broke is mended by going back to it.
const GOOD: &str = r#"
  rm -f /fill /etc/bad
  if [ -e /etc/ssh/sshd_config.good ]; then mv /etc/ssh/sshd_config.good /etc/ssh/sshd_config; fi
  ip link set eth0 up
"#;

/// What a bad one does, by the name of its node.
const BAD: [(&str, &str); 7] = [
    ("exits", "echo it is broken >&2; exit 7"),
    ("hangs", "sleep 1000"),
    (
        "sshd",
        "cp /etc/ssh/sshd_config /etc/ssh/sshd_config.good; echo Nonsense yes >> /etc/ssh/sshd_config; \
         for it in $(ls /proc | grep '^[0-9]*$'); do case \"$(tr '\\0' ' ' < /proc/$it/cmdline)\" in *sshd*) kill -9 $it ;; esac; done",
    ),
    ("network", "ip link set eth0 down"),
    ("disk", "dd if=/dev/zero of=/fill bs=1M 2>/dev/null; exit 1"),
    ("reboots", "kill -INT 1; sleep 5"),
    ("sick", "touch /etc/bad"),
];

/// How long all of it may take until every node is at its end.
const END: Duration = Duration::from_secs(110);

struct Truth {
    scene: NixLab,
    before: Vec<(&'static str, PathBuf)>,
}

impl Truth {
    /// Every node on a good system, and a bad one in the site for each; one more gets another good one.
    fn set() -> Self {
        let scene = NixLab::with_nodes("on_error: continue, parallelism: 16", &[], "");
        let names = || BAD.iter().map(|(name, _)| *name).chain(["fine"]);
        let nodes: Vec<String> = names().map(|name| node(name, name)).collect();
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        scene.lab.write_nodes(
            "timeouts: { create: 60s, boot: 30s, config: 60s, destroy: 30s }, on_error: continue, parallelism: 16",
            &nodes,
        );
        for name in names() {
            let spec = format!(
                "schema_version: 1\nnixos: {{ modules: [modules/{name}] }}\n\
                 health: [{{ command: [test, \"!\", -e, /etc/bad] }}]\n"
            );
            scene.lab.write(&format!("specs/{name}.yaml"), &spec);
            write_module(&scene, name, "1", GOOD);
        }
        scene.orch("create -M lab -H father --json").ends_with(0);
        let before = names().map(|name| (name, scene.runs(name).unwrap())).collect();
        for (name, lines) in BAD {
            write_module(&scene, name, "2", lines);
        }
        write_module(&scene, "fine", "2", GOOD);
        Self { scene, before }
    }

    /// The claims of a report, held against what is read from each node.
    fn check(&self, report: &Outcome) {
        self.wait_for_ends();
        for (name, before) in &self.before {
            let node = report.node(name);
            let told = node.to_string();
            let (runs, boots) = (self.scene.runs(name), self.scene.boots(name));
            assert_eq!(runs, boots, "`{name}`: {told}");
            if *name == "fine" {
                // Whether it was kept depends on when it was cut off; that it is told to be is not for a good one alone.
                let is_kept = runs.as_ref() != Some(before);
                assert!(is_kept || node["status"] != "changed", "`{name}`: {told}");
            } else {
                assert_eq!(node["status"], "failed", "a bad system was kept: {told}");
                self.is_back(name, before, &told);
            }
            self.agrees(name, &node);
        }
    }

    /// What a report says to have read is what there is.
    fn agrees(&self, name: &str, node: &Json) {
        let told = node.to_string();
        let Some((_, read)) = told.split_once("read back: runs and boots ") else { return };
        let path =
            read.split(|c: char| c == '"' || c.is_whitespace() || c == ')' || c == '\\').next().unwrap();
        assert_eq!(self.scene.runs(name).as_deref(), Some(Path::new(path)), "`{name}`: {told}");
    }

    fn is_back(&self, name: &str, before: &Path, told: &str) {
        assert_eq!(self.scene.runs(name).as_deref(), Some(before), "`{name}` runs: {told}");
        assert_eq!(self.scene.boots(name).as_deref(), Some(before), "`{name}` boots: {told}");
    }

    /// How a node says its rollout is.
    fn phase(&self, name: &str) -> String {
        let record = self.scene.read(name, "var/lib/orch/rollout.json").unwrap_or_default();
        let record: Json = serde_json::from_str(&record).unwrap_or_default();
        let found = record.pointer("/phase").or_else(|| record.pointer("/record/phase"));
        found.and_then(Json::as_str).unwrap_or_default().to_owned()
    }

    fn is_under_way(&self, name: &str) -> bool {
        let second = self.scene.read(name, "var/lib/orch/rollout.json").unwrap_or_default();
        second.contains("-2\"") && !["armed", ""].contains(&self.phase(name).as_str())
    }

    fn wait_for_ends(&self) {
        let ends = ["permanent", "rolled-back", "needs-reboot", "stuck"];
        let deadline = Instant::now() + END;
        for (name, _) in &self.before {
            while !ends.contains(&self.phase(name).as_str()) {
                assert!(Instant::now() < deadline, "`{name}` is still {}", self.phase(name));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Waits for one node after the other to be at it, and does something to each then.
    fn as_each_is_at_it(&self, mut doing: impl FnMut(&str)) {
        let mut left: Vec<&str> = self.before.iter().map(|(name, _)| *name).collect();
        let deadline = Instant::now() + Duration::from_secs(40);
        while !left.is_empty() && Instant::now() < deadline {
            let (at_it, others): (Vec<&str>, _) = left.into_iter().partition(|name| self.is_under_way(name));
            at_it.into_iter().for_each(&mut doing);
            left = others;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn start(&self) -> Running {
        Running::start(&mut self.scene.command(CONFIG), CONFIG)
    }

    /// The watchers of a node.
    fn watchers(&self, name: &str) -> Vec<i32> {
        let inside = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let init = self.scene.lab.init(&format!("lab-{name}")).and_then(inside);
        let watchers = speaking_of(" system watch ").into_iter();
        watchers.filter(|pid| init.is_some() && inside(*pid) == init).collect()
    }

    /// Sets the bridge that all nodes are attached to.
    fn set_bridge(&self, state: &str) {
        let uplink = self.scene.lab.root("lab-fine").join("run/orch/uplink");
        let mut ip = std::process::Command::new("nsenter");
        ip.arg(format!("--net={}", uplink.display())).args(["ip", "link", "set", "orch0", state]);
        Outcome::of(&mut ip, "ip link set").ends_with(0);
    }
}

fn write_module(scene: &NixLab, name: &str, version: &str, lines: &str) {
    let lines = lines.replace("${", "''${");
    let text =
        format!("{{ ... }}: {{ standIn = {{ version = \"{version}\"; activate = ''{lines}''; }}; }}\n");
    scene.lab.write(&format!("modules/{name}/default.nix"), &text);
}

const CONFIG: &str = "config -M lab -H father --json";

#[test]
fn with_the_watcher_alive_the_report_says_what_is_so() {
    if skips() {
        return;
    }
    let truth = Truth::set();
    let report = truth.scene.orch(CONFIG).ends_with(2);
    truth.check(&report);
    assert_eq!(report.node("fine")["status"], "changed", "{}", report.stdout);
}

#[test]
fn with_a_watcher_killed_in_the_middle_the_report_says_what_is_so() {
    if skips() {
        return;
    }
    let truth = Truth::set();
    let run = truth.start();
    let mut killed = 0;
    truth.as_each_is_at_it(|name| {
        if let Some(watcher) = truth.watchers(name).first() {
            // It may just have ended by itself.
            let _ = std::panic::catch_unwind(|| kill(*watcher, Signal::KILL));
            killed += 1;
        }
    });
    let report = run.end();
    assert!(killed > 0, "no watcher was met");
    truth.check(&report);
    assert_eq!(report.node("fine")["status"], "changed", "{}", report.stdout);
}

#[test]
fn with_the_driver_killed_in_the_middle_every_node_ends_by_itself_on_a_good_system() {
    if skips() {
        return;
    }
    let truth = Truth::set();
    let run = truth.start();
    let mut at_it = 0;
    truth.as_each_is_at_it(|_| at_it += 1);
    run.cut_off();
    assert_eq!(at_it, truth.before.len(), "not every node was met");
    truth.wait_for_ends();
    for (name, before) in &truth.before {
        if *name == "fine" && truth.phase(name) == "permanent" {
            assert_eq!(truth.scene.runs(name), truth.scene.boots(name));
        } else {
            truth.is_back(name, before, "the driver was killed");
        }
    }
    // Whoever runs it again is not kept from it by what was left.
    let report = truth.scene.orch(&format!("{CONFIG} --only fine")).ends_with(0);
    truth.agrees("fine", &report.node("fine"));
}

#[test]
fn with_the_link_cut_in_the_middle_nothing_is_claimed_that_is_not_so() {
    if skips() || lacks(&[Need::Program("nsenter"), Need::Program("ip")]) {
        return;
    }
    let truth = Truth::set();
    let run = truth.start();
    truth.as_each_is_at_it(|_| {});
    truth.set_bridge("down");
    let report = run.end();
    truth.check(&report);
    for (name, _) in &truth.before {
        let told = report.node(name).to_string();
        let claims = ["read back", "is not known", "did not answer", "cannot be reached", "unchanged"];
        assert!(claims.iter().any(|claim| told.contains(claim)), "`{name}`: {told}");
    }
    truth.set_bridge("up");
}

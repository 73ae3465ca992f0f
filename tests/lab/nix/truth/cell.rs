//! One cell: a node on a good system, another one, a fault, and what is said and read at the end.

use std::fs;

use super::fault::{Fault, cut_link, kill_watcher, wait_until_it_did, wait_until_it_waits};
use super::news::{News, Stand, claimed};
use super::way::{HEALTH, UNDO, Way};
use crate::common::{Outcome, Running, is_alive, kill, wait_until};
use crate::nix::scene::{self, NixLab, text};

use rustix::process::Signal;

const CONFIG: &str = "config -M lab -H father --json";
const CREATE: &str = "create -M lab -H father --json";

/// The limits of a node follow from how long all of it may take: here it activates within nine seconds, and waits for three
/// to be confirmed.
const BRIEF: &str = "timeouts: { create: 30s, boot: 20s, config: 30s, destroy: 20s }";

/// A way and a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) way: Way,
    pub(super) fault: Fault,
}

/// A node in a cell.
struct Node {
    scene: NixLab,
    /// What it ran before.
    before: Stand,
    /// What its first process wrote down when it began.
    start: Option<String>,
}

impl Cell {
    pub(super) fn check(self) {
        let node = Node::made();
        node.scene.module(&format!("version = \"2\"; activate = {};", text(&self.way.lines())));
        node.scene.lab.write_nodes(BRIEF, &[&scene::node("web", "nixos")]);
        let mut driver = Running::start(&mut node.scene.command(CONFIG), CONFIG);
        wait_until_it_did(&node.scene.lab.root("lab-web"), &mut driver);
        let said = self.live_through(&node, driver);
        if self.way == Way::PowersOff {
            node.press_the_button();
        }
        let news = node.wait_for_the_end();
        self.compare(&node, &news, said.as_ref());
        node.goes_on();
    }

    /// Makes the fault, and waits for the end of the driver. What it said, where it lived to say it.
    fn live_through(self, node: &Node, driver: Running) -> Option<Outcome> {
        let (lab, root) = (&node.scene.lab, node.scene.lab.root("lab-web"));
        let go = || fs::write(root.join("run/truth/go"), "").unwrap();
        match self.fault {
            Fault::None => go(),
            Fault::WatcherKilled if self.way.is_waited_with() => {
                go();
                wait_until_it_waits(&root);
                kill_watcher(lab, "lab-web");
            }
            Fault::WatcherKilled => {
                kill_watcher(lab, "lab-web");
                // Whoever takes over ends the activation, so what that was to do to the machine is done to it here.
                if let Some(signal) = self.way.signal() {
                    kill(lab.init("lab-web").unwrap(), signal);
                }
                go();
            }
            Fault::DriverKilled => {
                kill(driver.pid(), Signal::KILL);
                driver.cut_off();
                go();
                return None;
            }
            Fault::LinkCut => {
                let cable = cut_link(lab, "lab-web");
                go();
                if self.way == Way::PowersOff {
                    // The cable goes with the machine.
                    return Some(driver.end());
                }
                node.wait_for_the_end();
                cable.set("up");
            }
        }
        Some(driver.end())
    }

    /// Holds what is said against what is read.
    fn compare(self, node: &Node, news: &News, said: Option<&Outcome>) {
        let (stand, new) = (node.stand(), self.way == Way::Good);
        let is_before = stand == node.before;
        let is_after = stand.runs == stand.boots && stand.runs.to_string_lossy().ends_with("-web-2");
        let about = format!("{self:?} ended with {stand:?}, {news:?}");
        assert!(["rolled-back", "permanent"].contains(&news.phase.as_str()), "{about}");
        assert!(news.phase != "rolled-back" || is_before, "{about}");
        assert!(news.phase != "permanent" || (is_after && new), "{about}");
        assert!(is_before || new, "{about}");
        if self == (Self { way: Way::Good, fault: Fault::None }) {
            assert!(is_after, "with nothing in the way, a good system is kept: {about}");
        }
        if self.way == Way::Exits && self.fault == Fault::None {
            assert!(news.evidence.contains("it is broken"), "{about}");
        }
        if let Some(said) = said {
            return self.believe(said, &stand, is_after, &about);
        }
        node.history_claims_nothing();
        // A lease ends with the boot that it was given in.
        match self.way {
            Way::Reboots => node.has_started_anew(),
            Way::PowersOff => {}
            _ => node.lets_the_lease_end(),
        }
    }

    fn believe(self, said: &Outcome, stand: &Stand, is_after: bool, about: &str) {
        let about = format!("{about}\n--- stdout\n{}\n--- stderr\n{}", said.stdout, said.stderr);
        let status = said.node("web")["status"].clone();
        assert_eq!(status, if is_after { "changed" } else { "failed" }, "{about}");
        assert_eq!(said.code == 0, is_after, "{about}");
        let claims = claimed(&said.stdout);
        assert!(claims.iter().all(|claim| claim == stand), "{claims:?} {about}");
        // Whoever can be reached at the end is read.
        let is_off = self.way == Way::PowersOff;
        assert!(is_off || !claims.is_empty(), "nothing was read: {about}");
        // A node that goes off may have been back before that, and read; else it is said that nothing is known.
        let unread = ["which of them runs is not known", "did not answer in time", "cannot be reached"];
        let is_said = unread.iter().any(|words| said.stdout.contains(words));
        assert!(!claims.is_empty() || is_said, "{about}");
    }
}

impl Node {
    /// One that was made, with a good system.
    fn made() -> Self {
        let scene = NixLab::with_nodes("", &["web"], &first());
        scene.lab.write(
            "specs/nixos.yaml",
            &format!("schema_version: 1\nnixos: {{ modules: [modules/web] }}\nhealth: {HEALTH}\n"),
        );
        scene.orch(CREATE).ends_with(0).every_node_is("changed");
        let before = Stand { runs: scene.runs("web").unwrap(), boots: scene.boots("web").unwrap() };
        assert!(
            before.runs == before.boots && before.runs.to_string_lossy().ends_with("-web-1"),
            "{before:?}"
        );
        let start = start(&scene);
        Self { scene, before, start }
    }

    /// What it runs and boots, as its links say it.
    fn stand(&self) -> Stand {
        let runs = self.scene.runs("web").unwrap_or_default();
        Stand { runs, boots: self.scene.boots("web").unwrap_or_default() }
    }

    /// Waits until the node itself wrote down that nothing more happens.
    fn wait_for_the_end(&self) -> News {
        let root = || self.scene.lab.root("lab-web");
        wait_until("the rollout has ended", || News::of(&root()).is_some_and(|news| news.is_end()));
        News::of(&root()).unwrap()
    }

    /// Starts a machine that went off. Nobody wants another system of it any more.
    fn press_the_button(&self) {
        let init = self.scene.lab.init("lab-web").unwrap();
        wait_until("the machine is off", || !is_alive(init));
        self.scene.module(&first());
        self.scene.orch(CREATE).ends_with(0).every_node_is("changed");
    }

    /// What is left of a driver that was killed says of nothing that it was done.
    fn history_claims_nothing(&self) {
        let runs = self.scene.orch("runs list --json").ends_with(0).json();
        let run = runs.as_array().unwrap().iter().find(|run| run["verb"] == "config").unwrap();
        assert_eq!(run["state"], "killed", "{run}");
        let shown = self.scene.orch(&format!("runs show {} --json", run["run"].as_str().unwrap()));
        assert_ne!(shown.node("web")["status"], "changed", "{}", shown.stdout);
        assert_eq!(claimed(&shown.stdout), [], "{}", shown.stdout);
    }

    /// Waits until a machine that was told to start anew has done so: it may have gone back before that.
    fn has_started_anew(&self) {
        wait_until("the machine has started anew", || start(&self.scene) != self.start);
    }

    /// Whoever comes after a driver that was killed is told of it, until its lease ends. Here that need not be waited for.
    fn lets_the_lease_end(&self) {
        let lease = self.scene.lab.root("lab-web").join("run/orch-rollout/lease.json");
        if lease.exists() {
            let refused = self.scene.orch(CONFIG).ends_with(1).every_node_is("failed");
            refused.says(" has had it since ");
            fs::remove_file(lease).unwrap();
        }
    }

    /// Whatever happened, the node is given what is wanted of it next.
    fn goes_on(&self) {
        self.scene.module("version = \"3\";");
        self.scene.lab.write("specs/nixos.yaml", "schema_version: 1\nnixos: { modules: [modules/web] }\n");
        self.scene.orch(CONFIG).ends_with(0).every_node_is("changed");
        let stand = self.stand();
        assert!(stand.runs == stand.boots && stand.runs.to_string_lossy().ends_with("-web-3"), "{stand:?}");
    }
}

/// What the first process of the machine wrote down when it began.
fn start(scene: &NixLab) -> Option<String> {
    scene.read("web", "run/orch/start")
}

/// The good system.
fn first() -> String {
    format!("version = \"1\"; activate = {};", text(UNDO))
}

//! One manifest on hosts of every kind: the same statuses, the same reports, the same nodes, and nothing left of any.

use std::fs;

use serde_json::Value as Json;

use super::facts::{self, Facts};
use super::home::Home;
use crate::common::{Outcome, name_of};

/// One manifest on one host.
#[derive(Clone, Copy)]
struct Stay<'h> {
    home: &'h Home,
    manifest: &'static str,
    host: &'static str,
}

/// What was seen of it.
#[derive(Debug, PartialEq)]
struct Seen {
    report: Json,
    status: Json,
    nodes: Vec<(String, Facts)>,
}

impl Stay<'_> {
    fn run(self, verb: &str) -> Outcome {
        let words = format!("{verb} -M {} -H {}", self.manifest, self.host);
        // This computer needs nobody in its stead.
        if self.host == "father" { self.home.lab.orch(&words) } else { self.home.orch(&words) }
    }

    /// A whole life, and what is seen in the middle of it.
    fn live(self) -> Seen {
        let created = self.run("create --json").ends_with(0).every_node_is("changed").json();
        self.run("create --json").ends_with(0).every_node_is("unchanged");
        let status = self.run("status --json").ends_with(0).every_node_is("as-wanted").json();
        let names: Vec<String> = created["nodes"].as_array().unwrap().iter().map(name_of).collect();
        let facts = |name: &String| facts::of(&self.home.root(self.host, name), self.host);
        let nodes: Vec<(String, Facts)> = names.iter().map(|name| (name.clone(), facts(name))).collect();
        self.use_them(&names);
        self.drift(&names, &nodes);
        self.run("destroy --yes --json").ends_with(0).every_node_is("changed");
        self.run("destroy --yes --json").ends_with(0).every_node_is("unchanged");
        self.run("status --json").ends_with(1).every_node_is("missing");
        Seen { report: shape(&created), status: shape(&status), nodes }
    }

    /// Programs run on them, and `ssh` knows the way.
    fn use_them(self, names: &[String]) {
        // The last words of a command, and so after the manifest and the host.
        let words = format!("exec -M {} -H {} -- hostname", self.manifest, self.host);
        let said = if self.host == "father" { self.home.lab.orch(&words) } else { self.home.orch(&words) };
        let said = said.ends_with(0);
        let config = self.run("ssh-config").ends_with(0);
        for name in names {
            assert!(said.stdout.contains(&format!("== {name}: exit 0")), "{}", said.stdout);
            assert!(said.stdout.lines().any(|line| line == name), "{}", said.stdout);
            assert!(config.stdout.contains(&format!("Host {name}")), "{}", config.stdout);
        }
    }

    /// What somebody changes on a node is seen, and changed back.
    fn drift(self, names: &[String], before: &[(String, Facts)]) {
        let name = names.last().unwrap();
        let root = self.home.root(self.host, name);
        fs::write(root.join("etc/timezone"), "Mars/Olympus\n").unwrap();
        fs::write(root.join("etc/hostname"), "somebody\n").unwrap();
        self.run("status --json").ends_with(2);
        let mended = self.run("config --json").ends_with(0);
        assert_eq!(mended.node(name)["status"], "changed", "{}", mended.stdout);
        let after = facts::of(&self.home.root(self.host, name), self.host);
        let before = &before.last().unwrap().1;
        // What it says is of the run, and of what that had to do.
        for (fact, value) in before.iter().filter(|(fact, _)| *fact != facts::OWN_WORD) {
            assert_eq!(Some(value), after.get(fact), "`{fact}` of `{name}` on {} is as before", self.host);
        }
        self.run("status --json").ends_with(0).every_node_is("as-wanted");
    }
}

/// What of a document is the same on every host: everything but when, how long, by which name, and what a host has to say.
fn shape(answer: &Json) -> Json {
    match answer {
        Json::Object(fields) => {
            let is_kept = |name: &str| {
                !matches!(
                    name,
                    "run"
                        | "plan"
                        | "started_at"
                        | "finished_at"
                        | "started"
                        | "seconds"
                        | "hosts"
                        | "machine"
                        | "pull"
                )
            };
            let kept = fields.iter().filter(|(name, _)| is_kept(name));
            kept.map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Json::Array(all) => all.iter().map(shape).collect(),
        Json::String(text) => text.split('@').next().unwrap_or_default().into(),
        other => other.clone(),
    }
}

/// Lives of these at once, in their order.
fn live_all(stays: &[Stay<'_>]) -> Vec<Seen> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = stays.iter().map(|stay| scope.spawn(|| stay.live())).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect()
    })
}

/// Asserts that what was seen is the same, and says what is not.
#[track_caller]
fn assert_alike(one: &Seen, other: &Seen, whose: &str) {
    assert_eq!(one.report, other.report, "the reports of {whose}");
    assert_eq!(one.status, other.status, "what `status` says of {whose}");
    for ((name, facts), (_, others)) in one.nodes.iter().zip(&other.nodes) {
        for (fact, value) in facts {
            assert_eq!(Some(value), others.get(fact), "`{fact}` of `{name}` of {whose}");
        }
        let more: Vec<_> = others.iter().filter(|(fact, _)| !facts.contains_key(*fact)).collect();
        assert!(more.is_empty(), "{name} of {whose}: {more:?}");
    }
}

#[test]
fn workers_are_the_same_on_this_computer_on_proxmox_and_on_hetzner() {
    let Some(home) = Home::sample() else { return };
    let stay = |host| Stay { home: &home, manifest: "workers", host };
    let seen = live_all(&["father", "mother", "cloud"].map(stay));
    assert_alike(&seen[0], &seen[1], "father and mother");
    assert_alike(&seen[1], &seen[2], "mother and cloud");
    home.assert_empty(&["father", "mother", "cloud"]);
    home.down();
}

/// Lives of a fleet with machines inside of machines, where there can be such.
fn live_nested(manifest: &'static str) {
    let Some(home) = Home::sample() else { return };
    let stay = |host| Stay { home: &home, manifest, host };
    let seen = live_all(&["father", "mother"].map(stay));
    assert_alike(&seen[0], &seen[1], manifest);
    home.assert_empty(&["father", "mother"]);
    home.down();
}

#[test]
fn machines_inside_of_machines_are_the_same_on_this_computer_and_on_proxmox() {
    live_nested("nested-test");
}

#[test]
fn so_are_those_of_which_one_is_pushed_and_one_pulls() {
    live_nested("mixed-mode");
}

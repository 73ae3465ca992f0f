//! By what a node is known: keys of its own that nobody else ever had, whenever its driver was killed on the way there.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value as Json;

use super::needles::Needles;
use super::scene::Hoard;
use super::{CREATE, DESTROY, NEEDS, places};
use crate::common::{
    Lab, ORCH, Outcome, all_processes, assert_nothing_is_left, assert_nothing_stays, kill, lacks, wait_until,
};

const ASKED: [&str; 2] = ["name: one, path: /run/secrets/one", "name: two, path: /etc/two"];

fn hoard(nodes: &[&str]) -> Hoard {
    let hoard = Hoard::with_nodes(nodes);
    hoard.keep("secrets/app.yaml", "one: value of one\ntwo: value of two\n");
    hoard.ask_for(&ASKED);
    hoard
}

/// What is written down about a machine.
fn record(lab: &Lab, machine: &str) -> Json {
    serde_json::from_slice(&fs::read(lab.machine(machine).join("machine.json")).unwrap()).unwrap()
}

/// The private key that a machine is made with.
fn first_key(lab: &Lab, machine: &str) -> PathBuf {
    lab.machine(machine).join("ssh_host_ed25519_key")
}

/// The kind and the key that the SSH server of a machine shows to whoever comes.
fn shown(lab: &Lab, machine: &str) -> Vec<String> {
    let mut scan = Command::new(ORCH);
    scan.args(["__local", "enter"]).arg(lab.machine(machine));
    scan.args(["ssh-keyscan", "-T", "20", "127.0.0.1"]);
    let said = Outcome::of(&mut scan, "ssh-keyscan").ends_with(0).stdout;
    let keys = said.lines().filter(|line| !line.starts_with('#'));
    keys.filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
}

/// Asserts that a node is known by its own key and no other, that this is the one that it shows, and that it has its secrets.
#[track_caller]
fn assert_settled(hoard: &Hoard, machine: &str) {
    let (lab, record) = (&hoard.lab, record(&hoard.lab, machine));
    assert_eq!((&record["keys"]["settled"], &record["host_key"]), (&true.into(), &Json::Null), "{record:#}");
    let own = record["keys"]["host_key"].as_str().unwrap();
    assert_eq!(shown(lab, machine), [own], "what its server shows");
    assert!(!first_key(lab, machine).exists() && !first_key(lab, machine).with_extension("pub").exists());
    let state = lab.root(machine).join("var/lib/orch");
    let noted: Json = serde_json::from_slice(&fs::read(state.join("keys.json")).unwrap()).unwrap();
    assert_eq!(noted, record["keys"], "what the node itself knows");
    assert!(!state.join("host_key").exists(), "none waits to be shown");
    let identity: orch_secrets::seal::Identity =
        fs::read_to_string(state.join("age.key")).unwrap().parse().unwrap();
    assert_eq!(identity.recipient().to_string(), record["keys"]["age"].as_str().unwrap());
    assert_eq!(hoard.on_node(machine, "/run/secrets/one").unwrap(), b"value of one");
    assert_eq!(hoard.on_node(machine, "/etc/two").unwrap(), b"value of two");
}

/// Starts a create and kills it some time after it began to configure; the private keys that its machines were made with.
fn cut_off(hoard: &Hoard, mode: &str, later: Duration) -> Vec<String> {
    let create = hoard.start(&format!("create -M lab -H father --mode {mode}"));
    wait_until("it configures", || create.said().contains("configure/a: begins"));
    let machines = hoard.lab.machines();
    let keys =
        machines.iter().filter_map(|name| fs::read_to_string(first_key(&hoard.lab, name)).ok()).collect();
    std::thread::sleep(later);
    create.cut_off();
    keys
}

/// A line of a private key that is of that key alone.
fn line_of(key: &str) -> &str {
    key.lines().nth(3).unwrap()
}

#[test]
fn the_key_that_a_machine_was_made_with_is_gone_once_it_shows_its_own() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = hoard(&["a"]);
    let lab = &hoard.lab;
    // Cut off as early as that, it has the key still.
    let keys = cut_off(&hoard, "push", Duration::ZERO);
    let [key] = &keys[..] else { panic!("a machine is made with a key: {keys:?}") };
    let needles = Needles::of(&[("the first key", line_of(key).as_bytes())]);
    hoard.orch(CREATE).ends_with(0);
    assert_settled(&hoard, "lab-a");
    let found = [
        places::below(&needles, &lab.state, &[&lab.machine("lab-a").join("disk.img")]),
        places::in_files(&needles, lab, "lab-a"),
    ];
    assert!(found.iter().all(BTreeSet::is_empty), "{found:#?}");

    // People's own tools know it by the same key.
    let config = hoard.orch("ssh-config -M lab -H father").ends_with(0).stdout;
    let known = config.lines().find_map(|line| line.trim().strip_prefix("UserKnownHostsFile ")).unwrap();
    let known = fs::read_to_string(known.trim_matches('"')).unwrap();
    let own = record(lab, "lab-a")["keys"]["host_key"].as_str().unwrap().to_owned();
    let lines: Vec<&str> = known.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(&own)), "{known}");

    // Whoever has the first key, from a backup or from metadata, is not taken for the node.
    let shown = lab.root("lab-a").join("etc/ssh/ssh_host_ed25519_key");
    let settled = fs::read(&shown).unwrap();
    fs::write(&shown, key).unwrap();
    restart_server(lab, "lab-a");
    hoard.edit("secrets/app.yaml", "one", "value of nobody else");
    let log = || {
        fs::read_to_string(lab.root("lab-a").join("var/log/sshd.log")).unwrap().matches("Accepted").count()
    };
    let before = log();
    let refused = hoard.orch(CREATE).ends_with(1).every_node_is("failed");
    assert!(refused.node("a")["why"].to_string().contains("host key"), "{}", refused.stdout);
    hoard.orch("exec -M lab -H father -- true").ends_with(1);
    assert_eq!(log(), before, "nobody logged in");
    assert_eq!(
        hoard.on_node("lab-a", "/run/secrets/one").unwrap(),
        b"value of one",
        "and it was sent nothing"
    );
    fs::write(&shown, settled).unwrap();
    restart_server(lab, "lab-a");
    hoard.orch(CREATE).ends_with(0).every_node_is("changed");
    hoard.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(lab);
}

/// Kills the SSH server of a machine, which is then started again.
fn restart_server(lab: &Lab, machine: &str) {
    let server = || {
        let parent = format!("PPid:\t{}", lab.init(machine).unwrap());
        all_processes().into_iter().find(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.starts_with("Name:\tsshd\n") && status.lines().any(|line| line == parent)
        })
    };
    let old = server().unwrap();
    kill(old, Signal::KILL);
    wait_until("the server is started again", || server().is_some_and(|new| new != old));
    wait_until("it listens", || lab.listens(machine, 22));
}

/// One moment of a create, and what follows: killed there, and run again.
fn heal_after(mode: &str, later: Duration) {
    let hoard = hoard(&["a", "b"]);
    let orch = |verb: &str| hoard.orch(&format!("{verb} -M lab -H father --mode {mode} --json"));
    cut_off(&hoard, mode, later);
    orch("create").ends_with(0);
    for machine in ["lab-a", "lab-b"] {
        assert_settled(&hoard, machine);
    }
    hoard.orch("exec -M lab -H father -- true").ends_with(0);
    orch("status").ends_with(0).every_node_is("as-wanted");
    orch("create").ends_with(0).every_node_is("unchanged");
    hoard.orch(DESTROY).ends_with(0);
    assert_nothing_stays(&hoard.lab);
}

#[test]
fn a_driver_that_is_killed_while_nodes_become_known_is_healed_by_running_it_again() {
    if lacks(&NEEDS) {
        return;
    }
    let asked =
        std::env::var("ORCH_LAB_SEED").ok().map(|seed| seed.parse().expect("ORCH_LAB_SEED is a number"));
    let (seed, step) = (asked.unwrap_or(u64::from(std::process::id())), 60);
    let count = if std::env::var_os("ORCH_LAB_FULL").is_some() { 40 } else { 10 };
    eprintln!("ORCH_LAB_SEED={seed} repeats this: {count} moments; more of them with ORCH_LAB_FULL=1");
    // From the moment at which the first node is spoken to until some time after the last one was done, with both nodes
    // at different points of it.
    let moments: Vec<u64> = (0..count).map(|number| number * 600 / count + seed % step).collect();
    let (left, failed) = (Mutex::new(moments), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(moment) = left.lock().unwrap().pop() else { break };
                    let cell = std::thread::spawn(move || {
                        // Every other one fetches what the others are brought.
                        let mode = if moment / step % 2 == 0 { "push" } else { "pull" };
                        heal_after(mode, Duration::from_millis(moment));
                    });
                    if cell.join().is_err() {
                        failed.lock().unwrap().push(moment);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "not healed where it was killed after this many milliseconds: {failed:?}");
}

#[test]
fn a_machine_of_an_orch_that_knew_of_no_keys_is_known_by_its_own_after_the_next_run() {
    if lacks(&NEEDS) {
        return;
    }
    for mode in ["push", "pull"] {
        let hoard = hoard(&["a"]);
        let lab = &hoard.lab;
        let orch = |verb: &str| hoard.orch(&format!("{verb} -M lab -H father --mode {mode} --json"));
        orch("create").ends_with(0);
        let (state, ssh) = (lab.root("lab-a").join("var/lib/orch"), lab.root("lab-a").join("etc/ssh"));
        // As it was left by one: the host key is what the driver gave it, and there are no others.
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "orch", "-f"]).arg(first_key(lab, "lab-a"));
        Outcome::of(&mut keygen, "ssh-keygen").ends_with(0);
        fs::copy(first_key(lab, "lab-a"), ssh.join("ssh_host_ed25519_key")).unwrap();
        let public = fs::read_to_string(first_key(lab, "lab-a").with_extension("pub")).unwrap();
        fs::write(ssh.join("ssh_host_ed25519_key.pub"), &public).unwrap();
        restart_server(lab, "lab-a");
        for name in ["keys.json", "age.key", "secrets.age", "secrets.json"] {
            fs::remove_file(state.join(name)).unwrap();
        }
        let mut old = record(lab, "lab-a");
        old.as_object_mut().unwrap().remove("keys");
        let given = public.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        old["host_key"] = given.clone().into();
        fs::write(lab.machine("lab-a").join("machine.json"), serde_json::to_vec(&old).unwrap()).unwrap();

        orch("create").ends_with(0);
        assert_settled(&hoard, "lab-a");
        assert_ne!(record(lab, "lab-a")["keys"]["host_key"], given.as_str());
        orch("status").ends_with(0).every_node_is("as-wanted");
        orch("create").ends_with(0).every_node_is("unchanged");
        hoard.orch(DESTROY).ends_with(0);
        assert_nothing_is_left(lab);
    }
}

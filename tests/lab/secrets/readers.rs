//! Nodes that read sops files themselves: they become recipients when they are made, and what they knew opens nothing when
//! they are gone.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use orch_secrets::seal::Identity;
use orch_secrets::{Keyring, SopsFile};
use serde_json::Value as Json;

use super::scene::{Hoard, asking, reader};
use super::{CREATE, DESTROY, NEEDS, STATUS};
use crate::common::{Gate, assert_nothing_is_left, assert_nothing_stays, lacks, wait_until};

const FILE: &str = "secrets/app.yaml";
const PLAIN: &str = "# of the app\none: value of one\ntwo:\n  deep: value of two\n";

/// A site whose nodes read the file that holds their secrets themselves, with rules that people have written in.
fn hoard(nodes: &[&str]) -> Hoard {
    let hoard = Hoard::with_nodes(nodes);
    hoard.keep(FILE, PLAIN);
    hoard.keep("secrets/other.yaml", "foreign: value of nobody here\n");
    let spec = asking("as wanted", &["name: one, path: /run/secrets/one"]);
    hoard.lab.write("specs/plain.yaml", &format!("{spec}enroll_recipient: true\n"));
    hoard.lab.write(".sops.yaml", &rules(&hoard));
    hoard
}

fn rules(hoard: &Hoard) -> String {
    format!(
        "# Who may read what.\ncreation_rules:\n  # What nodes read.\n  - path_regex: secrets/app\\.yaml$\n    age:\n      \
         - {0} # the one who runs it\n  # Everything else.\n  - path_regex: secrets/.*\n    age: {0}\n",
        hoard.reader()
    )
}

fn text(hoard: &Hoard, file: &str) -> String {
    fs::read_to_string(hoard.lab.site.join(file)).unwrap()
}

/// What can be read of a file with an identity, by its paths.
fn read_with(hoard: &Hoard, file: &str, identity: &Identity) -> Option<BTreeMap<String, Vec<u8>>> {
    let sops = SopsFile::parse(file, text(hoard, file).as_bytes()).unwrap();
    let opened = sops.open(&Keyring::of([identity.clone()])).ok()?;
    let value = |path| opened.secret(path).unwrap().expose().to_vec();
    Some(sops.paths().iter().map(|path| (path.to_string(), value(path))).collect())
}

/// The lines of a file that hold values, as they are encrypted.
fn values(hoard: &Hoard, file: &str) -> Vec<String> {
    let all = text(hoard, file);
    let body = all.split("\nsops:").next().unwrap();
    body.lines().filter(|line| line.contains("ENC[")).map(str::to_owned).collect()
}

/// The identity of a node, as it is inside of it.
fn identity(hoard: &Hoard, machine: &str) -> Identity {
    let file = hoard.lab.root(machine).join("var/lib/orch/age.key");
    fs::read_to_string(file).unwrap().parse().unwrap()
}

#[track_caller]
fn assert_reads(hoard: &Hoard, machine: &str) -> Identity {
    let node = identity(hoard, machine);
    let found = read_with(hoard, FILE, &node);
    assert_eq!(found, read_with(hoard, FILE, &hoard.owner), "{machine} reads what its owner reads");
    assert_eq!(found.unwrap()["one"], b"value of one");
    assert!(read_with(hoard, "secrets/other.yaml", &node).is_none(), "and no other file");
    assert!(text(hoard, ".sops.yaml").contains(reader(&node).as_str()), "{}", text(hoard, ".sops.yaml"));
    node
}

#[test]
fn a_node_that_reads_files_itself_is_let_in_when_it_is_made_and_shown_out_when_it_is_destroyed() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = hoard(&["a"]);
    let (encrypted, written) = (values(&hoard, FILE), text(&hoard, ".sops.yaml"));
    hoard.orch(CREATE).ends_with(0).never_says("value of");
    let node = assert_reads(&hoard, "lab-a");
    assert_eq!(values(&hoard, FILE), encrypted, "the values themselves were not touched");
    for line in written.lines() {
        assert!(
            text(&hoard, ".sops.yaml").contains(line),
            "`{line}` is kept: {}",
            text(&hoard, ".sops.yaml")
        );
    }
    let readable = text(&hoard, FILE);
    hoard.orch(CREATE).ends_with(0).every_node_is("unchanged");
    assert_eq!(text(&hoard, FILE), readable, "a second time changes nothing");

    let gone = hoard.orch(DESTROY).ends_with(0).never_says("value of");
    let told = gone.says(FILE).says("one").says("two.deep");
    drop(told);
    assert_eq!(text(&hoard, ".sops.yaml"), written, "the rules are as they were");
    assert!(!text(&hoard, FILE).contains(reader(&node).as_str()));
    assert!(read_with(&hoard, FILE, &node).is_none());
    assert!(read_with(&hoard, FILE, &hoard.owner).is_some());
    // Who kept the old file kept its key: nothing of the new one is encrypted by that.
    let new = values(&hoard, FILE);
    assert!(new.len() == encrypted.len() && new.iter().zip(&encrypted).all(|(new, old)| new != old));
    let stolen = stolen(&readable, &text(&hoard, FILE));
    let stolen = SopsFile::parse(FILE, stolen.as_bytes()).unwrap();
    assert!(stolen.open(&Keyring::of([node])).is_err(), "the old key opens nothing of the new values");
    assert_nothing_is_left(&hoard.lab);
}

/// A file with the new values under the old key, as one would make it who kept that.
fn stolen(old: &str, new: &str) -> String {
    let (values, metadata) = (new.split("\nsops:").next().unwrap(), old.split_once("\nsops:").unwrap().1);
    format!("{values}\nsops:{metadata}")
}

#[test]
fn nodes_that_are_made_on_two_hosts_at_once_are_both_let_in() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = hoard(&["a"]);
    hoard.lab.write("hosts/mother.yaml", "provider: local\nimages: { \"*\": this-machine }\n");
    for verb in ["create", "destroy --yes"] {
        let runs = ["father", "mother"].map(|host| hoard.start(&format!("{verb} -M lab -H {host}")));
        for run in runs {
            run.end().ends_with(0);
        }
        let rules = text(&hoard, ".sops.yaml");
        let sops = SopsFile::parse(FILE, text(&hoard, FILE).as_bytes()).unwrap();
        let count = if verb == "create" { 3 } else { 1 };
        assert_eq!(sops.recipients().iter().count(), count, "after {verb}: {}", text(&hoard, FILE));
        assert_eq!(rules.matches("age1").count(), count + 1, "after {verb}: {rules}");
        assert!(sops.recipients().iter().all(|reader| rules.contains(reader.as_str())), "{rules}");
        if verb == "create" {
            assert_reads(&hoard, "lab-a");
        }
    }
    assert_eq!(text(&hoard, ".sops.yaml"), rules(&hoard));
    assert_nothing_is_left(&hoard.lab);
}

#[test]
fn a_driver_that_is_killed_while_it_lets_somebody_in_or_shows_somebody_out_is_healed_by_running_it_again() {
    if lacks(&NEEDS) {
        return;
    }
    let count = if std::env::var_os("ORCH_LAB_FULL").is_some() { 20 } else { 4 };
    for number in 0..count {
        let hoard = hoard(&["a"]);
        let cut = |words: &str, sign: &str, later: u64| {
            let mut run = hoard.start(words);
            wait_until("it is at it", || run.said().contains(sign) || run.has_ended());
            std::thread::sleep(Duration::from_millis(later));
            run.cut_off();
        };
        cut("create -M lab -H father", "applying configuration", 150 + 200 * number / count);
        hoard.orch(CREATE).ends_with(0);
        let node = assert_reads(&hoard, "lab-a");
        hoard.orch(STATUS).ends_with(0).every_node_is("as-wanted");
        let before = read_with(&hoard, FILE, &hoard.owner).unwrap();
        cut("destroy -M lab -H father --yes", "begins", 60 * number / count);
        hoard.orch(DESTROY).ends_with(0);
        assert_eq!(text(&hoard, ".sops.yaml"), rules(&hoard), "round {number}");
        assert!(read_with(&hoard, FILE, &node).is_none(), "round {number}");
        assert_eq!(read_with(&hoard, FILE, &hoard.owner).unwrap(), before, "no value was lost");
        let strays = fs::read_dir(hoard.lab.site.join("secrets")).unwrap().flatten();
        let strays: Vec<_> = strays.map(|entry| entry.file_name()).collect();
        assert_eq!(strays.len(), 2, "nothing is left beside the files: {strays:?}");
        assert_nothing_stays(&hoard.lab);
    }
}

/// What is written down about a machine says that it is known, and not yet that everything was done for it.
fn unsettle(hoard: &Hoard, machine: &str) {
    let path = hoard.lab.machine(machine).join("machine.json");
    let mut record: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(record["keys"]["settled"], true);
    record["keys"]["settled"] = false.into();
    fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
}

#[test]
fn what_a_killed_driver_left_half_done_is_done_by_the_next() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = hoard(&["a"]);
    let (alone, before) = (text(&hoard, FILE), text(&hoard, ".sops.yaml"));
    hoard.orch(CREATE).ends_with(0);
    let node = assert_reads(&hoard, "lab-a");
    let (both, after) = (text(&hoard, FILE), text(&hoard, ".sops.yaml"));
    let set = |file: &str, rules: &str| {
        hoard.replace(FILE, file.as_bytes());
        hoard.replace(".sops.yaml", rules.as_bytes());
    };
    for (what, file, rules) in [
        ("nobody was let in", &alone, &before),
        ("the rules were changed alone", &alone, &after),
        ("the file was changed alone", &both, &before),
        ("it was done and not written down", &both, &after),
    ] {
        set(file, rules);
        unsettle(&hoard, "lab-a");
        hoard.orch(CREATE).ends_with(0);
        assert!(read_with(&hoard, FILE, &node).is_some(), "{what}: it reads again");
        assert_eq!(text(&hoard, ".sops.yaml"), after, "{what}");
        hoard.orch(CREATE).ends_with(0).every_node_is("unchanged");
    }
    set(&both, &before);
    hoard.orch(DESTROY).ends_with(0);
    assert!(read_with(&hoard, FILE, &node).is_none());
    assert_eq!(text(&hoard, ".sops.yaml"), before);
    assert_nothing_is_left(&hoard.lab);
}

#[test]
fn a_node_is_not_settled_before_it_was_let_in() {
    if lacks(&NEEDS) {
        return;
    }
    for mode in ["push", "pull"] {
        let hoard = hoard(&["a"]);
        // Somebody else changes files, so that nobody is let in for now.
        let lock = fs::File::open(hoard.lab.site.join("secrets")).unwrap();
        lock.lock().unwrap();
        let create = hoard.start(&format!("create -M lab -H father --mode {mode}"));
        let keys = || {
            let text = fs::read(hoard.lab.machine("lab-a").join("machine.json")).unwrap_or_default();
            serde_json::from_slice::<Json>(&text).unwrap_or_default()["keys"].clone()
        };
        wait_until("the node is known", || keys().is_object());
        // As long as it would take to go on.
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(keys()["settled"], false, "whoever is cut off here has to find something left to do");
        create.cut_off();
        drop(lock);
        hoard.orch(&format!("create -M lab -H father --mode {mode}")).ends_with(0);
        assert_reads(&hoard, "lab-a");
        assert_eq!(keys()["settled"], true);
        hoard.orch(DESTROY).ends_with(0);
        assert_eq!(text(&hoard, ".sops.yaml"), rules(&hoard));
        assert_nothing_stays(&hoard.lab);
    }
}

#[test]
fn a_node_that_is_there_is_let_in_before_it_is_told_so() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = hoard(&["a"]);
    let spec = text(&hoard, "specs/plain.yaml");
    hoard.lab.write("specs/plain.yaml", &spec.replace("enroll_recipient: true\n", ""));
    hoard.orch(CREATE).ends_with(0);
    assert!(read_with(&hoard, FILE, &identity(&hoard, "lab-a")).is_none());
    hoard.lab.write("specs/plain.yaml", &spec);
    let gate = Gate::hold(&hoard.lab, "lab-a");
    let create = hoard.start(CREATE);
    wait_until("the node is being configured", || gate.is_waited_at());
    // Whoever finds it configured finds nothing left to do, so this must be done by now.
    assert_reads(&hoard, "lab-a");
    create.cut_off();
    drop(gate);
    hoard.orch(CREATE).ends_with(0);
    assert_reads(&hoard, "lab-a");
    hoard.orch(DESTROY).ends_with(0);
    assert_nothing_stays(&hoard.lab);
}

#[test]
fn a_node_that_is_destroyed_and_made_again_is_another_reader() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = hoard(&["a"]);
    hoard.orch(CREATE).ends_with(0);
    let first = assert_reads(&hoard, "lab-a");
    hoard.orch(DESTROY).ends_with(0);
    hoard.orch(CREATE).ends_with(0);
    let second = assert_reads(&hoard, "lab-a");
    assert_ne!(first.recipient(), second.recipient());
    assert!(read_with(&hoard, FILE, &first).is_none());
    hoard.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&hoard.lab);
}

//! Secrets that cannot be had: everything that is wrong is said at once, before anything is touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use orch_secrets::seal::Identity;
use serde_json::Value as Json;

use super::scene::{Hoard, reader};
use super::{CREATE, DESTROY, NEEDS, STATUS};
use crate::common::{Footprint, Outcome, assert_nothing_is_left, lacks};

/// A spec that asks for one thing of each kind that cannot be had, and for one that can.
const ASKED: [&str; 8] = [
    "name: fine, path: /run/secrets/fine",
    "name: foreign, path: /run/secrets/foreign",
    "name: tampered, from: \"secret:secrets/tampered.yaml#tampered\", path: /run/secrets/tampered",
    "name: folder, from: \"secret:secrets/folder.yaml#x\", path: /run/secrets/folder",
    "name: cut, from: \"secret:secrets/cut.json#cut\", path: /run/secrets/cut",
    "name: twice, path: /run/secrets/twice",
    "name: no-file, from: \"secret:secrets/none.yaml#x\", path: /run/secrets/no-file",
    "name: no-value, from: \"secret:secrets/fine.yaml#none.of.it\", path: /run/secrets/no-value",
];

/// What is said of each, by what it names.
const SAID: [&str; 7] = [
    "`secrets/foreign.yaml`",
    "`secrets/tampered.yaml`",
    "`secrets/folder.yaml` cannot be read",
    "`secrets/cut.json`",
    "`secret:twice` could be `secrets/fine.yaml#twice` or `secrets/second.yaml#twice`",
    "there is no file `secrets/none.yaml`",
    "`secrets/fine.yaml` has no value at `none.of.it`",
];

/// A site with one thing of each kind that cannot be had.
fn broken() -> Hoard {
    let hoard = Hoard::with_nodes(&["a"]);
    let site = |file: &str| hoard.lab.site.join(file);
    hoard.keep("secrets/fine.yaml", "fine: value of fine\ntwice: one\n");
    hoard.keep("secrets/second.yaml", "twice: two\n");
    hoard.keep_for("secrets/foreign.yaml", "foreign: value of foreign\n", [reader(&Identity::generate())]);
    hoard.keep("secrets/tampered.yaml", "tampered: value of tampered\nother: value of other\n");
    let text = fs::read_to_string(site("secrets/tampered.yaml")).unwrap();
    // As one who cannot open the file can change it: one value in the place of another.
    let sealed = |name: &str| {
        let start = text.find(&format!("{name}: ENC[")).unwrap() + name.len() + 2;
        text[start..].lines().next().unwrap().to_owned()
    };
    let (one, other) = (sealed("tampered"), sealed("other"));
    fs::write(site("secrets/tampered.yaml"), text.replace(&one, &other)).unwrap();
    fs::create_dir(site("secrets/folder.yaml")).unwrap();
    hoard.keep("secrets/cut.json", "{\"cut\": \"value of cut\"}");
    let whole = fs::read(site("secrets/cut.json")).unwrap();
    fs::write(site("secrets/cut.json"), &whole[..whole.len() / 2]).unwrap();
    hoard.ask_for(&ASKED);
    hoard
}

/// Asserts that a command refused, with all that is wrong and no value.
#[track_caller]
fn assert_refused(outcome: Outcome) -> Outcome {
    let outcome = SAID.iter().fold(outcome.ends_with(3), |outcome, said| outcome.says(said));
    outcome.says("nothing was touched").never_says("value of")
}

/// Every file below a folder with what it holds and when it was written, but for locks and disks, which those who run write
/// to themselves.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, i64, i64)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let about = fs::symlink_metadata(&path).unwrap();
        let is_lock = ["lock", "locks", "secrets.lock", "disk.img"].contains(&name.as_str());
        if about.is_dir() && !is_lock {
            files.insert(path.clone(), (Vec::new(), 0, 0));
            files.extend(snapshot(&path));
        } else if about.is_file() && !is_lock {
            // Of images it is enough when they were written.
            let text = if about.len() < 1 << 20 { fs::read(&path).unwrap() } else { Vec::new() };
            files.insert(path.clone(), (text, about.mtime(), about.mtime_nsec()));
        }
    }
    files
}

#[test]
fn everything_that_is_wrong_with_secrets_is_said_at_once_and_nothing_is_made() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = broken();
    let before = [snapshot(&hoard.lab.state), snapshot(&hoard.lab.site)];
    for words in [
        "create -M lab -H father",
        "create -M lab -H father --mode pull",
        "create -M lab -H father --dry-run",
        "config -M lab -H father",
        "test -M lab -H father",
    ] {
        assert_refused(hoard.orch(words));
        let told = assert_refused(hoard.orch(&format!("{words} --json"))).json();
        // A dry run shows the plan all the same, and says on the side why it cannot be run.
        if !words.contains("--dry-run") {
            let obstacles = told["error"]["obstacles"].as_array().unwrap();
            assert_eq!(obstacles.len(), SAID.len(), "`{words}`: {told:#}");
            let has_hint = |obstacle: &Json| obstacle["hint"].as_str().is_some_and(|hint| !hint.is_empty());
            assert!(obstacles.iter().all(has_hint), "`{words}`: {told:#}");
        }
        let after = [snapshot(&hoard.lab.state), snapshot(&hoard.lab.site)];
        assert_eq!(after, before, "`{words}` touched something");
    }
    assert_eq!(hoard.lab.machines(), [""; 0], "no machine was made");
    assert_nothing_is_left(&hoard.lab);
}

#[test]
fn a_name_that_no_file_has_leads_nowhere() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = Hoard::with_nodes(&["a"]);
    hoard.keep("secrets/fine.yaml", "fine: value of fine\n");
    hoard.ask_for(&["name: nowhere, path: /run/secrets/nowhere", "name: fine, path: /run/secrets/fine"]);
    let refused = hoard.orch("create -M lab -H father").ends_with(3).says("`secret:nowhere` leads nowhere");
    refused.says("hint: ").never_says("secrets/fine.yaml").never_says("value of fine");
    // It is said of what may be there as well: in a file that cannot be read.
    fs::write(hoard.lab.site.join("secrets/odd.yaml"), "nowhere: in clear\n").unwrap();
    hoard.orch("create -M lab -H father").ends_with(3).says("secrets/odd.yaml").never_says("in clear");
    assert_eq!(hoard.lab.machines(), [""; 0]);
}

#[test]
fn a_node_that_is_there_is_not_touched_where_its_secrets_cannot_be_had() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = broken();
    hoard.ask_for(&ASKED[..1]);
    hoard.orch(CREATE).ends_with(0);
    hoard.ask_for(&ASKED);
    let before = (Footprint::of(&hoard.lab, "lab-a"), snapshot(&hoard.lab.state));
    for words in ["create", "create --dry-run", "config", "config --mode pull", "config --dry-run"] {
        assert_refused(hoard.orch(&format!("{words} -M lab -H father --json")));
        let after = (Footprint::of(&hoard.lab, "lab-a"), snapshot(&hoard.lab.state));
        assert_eq!(after, before, "`{words}` touched something");
    }
    assert_eq!(hoard.on_node("lab-a", "/run/secrets/fine").unwrap(), b"value of fine");
    // Whoever cannot open anything at all can still take everything down.
    let blind = |words: &str| {
        let mut command = hoard.command(words);
        Outcome::of(command.env_remove("SOPS_AGE_KEY_FILE"), words)
    };
    blind(CREATE).ends_with(3).says("`secrets/fine.yaml`").never_says("value of");
    hoard.ask_for(&ASKED[..1]);
    hoard.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    blind(DESTROY).ends_with(0);
    assert_nothing_is_left(&hoard.lab);
}

#[test]
fn secrets_of_nodes_that_are_not_meant_are_nobodys_concern() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = broken();
    let b = crate::common::node("b").replace("spec: plain", "spec: other");
    hoard.lab.write_nodes(crate::common::TIMEOUTS, &[&crate::common::node("a"), &b]);
    let other = super::scene::asking("of b", &["name: fine, path: /run/secrets/fine"]);
    hoard.lab.write("specs/other.yaml", &other);
    hoard.orch("create -M lab -H father --only b").ends_with(0);
    assert_eq!(hoard.on_node("lab-b", "/run/secrets/fine").unwrap(), b"value of fine");
    assert_refused(hoard.orch(CREATE));
    hoard.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&hoard.lab);
}

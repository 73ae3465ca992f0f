//! What a node became, as far as its configuration decides that: files, accounts, keys, and what it wrote down itself.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value as Json;

/// Files that are the same wherever a node is.
const FILES: [&str; 7] = [
    "etc/hostname",
    "etc/hosts",
    "etc/timezone",
    "etc/motd",
    "etc/ssh/sshd_config",
    "etc/ssh/sshd_config.d/50-orch.conf",
    "etc/group",
];
/// What a host gives the driver, so that it can come in at all, and what makes a Proxmox VE of a machine in the lab.
const OF_THE_HOST: [&str; 2] = ["-orch-access", "-pve-lab"];

/// The name of what a node wrote down itself.
pub(super) const OWN_WORD: &str = "what it says";

/// What a node became, by the name of each thing.
pub(super) type Facts = BTreeMap<String, String>;

/// Everything of a node below this root; `host` is where it is, which is left out of what it says.
pub(super) fn of(root: &Path, host: &str) -> Facts {
    let mut facts: Facts =
        FILES.iter().filter_map(|name| Some(((*name).to_owned(), file(&root.join(name))?))).collect();
    let zone = fs::read_link(root.join("etc/localtime")).unwrap_or_default();
    facts.insert("time zone".into(), zone.display().to_string());
    for entry in fs::read_dir(root.join("etc/sudoers.d")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !OF_THE_HOST.iter().any(|end| name.ends_with(end)) {
            facts.insert(format!("sudoers.d/{name}"), file(&entry.path()).unwrap());
        }
    }
    let accounts = fs::read_to_string(root.join("etc/passwd")).unwrap();
    for user in ["ops", "deploy"] {
        let account = accounts.lines().find(|line| line.starts_with(&format!("{user}:")));
        // Its shell is the image's, where the account was there before.
        let account = account.and_then(|line| Some(line.rsplit_once(':')?.0.to_owned()));
        facts.insert(format!("account {user}"), account.unwrap_or_default());
        facts.insert(format!("keys of {user}"), keys(&root.join("home").join(user)));
    }
    facts.insert(OWN_WORD.into(), own_word(root, host).to_string());
    facts
}

/// A file with who may do what with it.
fn file(path: &Path) -> Option<String> {
    let (text, found) = (fs::read_to_string(path).ok()?, fs::metadata(path).ok()?);
    Some(format!("{:o} {} {}\n{text}", found.mode(), found.uid(), found.gid()))
}

/// The keys that are ours to give.
fn keys(home: &Path) -> String {
    let text = fs::read_to_string(home.join(".ssh/authorized_keys")).unwrap_or_default();
    let ours = text.lines().skip_while(|line| *line != "# orch: begin");
    ours.take_while(|line| *line != "# orch: end").collect::<Vec<_>>().join("\n")
}

/// What the node wrote down of its configuration, without when it did, what it had to do for it, and where it is.
fn own_word(root: &Path, host: &str) -> Json {
    let read = |name: &str| {
        let text = fs::read_to_string(root.join("var/lib/orch").join(name)).unwrap();
        serde_json::from_str::<Json>(&text.replace(&format!("@{host}"), "@host")).unwrap()
    };
    let (mut complete, mut spec) = (read("complete.json"), read("spec.json"));
    assert_eq!(complete["spec_digest"], spec["digest"], "it has what it was given");
    for name in ["started_at", "finished_at", "spec_digest"] {
        complete.as_object_mut().unwrap().remove(name);
    }
    // Of all that is in it, nothing but the host is in the digest that is not below.
    spec.as_object_mut().unwrap().remove("digest");
    for resource in complete["resources"].as_array_mut().unwrap() {
        for name in ["changed", "detail"] {
            resource.as_object_mut().unwrap().remove(name);
        }
    }
    serde_json::json!({ "complete": complete, "spec": spec })
}

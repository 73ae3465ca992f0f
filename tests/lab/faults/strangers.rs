//! Whatever is not ours where something of ours should be: keys, folders, processes.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value as Json;

use super::{CREATE, DESTROY, NEEDS, STATUS, cut_power, edit, made, motd, server};
use crate::common::{
    Lab, Need, Outcome, Running, TIMEOUTS, assert_nothing_is_left, is_alive, kill, lacks, node, wait_until,
};

#[test]
fn a_node_with_another_host_key_is_named_and_sent_nothing() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("ssh-keygen")]) {
        return;
    }
    let lab = made(&["a"]);
    let root = lab.root("lab-a");
    let key = root.join("etc/ssh/ssh_host_ed25519_key");
    let old = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
    fs::remove_file(key.with_extension("pub")).unwrap();
    Outcome::of(&mut keygen, "ssh-keygen").ends_with(0);
    restart_server(&lab);
    edit(&lab);

    let log = || fs::read_to_string(root.join("var/log/sshd.log")).unwrap().matches("Accepted").count();
    let before = log();
    let refused = lab.orch(CREATE).ends_with(1).every_node_is("failed");
    let why = refused.node("a")["why"].to_string();
    assert!(why.contains("lab.a@father") && why.contains("another host key"), "{why}");
    let status = lab.orch(STATUS).ends_with(1).every_node_is("unreachable");
    assert!(status.node("a")["why"].to_string().contains("host key"), "{}", status.stdout);
    assert_eq!(
        (log(), motd(&lab, "lab-a").as_str()),
        (before, "as wanted"),
        "nobody logged in, nothing came"
    );

    fs::write(&key, old).unwrap();
    restart_server(&lab);
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

/// Kills the SSH server of the node, which is then started again.
fn restart_server(lab: &Lab) {
    let old = server(lab, "lab-a").expect("the node has a server");
    kill(old, Signal::KILL);
    wait_until("the server is started again", || server(lab, "lab-a").is_some_and(|new| new != old));
}

#[test]
fn a_folder_or_a_file_of_somebody_else_in_the_place_of_a_machine_is_never_touched() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &[&node("a"), &node("b")]);
    let (folder, file) = (lab.machine("lab-a"), lab.machine("lab-b"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("precious"), "somebody's").unwrap();
    fs::write(&file, "somebody's").unwrap();
    let untouched = || {
        let found = [folder.join("precious"), file.clone()].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(found, ["somebody's", "somebody's"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing was put there");
    };
    lab.orch(STATUS).ends_with(1).every_node_is("stranger");
    // Names are for people: the machines get other ones.
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    untouched();
    lab.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    assert_eq!(lab.machines().len(), 4);
    lab.orch(DESTROY).ends_with(0).every_node_is("changed");
    untouched();
    assert_eq!(lab.machines(), ["lab-a", "lab-b"]);
}

#[test]
fn a_machine_that_bears_another_mark_than_ours_is_refused_and_left_alone() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    let record = lab.machine("lab-a").join("machine.json");
    let own = fs::read_to_string(&record).unwrap();
    let theirs = own.replace("\"site\": \"lab\"", "\"site\": \"theirs\"");
    assert_ne!(own, theirs, "the mark names the site");
    fs::write(&record, &theirs).unwrap();
    let init = lab.init("lab-a").unwrap();
    lab.orch(DESTROY).ends_with(0).every_node_is("unchanged");
    assert!(is_alive(init), "it is not ours to stop");
    assert_eq!(fs::read_to_string(&record).unwrap(), theirs);
    fs::write(&record, own).unwrap();
    lab.orch(DESTROY).ends_with(0).every_node_is("changed");
    assert_nothing_is_left(&lab);
}

#[test]
fn a_pid_that_belongs_to_another_process_by_now_is_not_taken_for_the_machine_and_never_killed() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    cut_power(&lab, "lab-a");
    let innocent = Running::start(Command::new("sleep").arg("600"), "sleep");
    let path = lab.machine("lab-a").join("boot.json");
    let mut boot: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    // As if its pid had been given away: the process is another, and started at another time.
    boot["init"]["pid"] = innocent.pid().into();
    fs::write(&path, serde_json::to_vec(&boot).unwrap()).unwrap();

    lab.orch(STATUS).ends_with(1).every_node_is("stopped");
    lab.orch(CREATE).ends_with(0).every_node_is("changed");
    assert!(is_alive(innocent.pid()));
    cut_power(&lab, "lab-a");
    fs::write(&path, serde_json::to_vec(&boot).unwrap()).unwrap();
    lab.orch(DESTROY).ends_with(0).every_node_is("changed");
    assert!(is_alive(innocent.pid()), "a stranger's process is left alone");
    assert_nothing_is_left(&lab);
}

//! The keys that a node makes itself: one of each whoever asks, whole at every moment, and shown once it is told to.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::panic, reason = "a test that cannot read an answer has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use common::Tree;
use orch_model::{NodeKeys, PublicKey};

const WAITING: &str = "/var/lib/orch/host_key";
const SHOWN: &str = "/etc/ssh/ssh_host_ed25519_key";

fn parsed(output: &Output) -> NodeKeys {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn keys(tree: &Tree) -> NodeKeys {
    parsed(&tree.run(&["keys"], &[]))
}

fn settle(tree: &Tree) -> NodeKeys {
    parsed(&tree.run(&["settle"], &[]))
}

/// The real program, wherever it is; nothing where there is none.
fn keygen() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("ssh-keygen")).find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: needs ssh-keygen");
    }
    found
}

/// A node with an SSH server that shows a key that it was given. systemd is told to read again, which is written down.
fn with_server() -> Option<Tree> {
    let (tree, keygen) = (Tree::new(), keygen()?);
    tree.program("/usr/bin/ssh-keygen", &format!("exec '{}' \"$@\"", keygen.display()));
    tree.program("/usr/sbin/sshd", "exit 0");
    tree.write("/etc/ssh/sshd_config", "");
    generate(&tree.at(SHOWN));
    tree.folder("/run/systemd/system");
    let calls = tree.at("/calls").display().to_string();
    tree.write("/calls", "");
    tree.program(
        "/usr/bin/systemctl",
        &format!("echo \"$*\" >> '{calls}'; printf 'LoadState=loaded\\nActiveState=active\\n'"),
    );
    Some(tree)
}

fn generate(path: &Path) {
    let made = Command::new(keygen().unwrap())
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "thrown away", "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

fn public_of(path: &Path) -> PublicKey {
    let output = Command::new(keygen().unwrap()).args(["-y", "-f"]).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ").parse().unwrap()
}

/// The node shows `own`, and has no other.
fn assert_settled(tree: &Tree, own: &NodeKeys) {
    let told = keys(tree);
    assert_eq!(told, NodeKeys { settled: true, ..own.clone() });
    assert_eq!(Some(public_of(&tree.at(SHOWN))), own.host_key);
    assert_eq!(tree.read(&format!("{SHOWN}.pub")), format!("{}\n", own.host_key.as_ref().unwrap()));
    assert_eq!((tree.mode(SHOWN), tree.mode(&format!("{SHOWN}.pub"))), (0o600, 0o644));
    assert!(!tree.at(WAITING).exists());
    let noted: NodeKeys = serde_json::from_str(&tree.read("/var/lib/orch/keys.json")).unwrap();
    assert_eq!(noted, told);
}

#[test]
fn a_tree_has_an_identity_and_no_host_key() {
    let tree = Tree::new();
    let told = keys(&tree);
    assert_eq!((told.host_key.clone(), told.settled), (None, true));
    assert_eq!((keys(&tree), settle(&tree)), (told.clone(), told));
    assert_eq!(tree.mode("/var/lib/orch/age.key"), 0o400);
    assert!(tree.read("/var/lib/orch/age.key").starts_with("AGE-SECRET-KEY-1"));
}

#[test]
fn programs_of_a_tree_make_no_key() {
    let Some(tree) = with_server() else { return };
    tree.forget_stand_ins();
    assert_eq!(keys(&tree).host_key, None);
    assert!(!tree.at(WAITING).exists());
}

#[test]
fn everybody_who_asks_at_once_is_told_the_same_keys() {
    let Some(tree) = with_server() else { return };
    let asking: Vec<_> = (0..8).map(|_| tree.start(&["keys"], &[])).collect();
    let told: Vec<NodeKeys> =
        asking.into_iter().map(|child| parsed(&child.wait_with_output().unwrap())).collect();
    assert!(told.iter().all(|keys| *keys == told[0]), "{told:?}");
    assert_eq!(told[0].host_key, Some(public_of(&tree.at(WAITING))));
    assert!(!told[0].settled);
    assert_eq!(tree.mode(WAITING), 0o600);
}

#[test]
fn the_server_shows_the_own_key_once_it_is_told_to_and_the_one_it_was_given_is_gone() {
    let Some(tree) = with_server() else { return };
    let given = tree.read(SHOWN);
    let own = keys(&tree);
    assert_eq!(tree.read(SHOWN), given, "until then it shows what it was given");
    assert_ne!(own.host_key, Some(public_of(&tree.at(SHOWN))));
    let told = settle(&tree);
    assert_eq!(told, NodeKeys { settled: true, ..own.clone() });
    assert_settled(&tree, &own);
    assert_eq!(tree.files_with(given.lines().nth(2).unwrap()), Vec::<String>::new());
    let count = || tree.read("/calls").matches("reload -- ssh.service").count();
    assert_eq!(count(), 1);
    assert_eq!(settle(&tree), told);
    assert_settled(&tree, &own);
    assert_eq!(count(), 1, "what is shown already needs nobody to read it again");
}

#[test]
fn settling_that_was_cut_at_any_step_ends_the_same() {
    type Step = fn(&Tree);
    let private: Step = |tree| {
        fs::copy(tree.at(WAITING), tree.at(SHOWN)).unwrap();
    };
    let public: Step =
        |tree| tree.write(&format!("{SHOWN}.pub"), &format!("{}\n", public_of(&tree.at(WAITING))));
    let taken_away: Step = |tree| fs::remove_file(tree.at(WAITING)).unwrap();
    let half: Step = |tree| tree.write("/etc/ssh/.orch-half", "half");
    for steps in [&[][..], &[half], &[private], &[private, public], &[private, public, taken_away]] {
        let Some(tree) = with_server() else { return };
        let own = keys(&tree);
        for step in steps {
            step(&tree);
        }
        // Nobody is told another key meanwhile.
        assert_eq!(keys(&tree).host_key, own.host_key);
        assert!(settle(&tree).settled);
        assert_settled(&tree, &own);
    }
}

#[test]
fn a_server_that_cannot_be_told_leaves_the_key_waiting() {
    let Some(tree) = with_server() else { return };
    let (own, script) = (keys(&tree), tree.read("/usr/bin/systemctl"));
    tree.program(
        "/usr/bin/systemctl",
        "test \"$1\" = show || exit 1; printf 'LoadState=loaded\\nActiveState=active\\n'",
    );
    let output = tree.run(&["settle"], &[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    assert_eq!(keys(&tree), own);
    assert_eq!(Some(public_of(&tree.at(WAITING))), own.host_key);
    tree.program("/usr/bin/systemctl", script.split_once('\n').unwrap().1);
    settle(&tree);
    assert_settled(&tree, &own);
}

#[test]
fn a_process_that_is_killed_at_any_moment_loses_no_key() {
    let Some(tree) = with_server() else { return };
    let own = keys(&tree);
    for round in 0..30 {
        let mut child = tree.start(&["settle"], &[]);
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let at = if tree.at(WAITING).exists() { WAITING } else { SHOWN };
        assert_eq!(Some(public_of(&tree.at(at))), own.host_key, "{round}");
    }
    settle(&tree);
    assert_settled(&tree, &own);
}

#[test]
fn making_that_was_cut_leaves_nothing_half() {
    let Some(tree) = with_server() else { return };
    for round in 0..20 {
        for path in [WAITING, "/var/lib/orch/keys.json", "/var/lib/orch/age.key"] {
            let _ = fs::remove_file(tree.at(path));
        }
        let mut child = tree.start(&["keys"], &[]);
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let told = keys(&tree);
        assert_eq!(told.host_key, Some(public_of(&tree.at(WAITING))));
        assert_eq!(keys(&tree), told);
    }
    // Two drafts of others, of which one is still being written.
    tree.write("/var/lib/orch/.host_key-1-1/host_key", "half");
    tree.folder("/var/lib/orch/.host_key-1-2");
    fs::remove_file(tree.at(WAITING)).unwrap();
    assert_eq!(keys(&tree).host_key, Some(public_of(&tree.at(WAITING))));
    let left = fs::read_dir(tree.at("/var/lib/orch")).unwrap().flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_is_noted_of_the_keys_is_not_believed_against_the_keys_themselves() {
    let Some(tree) = with_server() else { return };
    let own = keys(&tree);
    let mut lie = own.clone();
    lie.age = keys(&Tree::new()).age;
    lie.host_key = Some(common::KEY.parse().unwrap());
    lie.settled = true;
    for note in [serde_json::to_string(&lie).unwrap(), "nonsense".into()] {
        tree.write("/var/lib/orch/keys.json", &note);
        assert_eq!(keys(&tree), own);
    }
    fs::remove_file(tree.at("/var/lib/orch/keys.json")).unwrap();
    assert_eq!(keys(&tree), own);
}

#[test]
fn a_server_that_was_given_another_key_later_is_told_to_show_one_of_its_own_again() {
    let Some(tree) = with_server() else { return };
    keys(&tree);
    let first = settle(&tree);
    fs::remove_file(tree.at(SHOWN)).unwrap();
    fs::remove_file(tree.at(&format!("{SHOWN}.pub"))).unwrap();
    generate(&tree.at(SHOWN));
    let second = keys(&tree);
    assert!(!second.settled && second.host_key != first.host_key);
    settle(&tree);
    assert_settled(&tree, &second);
}

#[test]
fn an_identity_that_is_none_is_said_and_not_replaced() {
    let tree = Tree::new();
    keys(&tree);
    fs::remove_file(tree.at("/var/lib/orch/age.key")).unwrap();
    tree.write("/var/lib/orch/age.key", "AGE-SECRET-KEY-1HALF");
    let output = tree.run(&["keys"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("it is not an age identity") && !said.contains("1HALF"), "{said}");
    assert_eq!(tree.read("/var/lib/orch/age.key"), "AGE-SECRET-KEY-1HALF");
}

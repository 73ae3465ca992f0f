//! A node that starts: its secrets are in place before what may need them, and nobody is asked.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use orch_model::ApplyStatus;

use crate::common::secrets::{MARKER, Site, secret};
use crate::common::{Tree, is_root, of, wait_for};

/// What the namespaces hold before init is the first process in them: the state of a node, and a server that looks.
const SCENE: &str = r#"
mount -t tmpfs none /run && mount -t tmpfs none /var/log && mount -t tmpfs none /var/lib || exit 9
cp -rp "$2" /var/lib/orch && mkdir /run/orch && : > /run/orch/sshd-wanted || exit 9
if test -e /usr/sbin/sshd; then mount --bind "$3" /usr/sbin/sshd
else mount -t tmpfs none /usr/local/sbin && cp -p "$3" /usr/local/sbin/sshd; fi || exit 9
exec "$1" init
"#;

struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn our_own_init_has_secrets_in_place_before_it_starts_anything() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let (tree, site) = (Tree::new(), Site::of(vec![secret("db", "/run/of-a-test/db")]));
    assert_eq!(tree.give(&site).status, ApplyStatus::Complete);
    tree.program("/sshd", "cp /run/of-a-test/db /run/seen || : > /run/seen\nexec sleep 1000");
    let maker = Command::new("unshare")
        .args(["--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child=KILL"])
        .args(["sh", "-c", SCENE, "sh", env!("CARGO_BIN_EXE_orch-node")])
        .args([tree.at("/var/lib/orch"), tree.at("/sshd")])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let machine = Machine(maker);
    let maker = machine.0.id();
    let init = wait_for("init", || {
        let children = fs::read_to_string(format!("/proc/{maker}/task/{maker}/children")).ok()?;
        children.split_whitespace().next().map(String::from)
    });
    let inside = |path: &str| PathBuf::from(format!("/proc/{init}/root{path}"));
    wait_for("the server", || inside("/run/seen").exists().then_some(()));
    let log = fs::read_to_string(inside("/var/log/orch-init.log")).unwrap();
    let seen = wait_for("what the server saw", || {
        fs::read_to_string(inside("/run/seen")).ok().filter(|seen| !seen.is_empty())
    });
    assert_eq!(seen, format!("{MARKER} of db"), "{log}");
    assert!(log.find("the secrets are in place").unwrap() < log.find("is up").unwrap(), "{log}");
}

#[test]
fn what_cannot_be_put_in_place_is_said_and_keeps_no_other_out() {
    let (tree, site) =
        (Tree::new(), Site::of(vec![secret("a", "/run/secrets/a"), secret("b", "/run/secrets/b")]));
    tree.give(&site);
    fs::remove_dir_all(tree.at("/run/secrets")).unwrap();
    tree.folder("/run/secrets/a");
    let output = tree.run(&["unseal"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("secret a: ") && said.contains("a folder is in its place"), "{said}");
    assert!(output.stdout.is_empty() && said.lines().count() == 1, "{said}");
    assert_eq!(tree.read("/run/secrets/b"), format!("{MARKER} of b"));
}

#[test]
fn a_node_that_lost_what_it_held_says_so_when_it_starts() {
    let (tree, site) = (Tree::new(), Site::with_one());
    tree.give(&site);
    fs::remove_file(tree.at("/var/lib/orch/secrets.age")).unwrap();
    let output = tree.run(&["unseal"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`/var/lib/orch/secrets.age` is not there") && said.lines().count() == 1, "{said}");
    // One that has no secrets has lost none.
    tree.give(&Site::of(Vec::new()));
    let output = tree.run(&["unseal"], &[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn where_systemd_is_first_a_unit_does_it_for_as_long_as_there_are_secrets() {
    const UNIT: &str = "/etc/systemd/system/orch-secrets.service";
    let tree = Tree::new();
    tree.folder("/run/systemd/system");
    let place = tree.at("/").display().to_string();
    tree.program(
        "/usr/bin/systemctl",
        &format!(
            "echo \"$*\" >> '{place}/calls'
             test \"$1\" = enable && : > '{place}/enabled'
             test \"$1\" = disable && rm -f '{place}/enabled'
             if test -e '{place}/{UNIT}'; then echo LoadState=loaded; else echo LoadState=not-found; fi
             echo ActiveState=inactive
             if test -e '{place}/enabled'; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi"
        ),
    );
    let site = Site::with_one();
    let report = tree.give(&site);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(of(&report.resources, "secrets", "boot").changed);
    let unit = tree.read(UNIT);
    assert!(unit.contains(&format!("ExecStart={} unseal\n", env!("CARGO_BIN_EXE_orch-node"))), "{unit}");
    let calls = tree.read("/calls");
    assert!(calls.contains("enable -- orch-secrets.service") && !calls.contains("--now"), "{calls}");
    assert!(!tree.give(&site).changed());
    fs::remove_file(tree.at("/enabled")).unwrap();
    assert!(of(&tree.give(&site).resources, "secrets", "boot").changed, "one that is not enabled is no use");
    assert_eq!(tree.give(&Site::of(Vec::new())).status, ApplyStatus::Complete);
    assert!(!tree.at(UNIT).exists() && !tree.at("/enabled").exists());
    assert!(!tree.give(&Site::of(Vec::new())).changed());
}

//! Nobody is told a value: not by what is printed, not by what is kept, not by a look into the process.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::common::secrets::{MARKER, Site};
use crate::common::{Tree, is_root};

#[test]
fn no_word_of_the_program_and_no_file_but_its_own_holds_a_value() {
    let (tree, site) = (Tree::new(), Site::with_one());
    let config = serde_json::to_vec(&site.config()).unwrap();
    let first = tree.bring(&site, None);
    let parcel = site.pack(&first.lacking(), &first.keys().age);
    let mut said = vec![first.0, tree.bring(&site, Some(parcel)).0];
    fs::write(tree.at("/run/secrets/db"), "drifted").unwrap();
    said.push(tree.run(&["inspect"], &config));
    said.push(tree.bring(&site, None).0);
    fs::remove_file(tree.at("/run/secrets/db")).unwrap();
    tree.folder("/run/secrets/db");
    said.push(tree.bring(&site, None).0);
    fs::remove_dir(tree.at("/run/secrets/db")).unwrap();
    for order in ["unseal", "report", "keys", "settle"] {
        said.push(tree.run(&[order], &[]));
    }
    for output in &said {
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8(all).unwrap();
        assert!(!text.contains(MARKER) && !text.contains("AGE-SECRET-KEY"), "{text}");
    }
    assert!(said.iter().any(|output| !output.stderr.is_empty()), "it does say something");
    assert_eq!(tree.files_with(MARKER), ["/run/secrets/db"]);
    assert_eq!(tree.files_with("AGE-SECRET-KEY"), ["/var/lib/orch/age.key"]);
}

#[test]
fn nobody_but_root_looks_into_a_process_that_may_hold_secrets_and_its_programs_are_as_all_are() {
    let tree = Tree::new();
    let notes = tree.at("/notes").display().to_string();
    // Whoever owns a process may read this of it, unless it is one of which no image is ever written.
    tree.program(
        "/usr/bin/dpkg-query",
        &format!(
            "for one in $PPID $$; do cat /proc/$one/environ > /dev/null 2>&1; echo $? >> '{notes}'; done"
        ),
    );
    tree.program("/usr/bin/apt-get", "exit 1");
    let mut site = Site::with_one();
    site.role.packages = vec!["htop".parse().unwrap()];
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("orch-node");
    // By another process: a program that any process still has open for writing cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_orch-node")).arg(&program).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(&program);
    if is_root() {
        let all = Command::new("chown").args(["-R", "61234:61234"]).arg(tree.at("/")).status().unwrap();
        assert!(all.success());
        chown(tree.at("/"), Some(61_234), Some(61_234)).unwrap();
        command.uid(61_234).gid(61_234);
    }
    let config = tree.at("/config.json");
    fs::write(&config, serde_json::to_vec(&site.config()).unwrap()).unwrap();
    let output = command
        .arg("--root")
        .arg(tree.at("/"))
        .args(["apply"])
        .arg(config)
        .env("ORCH_NODE_STAND_INS", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let seen = tree.read("/notes");
    assert!(seen.starts_with("1\n0\n"), "{seen} {output:?}");
}

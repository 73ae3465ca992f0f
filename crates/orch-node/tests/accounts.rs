//! Accounts, their keys and their sudo: what is there is kept, what is asked for is made, and a second time changes
//! nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;

use common::{KEY, Tree, file, is_root, of, role, user};
use orch_model::ApplyStatus;
use orch_model::config::Role;

fn with_users(names: &[&str]) -> Role {
    let mut role = role();
    role.users = names.iter().map(|name| user(name)).collect();
    role
}

#[test]
fn an_account_is_made_whole_and_every_other_line_keeps_its_bytes() {
    let tree = Tree::new();
    let odd = "odd:x:1000:1000:Ödd,,\t:/home/odd:/bin/zsh\n# a comment\n+@netgroup::::::\n";
    tree.write("/etc/passwd", &format!("root:x:0:0:root:/root:/bin/sh\n{odd}"));
    tree.write("/etc/skel/.profile", "# hello\n");
    tree.write("/etc/skel/.config/x", "y");
    tree.write("/bin/bash", "");
    assert_eq!(tree.apply(&with_users(&["ops"])).status, ApplyStatus::Complete);
    assert_eq!(
        tree.read("/etc/passwd"),
        format!("root:x:0:0:root:/root:/bin/sh\n{odd}ops:x:1001:1001::/home/ops:/bin/bash\n")
    );
    assert_eq!(tree.read("/etc/group"), "root:x:0:\nops:x:1001:\n");
    // Not `!`: that would shut out keys too where sshd works without PAM.
    assert_eq!(tree.read("/etc/shadow"), "root:*:19000:0:99999:7:::\nops:*:19000:0:99999:7:::\n");
    assert_eq!(tree.read("/etc/gshadow"), "root:*::\nops:!::\n");
    assert_eq!((tree.mode("/home/ops"), tree.mode("/home/ops/.ssh")), (0o700, 0o700));
    assert_eq!(tree.read("/home/ops/.profile"), "# hello\n");
    assert_eq!(tree.read("/home/ops/.config/x"), "y");
    assert_eq!(tree.mode("/home/ops/.ssh/authorized_keys"), 0o600);
}

#[test]
fn what_an_account_has_belongs_to_it() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let tree = Tree::new();
    tree.write("/etc/skel/.config/x", "y");
    let mut role = with_users(&["ops"]);
    role.files = vec![file("/opt/theirs", "x")];
    role.files[0].owner = "ops".parse().unwrap();
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
    for path in ["/home/ops", "/home/ops/.config", "/home/ops/.config/x", "/home/ops/.ssh", "/opt/theirs"] {
        let data = fs::metadata(tree.at(path)).unwrap();
        assert_eq!((data.uid(), data.gid()), (1000, 1000), "{path}");
    }
    std::os::unix::fs::chown(tree.at("/opt/theirs"), Some(0), Some(0)).unwrap();
    let report = tree.apply(&role);
    assert_eq!(of(&report.resources, "file", "/opt/theirs").detail.as_deref(), Some("it belongs to 0:0"));
}

#[test]
fn an_account_that_is_there_is_kept_as_it_is() {
    let tree = Tree::new();
    tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nops:x:1500:1500:Me:/srv/ops:/bin/zsh\n");
    tree.folder("/srv/ops");
    if is_root() {
        std::os::unix::fs::chown(tree.at("/srv/ops"), Some(1500), Some(1500)).unwrap();
    }
    let before = tree.read("/etc/passwd");
    let report = tree.apply(&with_users(&["ops"]));
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(!of(&report.resources, "user", "ops").changed);
    assert_eq!(tree.read("/etc/passwd"), before);
    assert!(tree.read("/srv/ops/.ssh/authorized_keys").contains(KEY));
}

#[test]
fn a_user_named_root_gets_keys_and_nothing_else() {
    let tree = Tree::new();
    tree.program("/usr/bin/sudo", "exit 1");
    let (passwd, shadow) = (tree.read("/etc/passwd"), tree.read("/etc/shadow"));
    let mut role = with_users(&["root"]);
    role.users[0].sudo = true;
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert_eq!((tree.read("/etc/passwd"), tree.read("/etc/shadow")), (passwd, shadow));
    assert!(tree.read("/root/.ssh/authorized_keys").contains(KEY));
    assert!(!tree.at("/etc/sudoers.d").exists());
}

#[test]
fn making_an_account_goes_on_where_it_was_cut() {
    let cuts: [&dyn Fn(&Tree); 3] = [
        &|tree| tree.write("/etc/gshadow", "root:*::\nops:!::\n"),
        &|tree| tree.write("/etc/group", "root:x:0:\nops:x:1007:\n"),
        &|tree| tree.folder("/home/.orch-home-1000"),
    ];
    for cut in cuts {
        let tree = Tree::new();
        cut(&tree);
        let report = tree.apply(&with_users(&["ops", "two"]));
        assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
        for table in ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"] {
            let lines = tree.read(table).lines().filter(|line| line.starts_with("ops:")).count();
            assert_eq!(lines, 1, "{table}");
        }
        let homes = fs::read_dir(tree.at("/home")).unwrap().count();
        assert_eq!(homes, 2);
    }
}

#[test]
fn an_account_is_not_given_a_group_that_means_something_already() {
    for (group, name) in [
        ("sudo:x:27:", "sudo"),
        ("wheel:x:1500:alice", "wheel"),
        ("nogroup:x:65534:", "nogroup"),
        ("staff:x:1600:", "staff"),
    ] {
        let tree = Tree::new();
        tree.write("/etc/group", &format!("root:x:0:\n{group}\n"));
        tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1600:1600::/srv/alice:/bin/sh\n");
        let before = (tree.read("/etc/passwd"), tree.read("/etc/group"), tree.read("/etc/shadow"));
        let report = tree.apply(&with_users(&[name]));
        let why = of(&report.resources, "user", name).detail.clone().unwrap();
        assert!(why.contains(&format!("a group `{name}` which is not the account's own")), "{why}");
        assert_eq!((tree.read("/etc/passwd"), tree.read("/etc/group"), tree.read("/etc/shadow")), before);
        assert!(!tree.at("/home").exists());
    }
}

#[test]
fn a_home_whose_path_has_no_name_is_refused_in_words() {
    let tree = Tree::new();
    tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nops:x:1500:1500::/gone/..:/bin/sh\n");
    let report = tree.apply(&with_users(&["ops"]));
    let why = of(&report.resources, "user", "ops").detail.clone().unwrap();
    assert!(why.contains("`/gone/..` is left alone"), "{why}");
}

#[test]
fn a_home_that_is_lost_is_made_again() {
    let tree = Tree::new();
    let role = with_users(&["ops"]);
    tree.apply(&role);
    fs::remove_dir_all(tree.at("/home/ops")).unwrap();
    let report = tree.apply(&role);
    assert_eq!(of(&report.resources, "user", "ops").detail.as_deref(), Some("it has no home"));
    assert!(tree.read("/home/ops/.ssh/authorized_keys").contains(KEY));
}

#[test]
fn keys_that_others_added_stay_and_only_the_block_is_orchs() {
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE2 mine";
    let block = format!("# orch: begin\n{KEY}\n# orch: end\n");
    for (old, new) in [
        (other.to_string(), format!("{other}\n{block}")),
        (format!("# orch: begin\nold\n# orch: end\n{other}\n"), format!("{other}\n{block}")),
        (format!("{other}\n{block}"), format!("{other}\n{block}")),
        (format!("# orch: begin\n{other}\n"), format!("{other}\n{block}")),
        (String::new(), block.clone()),
    ] {
        let tree = Tree::new();
        tree.write("/root/.ssh/authorized_keys", &old);
        let report = tree.apply(&with_users(&["root"]));
        assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
        assert_eq!(tree.read("/root/.ssh/authorized_keys"), new, "{old:?}");
        assert!(!tree.apply(&with_users(&["root"])).changed());
    }
}

#[test]
fn keys_that_are_no_longer_asked_for_are_taken_away() {
    let tree = Tree::new();
    tree.write("/root/.ssh/authorized_keys", "theirs\n");
    let mut role = with_users(&["root"]);
    tree.apply(&role);
    role.users[0].ssh_keys.clear();
    assert!(tree.apply(&role).changed());
    assert_eq!(tree.read("/root/.ssh/authorized_keys"), "theirs\n");
    assert!(!tree.apply(&role).changed());
}

#[test]
fn sudo_counts_only_once_visudo_finds_it_good() {
    let tree = Tree::new();
    let mut role = with_users(&["ops"]);
    role.users[0].sudo = true;
    let report = tree.apply(&role);
    assert_eq!(of(&report.resources, "sudo", "ops").skipped.as_deref(), Some("sudo is not installed here"));
    tree.program("/usr/sbin/visudo", "exit 0");
    let why = tree.apply(&role).error.unwrap();
    assert!(why.contains("sudo ops: sudo is not installed"), "a machine that could have it: {why}");
    tree.write("/run/orch/shares-programs", "");
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete, "one that cannot");
    tree.program("/usr/bin/sudo", "exit 1");
    tree.program("/usr/sbin/visudo", "echo 'I do not like it' >&2; exit 1");
    let report = tree.apply(&role);
    assert!(of(&report.resources, "sudo", "ops").detail.as_ref().unwrap().contains("I do not like it"));
    assert_eq!(fs::read_dir(tree.at("/etc/sudoers.d")).unwrap().count(), 0);
    // What it is shown is the draft, whole, with the mode that it will have.
    tree.program(
        "/usr/sbin/visudo",
        "test \"$1 $2 $3\" = '-c -q -f' && grep -q '^ops ALL=(ALL:ALL) ALL$' \"$4\"",
    );
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
    assert_eq!(tree.mode("/etc/sudoers.d/orch-ops"), 0o440);
    role.sudo_nopasswd = true;
    tree.program("/usr/sbin/visudo", "exit 0");
    tree.apply(&role);
    assert_eq!(tree.read("/etc/sudoers.d/orch-ops"), "ops ALL=(ALL:ALL) NOPASSWD: ALL\n");
    role.users[0].sudo = false;
    assert!(tree.apply(&role).changed());
    assert!(!tree.at("/etc/sudoers.d/orch-ops").exists());
}

#[test]
fn the_real_visudo_agrees_with_what_is_written() {
    if !std::path::Path::new("/usr/sbin/visudo").exists() || !is_root() {
        println!("skipped: needs root and visudo");
        return;
    }
    let tree = Tree::new();
    tree.program("/usr/bin/sudo", "exit 1");
    tree.program("/usr/sbin/visudo", "exec /usr/sbin/visudo \"$@\"");
    let mut role = with_users(&["ops"]);
    role.users[0].sudo = true;
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
}

#[test]
fn a_node_with_one_id_says_that_it_can_have_no_accounts() {
    let tree = Tree::new();
    tree.write("/run/orch/one-id", "");
    let mut role = with_users(&["ops", "root"]);
    role.files = vec![file("/opt/x", "x"), file("/opt/y", "y")];
    role.files[1].owner = "ops".parse().unwrap();
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let skipped = |kind, name| of(&report.resources, kind, name).skipped.is_some();
    assert!(skipped("user", "ops") && skipped("ssh-keys", "ops") && skipped("file", "/opt/y"));
    assert!(!skipped("ssh-keys", "root") && !skipped("file", "/opt/x"));
}

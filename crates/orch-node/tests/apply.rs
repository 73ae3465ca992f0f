//! What applying a configuration promises, on a tree of files.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::{Tree, bytes, file, of, role, user};
use orch_model::config::{Network, Nixos, Secret};
use orch_model::{ApplyStatus, Health, Hypervisor, Rollout};

#[test]
fn a_second_apply_changes_nothing_and_says_so() {
    let tree = Tree::new();
    let mut role = role();
    role.users = vec![user("ops"), user("root")];
    role.files = vec![file("/etc/motd", "hello\n"), file("/opt/a/b/c", "deep")];
    let first = tree.apply(&role);
    assert_eq!(first.status, ApplyStatus::Complete, "{first:?}");
    assert!(first.changed());
    let before = tree.snapshot();
    let second = tree.apply(&role);
    assert_eq!(second.status, ApplyStatus::Complete);
    assert!(!second.changed(), "{second:?}");
    assert_eq!((first.attempts, second.attempts), (1, 2));
    let is_config = |line: &&String| !line.contains("/var/lib/orch");
    let after = tree.snapshot();
    let config = |lines: &[String]| lines.iter().filter(is_config).cloned().collect::<Vec<_>>();
    assert_eq!(config(&before), config(&after));
    let seen = tree.inspect(&role);
    assert_eq!(seen.drift().count(), 0, "{seen:?}");
    assert_eq!(of(&second.resources, "file", "/opt/a/b/c").detail, None);
}

#[test]
fn looking_changes_nothing_at_all() {
    let tree = Tree::new();
    tree.program("/usr/bin/sudo", "exit 1");
    tree.program("/usr/sbin/sshd", "exit 0");
    tree.write("/etc/ssh/sshd_config", "");
    let mut role = role();
    role.users = vec![user("ops")];
    role.users[0].sudo = true;
    role.files = vec![file("/etc/motd", "hello\n")];
    role.health = vec![Health::Command(vec!["false".into()])];
    let before = tree.snapshot();
    let seen = tree.inspect(&role);
    assert_eq!(tree.snapshot(), before);
    assert_eq!(seen.applied, None);
    for (kind, name) in [
        ("hostname", "web"),
        ("user", "ops"),
        ("ssh-keys", "ops"),
        ("sudo", "ops"),
        ("sshd", "port 22"),
        ("file", "/etc/motd"),
    ] {
        let resource = of(&seen.resources, kind, name);
        assert!(resource.changed && resource.detail.is_some(), "{resource:?}");
    }
    assert!(!seen.is_healthy());
}

#[test]
fn what_is_seen_after_an_apply_is_what_was_applied() {
    let tree = Tree::new();
    let mut role = role();
    role.files = vec![file("/etc/motd", "hello\n")];
    let report = tree.push(&role);
    assert_eq!(tree.inspect(&role).applied, Some(report.spec_digest));
    tree.write("/etc/motd", "by hand\n");
    let seen = tree.inspect(&role);
    let drift: Vec<_> = seen.drift().map(|one| (one.name.as_str(), one.detail.as_deref())).collect();
    assert_eq!(drift, [("/etc/motd", Some("its content differs"))]);
    let healed = tree.push(&role);
    assert_eq!(of(&healed.resources, "file", "/etc/motd").detail.as_deref(), Some("its content differs"));
    assert_eq!(tree.read("/etc/motd"), "hello\n");
}

#[test]
fn a_file_has_its_mode_whatever_the_callers_mask_is() {
    let tree = Tree::new();
    let mut role = role();
    for (path, mode) in [("/opt/a/plain", "0644"), ("/opt/secret", "0400"), ("/opt/tool", "4755")] {
        role.files.push(file(path, "x"));
        role.files.last_mut().unwrap().mode = mode.parse().unwrap();
    }
    let script = "umask 077; exec \"$0\" --root \"$1\" apply \"$2\"";
    let config = tree.at("/config.json");
    fs::write(&config, bytes(&role)).unwrap();
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_orch-node")])
        .args([tree.at("/"), config])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        (tree.mode("/opt/a/plain"), tree.mode("/opt/secret"), tree.mode("/opt/tool")),
        (0o644, 0o400, 0o4755)
    );
    assert_eq!(tree.mode("/opt/a"), 0o755);
    fs::set_permissions(tree.at("/opt/secret"), PermissionsExt::from_mode(0o666)).unwrap();
    let report = tree.apply(&role);
    assert_eq!(of(&report.resources, "file", "/opt/secret").detail.as_deref(), Some("its mode is 0666"));
}

#[test]
fn the_node_is_named_and_knows_its_own_name() {
    let hosts = "127.0.0.1 localhost\n# kept\n";
    for (old, domain, new) in [
        (hosts.to_string(), None, format!("{hosts}127.0.1.1 web\n")),
        (hosts.to_string(), Some("example.org"), format!("{hosts}127.0.1.1 web.example.org web\n")),
        (format!("127.0.1.1\told old2\n{hosts}"), None, format!("127.0.1.1 web\n{hosts}")),
    ] {
        let tree = Tree::new();
        tree.write("/etc/hosts", &old);
        tree.write("/etc/hostname", "old\n");
        let mut role = role();
        role.domain = domain.map(|domain| domain.parse().unwrap());
        assert!(of(&tree.apply(&role).resources, "hostname", "web").changed);
        assert_eq!((tree.read("/etc/hostname"), tree.read("/etc/hosts")), ("web\n".into(), new));
        assert!(!tree.apply(&role).changed());
    }
}

#[test]
fn hosts_that_the_configuration_brings_are_not_changed_behind_its_back() {
    let tree = Tree::new();
    let mut role = role();
    tree.link("/opt/settings", "/etc");
    for (path, content) in
        [("/etc/hosts", "10.0.0.1 all-mine\n"), ("/opt/settings/hosts", "10.0.0.1 by another name\n")]
    {
        role.files = vec![file(path, content)];
        tree.apply(&role);
        assert!(!tree.apply(&role).changed());
        assert_eq!(tree.read("/etc/hosts"), content);
    }
}

#[test]
fn the_time_zone_is_a_link_into_the_database() {
    let tree = Tree::new();
    tree.write("/usr/share/zoneinfo/Europe/Berlin", "TZif");
    tree.write("/usr/share/zoneinfo/UTC", "TZif");
    tree.link("/etc/localtime", "/usr/share/zoneinfo/UTC");
    let mut role = role();
    role.timezone = "Europe/Berlin".parse().unwrap();
    let report = tree.apply(&role);
    let how = of(&report.resources, "timezone", "Europe/Berlin").detail.as_deref();
    assert_eq!(how, Some("it is `/usr/share/zoneinfo/UTC`"));
    assert_eq!(
        fs::read_link(tree.at("/etc/localtime")).unwrap().to_str(),
        Some("/usr/share/zoneinfo/Europe/Berlin")
    );
    assert_eq!(tree.read("/etc/timezone"), "Europe/Berlin\n");
    // The same place, as other distributions write it.
    fs::remove_file(tree.at("/etc/localtime")).unwrap();
    tree.link("/etc/localtime", "../usr/share/zoneinfo/Europe/Berlin");
    assert!(!tree.apply(&role).changed());
}

#[test]
fn a_time_zone_that_is_not_there_is_skipped_where_programs_are_shared_and_an_error_elsewhere() {
    let tree = Tree::new();
    let mut role = role();
    role.timezone = "Europe/Berlin".parse().unwrap();
    assert_eq!(tree.apply(&role).status, ApplyStatus::Failed);
    tree.write("/run/orch/shares-programs", "");
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let skipped = of(&report.resources, "timezone", "Europe/Berlin").skipped.as_deref();
    assert_eq!(skipped, Some("not installable here"));
    assert!(!tree.at("/etc/localtime").is_symlink());
}

#[test]
fn what_is_not_done_yet_is_said_and_secrets_are_never_believed_delivered() {
    let tree = Tree::new();
    let mut role = role();
    role.hypervisor = Some(Hypervisor::Proxmox);
    role.network = Network::Static { ip: "10.0.0.5/24".parse().unwrap(), gateway: None, dns: Vec::new() };
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete);
    for (kind, name) in [("hypervisor", "proxmox"), ("network", "10.0.0.5/24")] {
        assert!(of(&report.resources, kind, name).skipped.is_some());
    }
    tree.write("/run/orch/hosts-children", "");
    assert_eq!(of(&tree.apply(&role).resources, "hypervisor", "proxmox").skipped, None);
    role.secrets = vec![Secret {
        name: "db".parse().unwrap(),
        from: "secret:db".parse().unwrap(),
        path: "/run/secrets/db".parse().unwrap(),
        mode: "0400".parse().unwrap(),
        owner: "root".parse().unwrap(),
    }];
    assert!(
        tree.apply(&role).error.unwrap().contains("secret db: the value of this secret was not opened where")
    );
}

#[test]
fn a_nixos_node_whose_system_is_not_named_gets_nothing_that_its_system_would_bring() {
    let tree = Tree::new();
    let mut role = role();
    role.users = vec![user("ops")];
    role.packages = vec!["htop".parse().unwrap()];
    role.nixos = Some(Nixos { modules: Vec::new(), rollout: Rollout::Closure, install: None });
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let kinds: Vec<&str> = report.resources.iter().map(|resource| resource.kind.as_str()).collect();
    assert_eq!(kinds, ["nixos"], "{report:?}");
    let why = of(&report.resources, "nixos", "system").skipped.as_ref().unwrap();
    assert!(why.contains("`orch rollout` evaluates one"), "{why}");
    assert!(!tree.read("/etc/passwd").contains("ops"));
}

#[test]
fn programs_of_a_tree_are_not_run() {
    let tree = Tree::new();
    let mark = tree.at("/run-by-mistake").display().to_string();
    for program in ["dpkg-query", "apt-get", "sshd", "ssh-keygen", "sudo", "visudo", "systemctl"] {
        tree.program(&format!("/usr/bin/{program}"), &format!(": > '{mark}'"));
    }
    tree.folder("/run/systemd/system");
    let mut role = role();
    role.packages = vec!["htop".parse().unwrap()];
    role.services.enable = vec!["chrony".parse().unwrap()];
    role.users = vec![user("ops")];
    role.users[0].sudo = true;
    // The control: they are run where they are said to be stand-ins.
    tree.apply(&role);
    fs::remove_file(tree.at("/run-by-mistake")).unwrap();
    tree.forget_stand_ins();
    // What lies in the tree cannot say so.
    tree.write("/run/orch/stand-ins", "");
    tree.apply(&role);
    assert!(!tree.at("/run-by-mistake").exists());
}

#[test]
fn an_ordinary_user_cannot_touch_the_machine() {
    use std::os::unix::process::CommandExt;
    // A copy: the folder of the program itself may be closed to everybody else.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("orch-node");
    assert!(
        Command::new("cp").arg(env!("CARGO_BIN_EXE_orch-node")).arg(&program).status().unwrap().success()
    );
    let mut command = Command::new(&program);
    if common::is_root() {
        command.uid(61_234).gid(61_234);
    }
    let output = command.args(["apply", "/dev/null"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("must be run as root"));
}

//! What is done by programs of the node: packages, services, the SSH server, fail2ban. The programs are scripts that write
//! down what they were asked, so that no test installs anything.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use std::path::Path;

use common::{Tree, file, is_root, of, role};
use orch_model::ApplyStatus;
use orch_model::config::Role;

const SHARES_PROGRAMS: &str = "/run/orch/shares-programs";

fn with_packages(names: &[&str]) -> Role {
    let mut role = role();
    role.packages = names.iter().map(|name| name.parse().unwrap()).collect();
    role
}

/// A tree with a stand-in for apt: it knows `htop`, `vim` and `libc6:amd64`, and has what is in a file.
fn with_apt(installed: &str) -> Tree {
    let tree = Tree::new();
    tree.write("/db/installed", installed);
    tree.write("/db/calls", "");
    let db = tree.at("/db").display().to_string();
    tree.program(
        "/usr/bin/dpkg-query",
        &format!("while read -r name; do printf '%s\\t%s\\t1.0\\tinstalled\\n' \"$name\" \"${{name%%:*}}\"; done < '{db}/installed'; exit 1"),
    );
    tree.program(
        "/usr/bin/apt-get",
        &format!(
            "echo \"$DEBIAN_FRONTEND $*\" >> '{db}/calls'
             case \" $* \" in *' update '*|*' update') exit 0;; esac
             while test \"$1\" != --; do shift; done; shift
             for name; do case \"$name\" in htop|vim|libc6:amd64|fail2ban) ;; *) echo \"E: Unable to locate package $name\" >&2; exit 100;; esac; done
             for name; do echo \"$name\" >> '{db}/installed'; done"
        ),
    );
    tree
}

fn calls(tree: &Tree) -> Vec<String> {
    tree.read("/db/calls").lines().map(String::from).collect()
}

#[test]
fn all_missing_packages_are_installed_in_one_call_and_reported_each() {
    let tree = with_apt("vim\n");
    let role = with_packages(&["htop", "vim", "libc6:amd64"]);
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let changed = |name| of(&report.resources, "package", name).changed;
    assert_eq!((changed("htop"), changed("vim"), changed("libc6:amd64")), (true, false, true));
    assert_eq!(
        calls(&tree),
        ["noninteractive -q -y -o DPkg::Lock::Timeout=120 -o APT::Cmd::Pattern-Only=true \
             -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
             --no-install-recommends install -- htop libc6:amd64"]
    );
    assert!(!tree.apply(&role).changed());
    assert_eq!(calls(&tree).len(), 1);
}

#[test]
fn a_package_that_cannot_be_had_keeps_no_other_out() {
    let tree = with_apt("");
    let report = tree.apply(&with_packages(&["nonsense", "htop"]));
    assert_eq!(report.status, ApplyStatus::Failed);
    assert!(of(&report.resources, "package", "htop").changed);
    let why = of(&report.resources, "package", "nonsense").detail.clone().unwrap();
    assert!(why.contains("Unable to locate package nonsense"), "{why}");
    assert!(
        calls(&tree).iter().any(|call| call.ends_with("update")),
        "the lists are fetched before giving up"
    );
}

#[test]
fn where_apt_cannot_fetch_its_lists_what_it_said_first_is_told() {
    let tree = with_apt("");
    let script = "case \" $* \" in *' update '*) echo 'E: no network' >&2; exit 100;; esac
        echo 'E: dpkg has no room' >&2; exit 100";
    tree.program("/usr/bin/apt-get", script);
    let why = tree.apply(&with_packages(&["htop"])).error.unwrap();
    assert!(why.contains("dpkg has no room") && !why.contains("no network"), "{why}");
}

#[test]
fn a_package_run_that_was_cut_is_brought_to_its_end_before_apt_is_asked_again() {
    let tree = with_apt("");
    let db = tree.at("/db").display().to_string();
    let apt = tree.read("/usr/bin/apt-get");
    let apt = apt.strip_prefix("#!/bin/sh\n").unwrap();
    tree.write("/db/is-cut", "");
    let refusal =
        format!("test -e '{db}/is-cut' && {{ echo 'E: dpkg was interrupted' >&2; exit 100; }}\n{apt}");
    tree.program("/usr/bin/apt-get", &refusal);
    tree.program("/usr/bin/dpkg", &format!("test \"$3 $4\" = '--configure -a' && rm '{db}/is-cut'"));
    let report = tree.apply(&with_packages(&["htop"]));
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
}

#[test]
fn a_version_that_is_asked_for_must_be_the_one_that_is_there() {
    let tree = with_apt("htop\n");
    let seen = tree.inspect(&with_packages(&["htop=1.0", "htop=2.0", "htop/stable"]));
    let drift: Vec<&str> =
        seen.drift().filter(|one| one.kind == "package").map(|one| one.name.as_str()).collect();
    assert_eq!(drift, ["htop=2.0"]);
    assert_eq!(calls(&tree).len(), 0, "looking installs nothing");
}

#[test]
fn a_node_that_shares_its_machines_programs_has_what_is_there_and_skips_the_rest() {
    let tree = with_apt("vim\n");
    tree.write(SHARES_PROGRAMS, "");
    let report = tree.apply(&with_packages(&["vim", "htop"]));
    assert_eq!(report.status, ApplyStatus::Complete);
    assert_eq!(of(&report.resources, "package", "vim").skipped, None);
    assert_eq!(of(&report.resources, "package", "htop").skipped.as_deref(), Some("not installable here"));
    assert_eq!(calls(&tree).len(), 0);
}

#[test]
fn other_package_managers_are_found_by_their_programs() {
    for (query, install, wanted) in [
        ("/usr/bin/rpm", "/usr/bin/dnf", "-y install -- htop"),
        ("/usr/bin/pacman", "/usr/bin/pacman", "-S --noconfirm --needed -- htop"),
    ] {
        let tree = Tree::new();
        let db = tree.at("/db").display().to_string();
        tree.folder("/db");
        let script = format!(
            "case \"$1\" in -q|-Q) test -e '{db}/has'; exit $?;; esac; echo \"$*\" > '{db}/call'; : > '{db}/has'"
        );
        tree.program(query, &script);
        tree.program(install, &script);
        let report = tree.apply(&with_packages(&["htop"]));
        assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
        assert_eq!(tree.read("/db/call").trim_end(), wanted);
    }
    let report = Tree::new().apply(&with_packages(&["htop"]));
    assert!(report.error.unwrap().contains("no package manager that orch knows"));
}

/// A tree on which systemd seems to run; the state of units is in files.
fn with_systemd() -> Tree {
    let tree = Tree::new();
    stand_in_for_systemd(&tree);
    tree
}

/// Like the real one, it fails for units that it does not know, but for telling so.
fn stand_in_for_systemd(tree: &Tree) {
    tree.folder("/run/systemd/system");
    tree.folder("/db");
    let db = tree.at("/db").display().to_string();
    tree.program(
        "/usr/bin/systemctl",
        &format!(
            "verb=$1; for unit; do :; done
             echo \"$*\" >> '{db}/calls'
             case $verb in daemon-reload) sed -i s/Reload=yes/Reload=no/ '{db}'/*; exit 0;; esac
             if ! test -e \"{db}/$unit\"; then
                 test $verb = show || {{ echo \"Unit $unit could not be found.\" >&2; exit 5; }}
                 echo LoadState=not-found; echo ActiveState=inactive; exit 0
             fi
             case $verb in
                 show) cat \"{db}/$unit\";;
                 enable) printf 'LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n' > \"{db}/$unit\";;
                 disable) printf 'LoadState=loaded\\nActiveState=inactive\\nUnitFileState=disabled\\n' > \"{db}/$unit\";;
             esac"
        ),
    );
}

const RUNS: &str = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n";
const RESTS: &str = "LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n";

#[test]
fn services_are_made_to_run_and_to_rest() {
    let tree = with_systemd();
    tree.write("/db/chrony", RESTS);
    tree.write("/db/nginx", RUNS);
    tree.write("/db/rpcbind", RUNS);
    let mut role = role();
    role.services.enable = vec!["chrony".parse().unwrap(), "nginx".parse().unwrap()];
    role.services.disable = vec!["rpcbind".parse().unwrap(), "not-here".parse().unwrap()];
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let changed = |name| of(&report.resources, "service", name).changed;
    assert_eq!((changed("chrony"), changed("nginx"), changed("rpcbind")), (true, false, true));
    assert!(tree.read("/db/calls").contains("enable --now -- chrony\n"));
    assert!(!tree.apply(&role).changed());
    role.services.enable = vec!["ghost".parse().unwrap()];
    assert!(tree.apply(&role).error.unwrap().contains("systemd knows no unit `ghost`"));
}

#[test]
fn a_service_whose_file_has_changed_is_started_anew_also_after_a_cut() {
    let tree = with_systemd();
    tree.write("/db/chrony", &format!("{RUNS}NeedDaemonReload=yes\n"));
    let mut role = role();
    role.services.enable = vec!["chrony".parse().unwrap()];
    let seen = tree.inspect(&role);
    assert!(
        of(&seen.resources, "service", "chrony").detail.as_ref().unwrap().contains("its file has changed")
    );
    let script = refuse(&tree, "restart");
    assert_eq!(tree.apply(&role).status, ApplyStatus::Failed);
    assert_eq!(tree.inspect(&role).drift().filter(|one| one.kind == "service").count(), 1);

    tree.program("/usr/bin/systemctl", &script);
    tree.write("/db/calls", "");
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(calls(&tree).contains(&"restart -- chrony".into()), "{:?}", calls(&tree));
    assert!(!tree.apply(&role).changed());
    assert_eq!(calls(&tree).iter().filter(|call| call.starts_with("restart")).count(), 1);
}

#[test]
fn services_are_skipped_where_there_is_no_systemd() {
    let tree = Tree::new();
    let mut role = role();
    role.services.enable = vec!["chrony".parse().unwrap()];
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete);
    assert_eq!(of(&report.resources, "service", "chrony").skipped.as_deref(), Some("no systemd here"));
}

#[test]
fn fail2ban_is_installed_configured_and_run_and_its_jail_goes_when_it_is_unwanted() {
    let mut role = role();
    role.fail2ban = true;
    let report = Tree::new().apply(&role);
    assert!(of(&report.resources, "fail2ban", "sshd").skipped.as_ref().unwrap().contains("systemd"));
    // The package brings the program and its unit.
    let tree = with_apt("");
    stand_in_for_systemd(&tree);
    let apt = tree.read("/usr/bin/apt-get");
    let root = tree.at("/").display().to_string();
    let brings = format!(
        "{}\nprintf '{}' > '{root}/db/fail2ban.service'; cp /bin/true '{root}/usr/bin/fail2ban-server'",
        apt.strip_prefix("#!/bin/sh\n").unwrap(),
        RESTS.replace('\n', "\\n"),
    );
    tree.program("/usr/bin/apt-get", &brings);
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert_eq!(tree.read("/db/installed"), "fail2ban\n");
    assert_eq!(tree.read("/db/fail2ban.service"), RUNS);
    assert!(tree.read("/etc/fail2ban/jail.d/orch.local").contains("[sshd]\nenabled = true\nport = 22\n"));
    assert!(!tree.apply(&role).changed());
    role.fail2ban = false;
    assert!(tree.apply(&role).changed());
    assert!(!tree.at("/etc/fail2ban/jail.d/orch.local").exists());
    assert_eq!(tree.read("/db/fail2ban.service"), RESTS);
    assert!(!tree.apply(&role).changed());
}

#[test]
fn fail2ban_that_somebody_removed_by_hand_can_be_unwanted_all_the_same() {
    let tree = with_systemd();
    tree.write("/etc/fail2ban/jail.d/orch.local", "left");
    let report = tree.apply(&role());
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(!tree.at("/etc/fail2ban/jail.d/orch.local").exists());
    assert!(!tree.apply(&role()).changed());
}

/// A tree with an SSH server that likes a configuration where `script` succeeds; `$3` is the file that it is shown.
fn with_sshd(main: &str, script: &str) -> Tree {
    let tree = Tree::new();
    tree.write("/etc/ssh/sshd_config", main);
    tree.program("/usr/sbin/sshd", script);
    tree
}

const INCLUDE: &str = "Include /etc/ssh/sshd_config.d/*.conf\n";
const OURS: &str = "/etc/ssh/sshd_config.d/50-orch.conf";

#[test]
fn settings_of_the_ssh_server_count_only_once_it_finds_them_good() {
    let tree = with_sshd(INCLUDE, "echo 'bad configuration' >&2; exit 255");
    let report = tree.apply(&role());
    let why = of(&report.resources, "sshd", "port 22").detail.clone().unwrap();
    assert!(why.contains("bad configuration"), "{why}");
    let left = std::fs::read_dir(tree.at("/etc/ssh/sshd_config.d")).unwrap().count();
    assert_eq!((left, tree.at("/etc/ssh/.orch-trial").exists()), (0, false));
    // What it is shown includes the draft by its name.
    tree.program(
        "/usr/sbin/sshd",
        "test \"$1 $2\" = '-t -f' || exit 1
         included=$(sed -n 's/^Include \"\\(.*\\)\"$/\\1/p' \"$3\")
         grep -q '^PermitRootLogin prohibit-password$' \"$included\"",
    );
    let report = tree.apply(&role());
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(
        tree.read(OURS).ends_with("Port 22\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n")
    );
    assert!(!tree.apply(&role()).changed());
}

#[test]
fn the_servers_own_file_is_made_to_include_ours_and_keeps_the_rest() {
    let rest = "# mine\nX11Forwarding no\nMatch User git\n  PermitRootLogin no\n";
    let tree = with_sshd(rest, "exit 0");
    let main = tree.at("/etc/ssh/sshd_config");
    std::fs::set_permissions(main, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(tree.apply(&role()).status, ApplyStatus::Complete);
    assert_eq!(tree.read("/etc/ssh/sshd_config"), format!("{INCLUDE}{rest}"));
    assert_eq!(tree.mode("/etc/ssh/sshd_config"), 0o600);
    assert!(!tree.apply(&role()).changed());
}

#[test]
fn who_says_otherwise_before_us_is_named() {
    let tree = with_sshd(INCLUDE, "exit 0");
    // As distributions do it, by a link into their own folders; what says the same as we do is fine.
    tree.write("/usr/lib/ssh/same.conf", "PermitRootLogin prohibit-password\n");
    tree.link("/etc/ssh/sshd_config.d/05-same.conf", "/usr/lib/ssh/same.conf");
    assert_eq!(tree.apply(&role()).status, ApplyStatus::Complete);
    tree.write("/etc/ssh/sshd_config.d/10-vendor.conf", "PermitRootLogin yes\n");
    let error = tree.apply(&role()).error.unwrap();
    assert!(error.contains("10-vendor.conf says otherwise"), "{error}");
    let tree = with_sshd(&format!("PasswordAuthentication yes\n{INCLUDE}"), "exit 0");
    assert!(tree.apply(&role()).error.unwrap().contains("/etc/ssh/sshd_config says otherwise"));
}

#[test]
fn a_servers_file_that_the_configuration_brings_is_not_changed_behind_its_back() {
    let tree = with_sshd("", "exit 0");
    let mut role = role();
    let mine = format!("# all mine\n{INCLUDE}");
    role.files = vec![file("/etc/ssh/sshd_config", &mine)];
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "the first time is enough: {report:?}");
    assert_eq!(tree.read("/etc/ssh/sshd_config"), mine);
    assert!(!tree.apply(&role).changed());
    // One that leaves ours out is not changed either, and that is told.
    role.files = vec![file("/etc/ssh/sshd_config", "# all mine\n")];
    let error = tree.apply(&role).error.unwrap();
    assert!(error.contains("does not include"), "{error}");
    assert_eq!(tree.read("/etc/ssh/sshd_config"), "# all mine\n");
}

#[test]
fn a_server_is_told_of_its_files_that_the_configuration_brings() {
    let tree = with_systemd();
    tree.write("/etc/ssh/sshd_config", INCLUDE);
    tree.program("/usr/sbin/sshd", "exit 0");
    tree.write("/db/ssh.service", RUNS);
    let mut role = role();
    tree.apply(&role);
    tree.write("/db/calls", "");
    role.files = vec![file("/etc/ssh/sshd_config.d/90-mine.conf", "X11Forwarding no\n")];
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
    assert!(calls(&tree).contains(&"reload -- ssh.service".into()), "{:?}", calls(&tree));
    assert!(!tree.apply(&role).changed());
}

#[test]
fn the_real_ssh_server_agrees_with_what_is_written() {
    if !Path::new("/usr/sbin/sshd").exists() || !is_root() {
        println!("skipped: needs root and sshd");
        return;
    }
    let tree = with_real_sshd();
    let own = tree.read("/etc/ssh/sshd_config");
    tree.write("/etc/ssh/sshd_config", &format!("{INCLUDE}{own}"));
    let report = tree.apply(&role());
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    // The control: it does refuse what it should.
    tree.write("/etc/ssh/sshd_config", &format!("{INCLUDE}{own}Nonsense yes\n"));
    std::fs::remove_file(tree.at(OURS)).unwrap();
    assert!(tree.apply(&role()).error.unwrap().contains("Nonsense"));
}

/// A tree whose SSH server is this machine's, and has a key.
fn with_real_sshd() -> Tree {
    let tree = Tree::new();
    let key = tree.at("/etc/ssh/host_key");
    tree.folder("/etc/ssh");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    tree.write("/etc/ssh/sshd_config", &format!("HostKey {}\n", key.display()));
    tree.program("/usr/sbin/sshd", "mkdir -p /run/sshd; exec /usr/sbin/sshd \"$@\"");
    tree
}

#[test]
fn the_real_ssh_server_is_shown_everything_that_will_count() {
    if !Path::new("/usr/sbin/sshd").exists() || !is_root() {
        println!("skipped: needs root and sshd");
        return;
    }
    // Nobody reads this file yet; the include that orch would add is what makes it count.
    let tree = with_real_sshd();
    let own = tree.read("/etc/ssh/sshd_config");
    tree.write("/etc/ssh/sshd_config.d/10-left.conf", "Nonsense yes\n");
    assert!(tree.apply(&role()).error.unwrap().contains("Nonsense"));
    assert_eq!(tree.read("/etc/ssh/sshd_config"), own);
    assert!(!tree.at(OURS).exists());
    tree.write("/etc/ssh/sshd_config.d/10-left.conf", "X11Forwarding no\n");
    assert_eq!(tree.apply(&role()).status, ApplyStatus::Complete);
    assert_eq!(tree.read("/etc/ssh/sshd_config"), format!("{INCLUDE}{own}"));

    // What the configuration brings is judged like what orch writes by itself.
    for (path, content) in [
        ("/etc/ssh/sshd_config".to_string(), format!("{INCLUDE}{own}Nonsense yes\n")),
        ("/etc/ssh/sshd_config.d/90-mine.conf".to_string(), "Nonsense yes\n".to_string()),
    ] {
        let before = (tree.read("/etc/ssh/sshd_config"), tree.read(OURS));
        let mut role = role();
        role.files = vec![file(&path, &content)];
        let why = of(&tree.apply(&role).resources, "file", &path).detail.clone().unwrap();
        assert!(why.contains("Nonsense"), "{why}");
        assert_eq!((tree.read("/etc/ssh/sshd_config"), tree.read(OURS)), before);
        role.files[0].content = content.replace("Nonsense yes", "X11Forwarding no");
        let report = tree.apply(&role);
        assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    }
}

/// Has systemd refuse this verb until [`with_systemd`]'s own program is back, which is given.
fn refuse(tree: &Tree, verb: &str) -> String {
    let whole = tree.read("/usr/bin/systemctl");
    let script = whole.strip_prefix("#!/bin/sh\n").unwrap().to_owned();
    tree.program("/usr/bin/systemctl", &format!("test \"$1\" = {verb} && exit 1\n{script}"));
    script
}

#[test]
fn a_server_that_was_not_told_of_its_new_settings_is_told_by_the_next_run() {
    let tree = with_systemd();
    tree.write("/etc/ssh/sshd_config", INCLUDE);
    tree.program("/usr/sbin/sshd", "exit 0");
    tree.program("/usr/bin/fail2ban-server", "");
    tree.write("/db/ssh.service", RUNS);
    tree.write("/db/fail2ban.service", RUNS);
    let mut role = role();
    role.fail2ban = true;
    let script = refuse(&tree, "reload");
    assert_eq!(tree.apply(&role).status, ApplyStatus::Failed);
    assert!(tree.at(OURS).exists() && tree.at("/etc/fail2ban/jail.d/orch.local").exists());
    let seen = tree.inspect(&role);
    let drift: Vec<&str> = seen.drift().map(|one| one.kind.as_str()).collect();
    assert_eq!(drift, ["sshd", "fail2ban"], "{seen:?}");

    tree.program("/usr/bin/systemctl", &script);
    tree.write("/db/calls", "");
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let told = calls(&tree);
    for unit in ["ssh.service", "fail2ban.service"] {
        assert!(told.contains(&format!("reload -- {unit}")), "{told:?}");
    }
    assert!(!tree.apply(&role).changed());
}

#[test]
fn fail2ban_that_was_not_switched_off_with_its_jail_is_switched_off_by_the_next_run() {
    let tree = with_systemd();
    tree.program("/usr/bin/fail2ban-server", "");
    tree.write("/db/fail2ban.service", RUNS);
    let mut role = role();
    role.fail2ban = true;
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
    role.fail2ban = false;
    let script = refuse(&tree, "disable");
    assert_eq!(tree.apply(&role).status, ApplyStatus::Failed);
    tree.program("/usr/bin/systemctl", &script);
    assert!(of(&tree.apply(&role).resources, "fail2ban", "sshd").changed);
    assert_eq!(tree.read("/db/fail2ban.service"), RESTS);
    assert!(!tree.apply(&role).changed());
}

#[test]
fn a_node_without_an_ssh_server_skips_its_settings() {
    let bare = Tree::new();
    let shared = with_sshd(INCLUDE, "exit 0");
    shared.write(SHARES_PROGRAMS, "");
    for tree in [&bare, &shared] {
        let report = tree.apply(&role());
        assert_eq!(of(&report.resources, "sshd", "port 22").skipped.as_deref(), Some("no SSH server here"));
    }
    shared.write("/run/orch/sshd-wanted", "");
    assert!(of(&shared.apply(&role()).resources, "sshd", "port 22").changed);
}

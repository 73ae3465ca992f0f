//! A configuration that means harm, or a node on which somebody has laid traps: what is asked for is done exactly, or
//! refused in words.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown};

use common::{KEY, Tree, bytes, file, is_root, json_of, of, report, role, user};
use orch_model::config::Role;
use orch_model::{ApplyStatus, Digest};
use serde_json::{Value as Json, json};

/// Applies one file and expects that it is refused with these words, and everything else is left as it was.
fn is_refused(tree: &Tree, path: &str, words: &str) {
    let mut role = role();
    role.files = vec![file(path, "planted"), file("/etc/motd", "hello")];
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Failed);
    let detail = of(&report.resources, "file", path).detail.clone().unwrap();
    assert!(detail.contains(words), "{detail}");
    assert_eq!(tree.read("/etc/motd"), "hello", "what is independent is done");
    let seen = tree.inspect(&role);
    assert!(of(&seen.resources, "file", path).detail.as_ref().unwrap().contains(words), "{seen:?}");
}

fn is_written(tree: &Tree, path: &str, content: &str) {
    let mut role = role();
    role.files = vec![file(path, content)];
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    assert!(of(&report.resources, "file", path).changed);
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
    for target in ["/etc/shadow", "../etc/shadow", "/nowhere", "/etc"] {
        let tree = Tree::new();
        let shadow = tree.read("/etc/shadow");
        tree.link("/opt/file", target);
        is_written(&tree, "/opt/file", "mine");
        assert_eq!(tree.read("/opt/file"), "mine", "{target}");
        assert!(!tree.at("/opt/file").is_symlink());
        assert_eq!(tree.read("/etc/shadow"), shadow);
    }
}

#[test]
fn a_link_above_a_file_is_followed_where_only_root_could_have_put_it() {
    let tree = Tree::new();
    tree.folder("/run");
    tree.link("/var/run", "../run");
    is_written(&tree, "/var/run/a/b", "mine");
    assert_eq!(tree.read("/run/a/b"), "mine");
}

#[test]
fn a_link_above_a_file_is_refused_where_others_could_have_put_it() {
    let tree = Tree::new();
    tree.folder("/tmp");
    fs::set_permissions(tree.at("/tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    tree.link("/tmp/a", "/etc");
    is_refused(&tree, "/tmp/a/cron", "somebody other than root");
    assert!(!tree.at("/etc/cron").exists());
}

#[test]
fn a_link_of_somebody_else_is_refused_also_in_a_folder_of_roots() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let tree = Tree::new();
    tree.link("/opt/a", "/etc");
    lchown(tree.at("/opt/a"), Some(1234), Some(1234)).unwrap();
    is_refused(&tree, "/opt/a/cron", "somebody other than root");
    assert!(!tree.at("/etc/cron").exists());
}

#[test]
fn a_link_never_leads_out_of_the_node() {
    let outside = tempfile::tempdir().unwrap();
    let tree = Tree::new();
    tree.link("/opt/up", "../../../../../../../../../..");
    tree.link("/opt/out", outside.path());
    is_written(&tree, "/opt/up/escaped", "mine");
    assert_eq!(tree.read("/escaped"), "mine");
    is_written(&tree, "/opt/out/escaped", "mine");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn what_is_asked_of_a_tree_is_never_answered_by_this_machine() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("Berlin"), "TZif").unwrap();
    let tree = Tree::new();
    tree.link("/usr/share/zoneinfo/Europe", outside.path());
    tree.link("/usr/share/zoneinfo/Here", outside.path().join("Berlin"));
    for zone in ["Europe/Berlin", "Here"] {
        let mut role = role();
        role.timezone = zone.parse().unwrap();
        assert!(tree.apply(&role).error.unwrap().contains("is not installed"), "{zone}");
    }
    // The tables of accounts lie where the link leads within the tree, and so does their lock.
    let tree = Tree::new();
    let etc = outside.path().join("etc");
    fs::create_dir_all(&etc).unwrap();
    fs::create_dir_all(tree.at(outside.path().parent().unwrap().to_str().unwrap())).unwrap();
    fs::create_dir_all(tree.at(outside.path().to_str().unwrap())).unwrap();
    fs::rename(tree.at("/etc"), tree.at(etc.to_str().unwrap())).unwrap();
    tree.link("/etc", &etc);
    let mut role = role();
    role.users = vec![user("ops")];
    tree.apply(&role);
    assert_eq!(fs::read_dir(&etc).unwrap().count(), 0);
    assert!(tree.at(etc.to_str().unwrap()).join(".pwd.lock").exists());
}

#[test]
fn links_in_a_circle_are_refused() {
    let tree = Tree::new();
    tree.link("/opt/a", "b");
    tree.link("/opt/b", "a");
    is_refused(&tree, "/opt/a/x", "too many links");
}

#[test]
fn what_is_not_a_file_is_left_alone() {
    let tree = Tree::new();
    tree.write("/opt/folder/inner", "kept");
    is_refused(&tree, "/opt/folder", "a folder is in its place");
    assert_eq!(tree.read("/opt/folder/inner"), "kept");
    tree.write("/opt/file", "kept");
    is_refused(&tree, "/opt/file/below", "it is not a folder");
    assert_eq!(tree.read("/opt/file"), "kept");
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.at("/opt/pipe"), rustix::fs::Mode::RWXU).unwrap();
    is_refused(&tree, "/opt/pipe", "not a file is in its place");
}

#[test]
fn places_that_are_the_kernels_or_orchs_own_are_refused_under_any_name() {
    for (path, words) in [
        ("/proc/sys/kernel/core_pattern", "the kernel"),
        ("/sys/x", "the kernel"),
        ("/dev/x", "the kernel"),
        ("/var/lib/orch/complete.json", "orch's own"),
        ("/run/orch/shares-programs", "orch's own"),
        ("/etc/passwd", "access.users"),
        ("/etc/shadow", "access.users"),
        ("/opt/by-link/new/x", "orch's own"),
        ("/opt/by-link/x", "orch's own"),
        ("/opt/to-proc/x", "the kernel"),
        ("/opt/to-etc/passwd", "access.users"),
        ("/etc/sudoers.d/orch-ops", "access.users"),
        ("/opt/to-etc/sudoers.d/orch-anybody", "access.users"),
    ] {
        let tree = Tree::new();
        tree.folder("/proc");
        tree.folder("/var/lib/orch");
        tree.link("/opt/by-link", "/var/lib/orch");
        tree.link("/opt/to-proc", "/proc");
        tree.link("/opt/to-etc", "/etc");
        let passwd = tree.read("/etc/passwd");
        let mut role = role();
        role.files = vec![file(path, "planted")];
        let report = tree.apply(&role);
        let detail = of(&report.resources, "file", path).detail.clone().unwrap();
        assert!(detail.contains(words), "{path}: {detail}");
        let seen = tree.inspect(&role);
        assert!(
            of(&seen.resources, "file", path).detail.as_ref().unwrap().contains(words),
            "{path}: {seen:?}"
        );
        assert_eq!(tree.read("/etc/passwd"), passwd);
        assert!(!tree.at("/var/lib/orch/new").exists());
    }
}

#[test]
fn two_files_at_one_place_are_both_refused() {
    let tree = Tree::new();
    let mut role = role();
    role.files = vec![file("/opt/x", "one"), file("/opt/x", "two")];
    let report = tree.apply(&role);
    assert!(report.error.unwrap().contains("two files there"));
    assert!(!tree.at("/opt/x").exists());
    // Also where the two are called differently, and where what is between is yet to be made.
    tree.folder("/run");
    tree.link("/var/run", "/run");
    for name in ["x", "deep/x"] {
        role.files = vec![file(&format!("/var/run/{name}"), "one"), file(&format!("/run/{name}"), "two")];
        let report = tree.apply(&role);
        assert_eq!(report.error.unwrap().matches("two files there").count(), 2);
        assert!(!tree.at("/run").join(name).exists());
    }
}

#[test]
fn a_file_in_the_place_of_a_users_keys_is_refused_by_any_name() {
    let tree = Tree::new();
    tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nold:x:1500:1500::/srv/old:/bin/sh\n");
    tree.link("/opt/homes", "/home");
    let mut role = role();
    role.users = vec![user("root"), user("new"), user("old")];
    for path in [
        "/root/.ssh/authorized_keys",
        "/home/new/.ssh/authorized_keys",
        "/opt/homes/new/.ssh/authorized_keys",
        "/srv/old/.ssh/authorized_keys",
    ] {
        role.files = vec![file(path, "planted")];
        for _ in 0..2 {
            let why = of(&tree.apply(&role).resources, "file", path).detail.clone().unwrap();
            assert!(why.contains("`access.users`"), "{path}: {why}");
        }
    }
    role.users = vec![user("new")];
    role.files = vec![file("/srv/old/.ssh/authorized_keys", "nobody else writes it")];
    role.files[0].owner = "old".parse().unwrap();
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
}

#[test]
fn an_owner_that_is_not_there_is_told_before_anything_is_written() {
    let tree = Tree::new();
    let mut role = role();
    role.files = vec![file("/opt/deep/x", "x")];
    role.files[0].owner = "ghost".parse().unwrap();
    let report = tree.apply(&role);
    assert!(report.error.unwrap().contains("no account `ghost`"));
    assert!(!tree.at("/opt").exists());
}

#[test]
fn no_text_is_ever_run() {
    let tree = Tree::new();
    let nasty = "$(touch /tmp/orch-pwned) `id` ; rm -rf / | & \" ' \\ %s {} * ~ é";
    let mut role = role();
    for path in ["/opt/a b", "/opt/$(id)/`x`", "/opt/'quoted\"", "/opt/-rf", "/opt/a;b|c&d", "/opt/*?[x]"] {
        role.files.push(file(path, nasty));
    }
    role.users = vec![user("ops")];
    role.users[0].ssh_keys = vec![format!("{} {nasty}", KEY.rsplit_once(' ').unwrap().0).parse().unwrap()];
    let report = tree.apply(&role);
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    for file in &role.files {
        assert_eq!(tree.read(file.path.as_str()), nasty);
    }
    assert!(tree.read("/home/ops/.ssh/authorized_keys").contains(nasty));
    assert!(!std::path::Path::new("/tmp/orch-pwned").exists());
    assert!(!tree.apply(&role).changed());
}

/// A program that writes down each of its words on a line of its own, and fails.
fn recorder(tree: &Tree, path: &str) {
    let log = tree.at("/argv").display().to_string();
    tree.program(path, &format!("for word; do printf '%s\\n' \"$word\" >> '{log}'; done; exit 1"));
}

#[test]
fn every_word_reaches_a_program_as_one_word() {
    let tree = Tree::new();
    for program in ["apt-get", "dpkg-query", "visudo", "sudo", "sshd", "systemctl"] {
        recorder(&tree, &format!("/usr/bin/{program}"));
    }
    tree.folder("/run/systemd/system");
    tree.write("/etc/ssh/sshd_config", "");
    let mut role = role();
    role.packages =
        ["g++", "libc6:amd64", "vim=2:9.0~rc1-1", "a@b/c"].map(|name| name.parse().unwrap()).into();
    role.services.enable = vec!["getty@tty1.service".parse().unwrap()];
    role.services.disable = vec!["a:b_c-d.mount".parse().unwrap()];
    role.users = vec![user("_a-b")];
    role.users[0].sudo = true;
    tree.apply(&role);
    let argv = tree.read("/argv");
    let words: Vec<&str> = argv.lines().collect();
    for wanted in ["g++", "libc6:amd64", "vim=2:9.0~rc1-1", "a@b/c", "getty@tty1.service", "a:b_c-d.mount"] {
        let places = words.iter().enumerate().filter(|(_, word)| **word == wanted);
        assert!(places.clone().count() > 0, "{wanted} arrives whole: {words:?}");
        for (place, _) in places {
            let before = words[..place].iter().rposition(|word| *word == "--").expect("after the options");
            assert!(
                words[before..place].iter().all(|word| *word == "--" || !word.starts_with('-')),
                "{words:?}"
            );
        }
    }
    let drafts = words.windows(2).filter(|pair| pair[0] == "-f").map(|pair| pair[1]);
    let drafts: Vec<&str> = drafts.collect();
    assert_eq!(drafts.len(), 2, "visudo and sshd are shown one file each: {words:?}");
    assert!(drafts.iter().all(|draft| draft.starts_with(tree.at("/etc").to_str().unwrap())), "{drafts:?}");
}

#[test]
fn a_time_zone_cannot_name_any_other_file() {
    let tree = Tree::new();
    tree.folder("/usr/share/zoneinfo");
    let mut role = role();
    role.timezone = "Europe/Atlantis".parse().unwrap();
    let report = tree.apply(&role);
    assert!(report.error.unwrap().contains("the zone `Europe/Atlantis` is not installed"));
    assert!(!tree.at("/etc/localtime").is_symlink());
}

#[test]
fn large_content_arrives_whole() {
    let tree = Tree::new();
    let content = "0123456789abcdef".repeat(256 << 10);
    is_written(&tree, "/opt/large", &content);
    assert_eq!(tree.read("/opt/large"), content);
}

/// A configuration with a value in it that no type of orch can hold, and yet with the digest that is its own.
fn forged(honest: &str, evil: &Json) -> Vec<u8> {
    let role = serde_json::to_string(&role()).unwrap();
    let key = honest.split(':').next().unwrap();
    assert!(role.contains(honest), "{honest} is not in {role}");
    let role = role.replace(honest, &format!("{key}:{evil}"));
    let (node, spec, hostname) = ("test.web@here", "base", "web");
    let digest = Digest::of(&(node, spec, hostname, Digest::of_bytes(role.as_bytes())));
    let head = json!({ "node": node, "spec": spec, "hostname": hostname, "digest": digest }).to_string();
    format!("{},{}", head.strip_suffix('}').unwrap(), &role[1..]).into_bytes()
}

/// What is not a configuration, and why.
fn not_configurations() -> Vec<(&'static str, Vec<u8>)> {
    let at = |path: &str| {
        let file = json!([{ "path": path, "content": "", "mode": "0644", "owner": "root" }]);
        forged("\"files\":[]", &file)
    };
    let with_user = |name: &str, key: String| {
        forged("\"users\":[]", &json!([{ "name": name, "sudo": true, "ssh_keys": [key] }]))
    };
    let mut tampered = json_of(&role());
    tampered["hostname"] = json!("other");
    vec![
        ("a path that climbs", at("/etc/../x")),
        ("a path that starts nowhere", at("etc/x")),
        ("a line break in a path", at("/etc/a\nb")),
        ("a line break in a key", with_user("ops", format!("{KEY}\nssh-rsa AAAAB3NzaC1yc2EAAAA"))),
        ("options in a key", with_user("ops", format!("command=\"id\" {KEY}"))),
        ("a user with a colon", with_user("a:0:0", KEY.into())),
        ("a package that is an option", forged("\"packages\":[]", &json!(["--reinstall"]))),
        ("a zone that climbs", forged("\"timezone\":\"UTC\"", &json!("../../etc/shadow"))),
        ("another digest", tampered.to_string().into_bytes()),
        ("no JSON", b"{".to_vec()),
        ("nothing", Vec::new()),
        ("more than anybody means", vec![b' '; (16 << 20) + 1]),
    ]
}

#[test]
fn what_is_no_configuration_is_refused_before_anything_is_touched() {
    let honest = forged("\"packages\":[]", &json!([]));
    assert!(serde_json::from_slice::<orch_model::Config>(&honest).is_ok(), "the forger can do it right too");
    for (what, input) in not_configurations() {
        let tree = Tree::new();
        let before = tree.snapshot();
        for order in [vec!["push"], vec!["apply", "-"], vec!["inspect"], vec!["health"]] {
            let input =
                if order[0] == "push" { [b"{\"config\":", &input[..], b"}"].concat() } else { input.clone() };
            let output = tree.run(&order, &input);
            assert_eq!(output.status.code(), Some(3), "{what}: {output:?}");
            assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{what}");
        }
        assert_eq!(tree.snapshot(), before, "{what}");
    }
}

/// What a user could do in their own home before keys are written there.
fn trapped_home(lay: impl FnOnce(&Tree)) -> (Tree, Role) {
    let (tree, mut role) = (Tree::new(), role());
    role.users = vec![user("ops")];
    role.users[0].ssh_keys.clear();
    assert_eq!(tree.apply(&role).status, ApplyStatus::Complete);
    lay(&tree);
    if !is_root() {
        // The home is this user's own: what makes it another's is that others can write there.
        for folder in ["/home/ops", "/home/ops/.ssh"].map(|path| tree.at(path)) {
            if folder.is_dir() && !folder.is_symlink() {
                fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
            }
        }
    }
    role.users = vec![user("ops")];
    (tree, role)
}

#[test]
fn keys_are_not_written_through_what_a_user_planted_at_home() {
    let folder_link = trapped_home(|tree| tree.link("/home/ops/.ssh", "/root"));
    let file_link = trapped_home(|tree| tree.link("/home/ops/.ssh/authorized_keys", "/etc/shadow"));
    let dangling = trapped_home(|tree| tree.link("/home/ops/.ssh/authorized_keys", "/etc/cron.d/evil"));
    let file_for_folder = trapped_home(|tree| tree.write("/home/ops/.ssh", "not a folder"));
    let folder_for_file = trapped_home(|tree| tree.folder("/home/ops/.ssh/authorized_keys"));
    let second_name = trapped_home(|tree| {
        tree.folder("/home/ops/.ssh");
        if is_root() {
            chown(tree.at("/home/ops/.ssh"), Some(1000), Some(1000)).unwrap();
        }
        fs::hard_link(tree.at("/etc/shadow"), tree.at("/home/ops/.ssh/authorized_keys")).unwrap();
    });
    for (tree, role) in [folder_link, file_link, dangling, file_for_folder, folder_for_file, second_name] {
        let shadow = tree.read("/etc/shadow");
        let report = tree.apply(&role);
        assert_eq!(report.status, ApplyStatus::Failed);
        assert!(report.error.unwrap().contains("is left alone"));
        assert_eq!(tree.read("/etc/shadow"), shadow);
        assert!(!tree.at("/root/authorized_keys").exists());
        assert!(!tree.at("/etc/cron.d").exists());
    }
}

#[test]
fn a_full_disk_leaves_the_old_file_whole_and_no_draft() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let tree = Tree::new();
    tree.folder("/full");
    let mut role = role();
    role.files = vec![file("/full/x", &"x".repeat(1 << 20))];
    let input = tree.at("/config.json");
    fs::write(&input, bytes(&role)).unwrap();
    // The mount is in a namespace of its own and ends with it.
    let script = "mount -t tmpfs -o size=64k none \"$1/full\" && printf old > \"$1/full/x\" || exit 9
        \"$2\" --root \"$1\" apply \"$1/config.json\"
        cat \"$1/full/x\" >&2; ls -A \"$1/full\" >&2";
    let output = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(tree.at("/"))
        .arg(env!("CARGO_BIN_EXE_orch-node"))
        .output()
        .unwrap();
    let report = report(&output);
    assert!(report.error.unwrap().contains("No space left on device"));
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("oldx\n"), "{output:?}");
}

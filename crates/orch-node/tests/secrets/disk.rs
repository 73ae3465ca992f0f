//! A node whose disk is one: the value of a secret never comes to lie on it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use orch_model::ApplyStatus;

use crate::common::secrets::{MARKER, Site, secret};
use crate::common::{Tree, is_root, of};

/// A node on a disk, with `/run` in memory, as it is for nobody but the program: to this process there is the disk alone.
struct Machine {
    tree: Tree,
    mounts: Child,
}

impl Machine {
    /// Nothing where this user may not do that, or there is no disk.
    fn start() -> Option<Self> {
        let Some(tree) = Tree::on_disk().filter(|_| is_root()) else {
            println!("skipped: needs root, and a folder for temporary files that is on a disk");
            return None;
        };
        tree.folder("/run");
        let mut mounts = Command::new("unshare")
            .args([
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs none \"$1\" && echo ready && exec sleep 1000",
                "sh",
            ])
            .arg(tree.at("/run"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(mounts.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        tree.see_mounts_of(mounts.id());
        Some(Self { tree, mounts })
    }

    /// What a program inside says of a path.
    fn says(&self, program: &[&str], path: &str) -> String {
        let pid = self.mounts.id().to_string();
        let output = Command::new("nsenter")
            .args(["--mount", "--target", &pid])
            .args(program)
            .arg(self.tree.at(path))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn value(&self, name: &str) -> String {
        self.says(&["cat"], &format!("/run/orch/secrets/{name}"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.mounts.kill();
        let _ = self.mounts.wait();
    }
}

fn site() -> Site {
    let mut site = Site::of(vec![secret("tls.key", "/etc/app/key"), secret("db", "/run/secrets/db")]);
    site.role.secrets[0].mode = "0440".parse().unwrap();
    site.role.secrets[0].owner = "nobody".parse().unwrap();
    site
}

#[test]
fn a_path_on_a_disk_becomes_a_link_into_memory_and_no_value_is_on_the_disk() {
    let Some(machine) = Machine::start() else { return };
    let tree = &machine.tree;
    let report = tree.give(&site());
    assert_eq!(report.status, ApplyStatus::Complete, "{report:?}");
    let target = std::fs::read_link(tree.at("/etc/app/key")).unwrap();
    assert_eq!(target, std::path::Path::new("/run/orch/secrets/tls.key"));
    assert_eq!(machine.value("tls.key"), format!("{MARKER} of tls.key"));
    assert_eq!(machine.says(&["cat"], "/run/secrets/db"), format!("{MARKER} of db"));
    assert_eq!(machine.says(&["stat", "-c", "%a %u"], "/run/orch/secrets/tls.key"), "440 65534\n");
    assert_eq!(machine.says(&["stat", "-c", "%a %u"], "/run/orch/secrets"), "711 0\n");
    assert_eq!(machine.says(&["ls", "-A"], "/run/orch/secrets"), "tls.key\n");
    assert_eq!(tree.files_with(MARKER), Vec::<String>::new());
    // The control: it would be found.
    tree.write("/var/lib/orch/planted", MARKER);
    assert_eq!(tree.files_with(MARKER), ["/var/lib/orch/planted"]);
    assert!(!tree.give(&site()).changed());
}

#[test]
fn a_link_that_was_replaced_is_healed_and_one_that_is_removed_is_gone_with_its_value() {
    let Some(machine) = Machine::start() else { return };
    let tree = &machine.tree;
    tree.give(&site());
    std::fs::remove_file(tree.at("/etc/app/key")).unwrap();
    tree.write("/etc/app/key", "of somebody");
    let report = tree.give(&site());
    let detail = of(&report.resources, "secret", "tls.key").detail.clone();
    assert_eq!(detail.as_deref(), Some("it is a file, and not a link into memory"));
    assert!(tree.at("/etc/app/key").is_symlink());
    let mut changed = site();
    changed.set("tls.key", "another");
    tree.give(&changed);
    assert_eq!(machine.value("tls.key"), "another");
    assert_eq!(tree.give(&Site::of(Vec::new())).status, ApplyStatus::Complete);
    assert!(!tree.at("/etc/app/key").is_symlink());
    assert_eq!(machine.says(&["ls", "-A"], "/run/orch/secrets"), "");
    assert_eq!(machine.says(&["ls", "-A"], "/run/secrets"), "");
}

#[test]
fn what_is_in_memory_is_there_again_after_a_boot() {
    let Some(machine) = Machine::start() else { return };
    let tree = &machine.tree;
    let nothing = tree.run(&["unseal"], &[]);
    assert!(nothing.status.success() && nothing.stderr.is_empty(), "{nothing:?}");
    tree.give(&site());
    machine.says(&["rm", "-r"], "/run/secrets");
    machine.says(&["rm", "-r"], "/run/orch");
    assert_eq!(machine.value("tls.key"), "");
    let output = tree.run(&["unseal"], &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0), "{output:?}");
    assert_eq!(machine.value("tls.key"), format!("{MARKER} of tls.key"));
    assert_eq!(machine.says(&["cat"], "/run/secrets/db"), format!("{MARKER} of db"));
    assert!(!tree.give(&site()).changed(), "all is as the push had made it");
    assert_eq!(tree.files_with(MARKER), Vec::<String>::new());
}

#[test]
fn where_nothing_is_in_memory_a_secret_is_refused_and_nothing_is_written() {
    let Some(tree) = Tree::on_disk() else {
        println!("skipped: the folder for temporary files is in memory");
        return;
    };
    for path in ["/run/secrets/db", "/etc/app/key"] {
        let report = tree.give(&Site::of(vec![secret("db", path)]));
        let why = of(&report.resources, "secret", "db").detail.clone().unwrap();
        assert!(why.contains("a secret must not come to lie on a disk"), "{why}");
        assert_eq!(tree.files_with(MARKER), Vec::<String>::new());
        assert!(!tree.at("/run").exists() && !tree.at("/etc/app").exists());
    }
}

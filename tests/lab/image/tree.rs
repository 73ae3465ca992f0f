//! The files of an image arrive on its machines as they are.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{DebianLab, MACHINE, WEB, host};
use crate::common::{debian, debian_archive, spec};

#[test]
fn an_archive_makes_the_same_machine_as_its_folder() {
    let nodes =
        ["folder", "archive"].map(|image| format!("name: {image}, type: vm, image: {image}, preset: tiny"));
    let Some(lab) = DebianLab::with_nodes(&[&nodes[0], &nodes[1]]) else { return };
    let root = debian().unwrap();
    lab.write("hosts/father.yaml", &host(&[("folder", root), ("archive", &debian_archive(root))]));
    lab.all("create").ends_with(0);
    let [folder, archive] = ["lab-folder", "lab-archive"].map(|machine| {
        lab.assert_all_is_up(machine);
        // What may be done with each file, whose it is, where a link leads.
        let found = lab.says(machine, &["find", "/usr", "/etc", "-xdev", "-printf", "%M %U:%G %l %p\n"]);
        found.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    });
    assert!(folder.len() > 1000, "there are {} files", folder.len());
    assert_eq!(folder.symmetric_difference(&archive).collect::<Vec<_>>(), Vec::<&String>::new());
    for wanted in
        ["-rwsr-xr-x 0:0  /usr/bin/sudo", "-rw-r----- 0:42  /etc/shadow", "-rw-r--r-- 0:0  /etc/hosts"]
    {
        assert!(folder.contains(wanted), "{wanted}");
    }
    lab.destroy();
}

#[test]
fn an_archive_without_an_ssh_server_is_entered_directly_too() {
    let Some(lab) = DebianLab::with_nodes(&[WEB]) else { return };
    let archive = lab.site.join("bare.tar");
    let mut tar = Command::new("tar");
    tar.args(["--exclude=./usr/sbin/sshd", "--exclude=ssh*.service", "--exclude=./usr/bin/sudo"]);
    tar.arg("-cf").arg(&archive).args(["--numeric-owner", "-C"]).arg(debian().unwrap()).arg(".");
    assert!(tar.status().unwrap().success());
    lab.write("hosts/father.yaml", &host(&[("debian", &archive)]));
    lab.write("specs/plain.yaml", &spec("as wanted").replace("sudo: true", "sudo: false"));
    lab.all("create").ends_with(0).every_node_is("changed");
    assert_eq!(lab.orch("exec -M lab -H father -- id -un").ends_with(0).stdout.lines().last(), Some("root"));
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.destroy();
}

#[test]
fn an_image_without_an_ssh_server_is_entered_directly() {
    let Some(lab) = DebianLab::with_nodes(&[WEB]) else { return };
    let folder = lab.site.join("bare");
    fs::create_dir(&folder).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xpf").arg(debian_archive(debian().unwrap())).arg("-C").arg(&folder);
    // Neither the server nor what starts it.
    tar.args(["--exclude=./usr/sbin/sshd", "--exclude=ssh*.service", "--exclude=./usr/bin/sudo"]);
    assert!(tar.status().unwrap().success());
    lab.write("hosts/father.yaml", &host(&[("debian", &folder)]));
    // Whoever is promised sudo on a machine without it is told.
    lab.all("create").ends_with(1).says("sudo ops: sudo is not installed");
    assert_eq!(lab.says(MACHINE, &["cat", "/etc/motd"]), "as wanted");
    lab.write("specs/plain.yaml", &spec("as wanted").replace("sudo: true", "sudo: false"));
    lab.all("create").ends_with(0);
    lab.assert_all_is_up(MACHINE);
    assert_eq!(lab.orch("exec -M lab -H father -- id -un").ends_with(0).stdout.lines().last(), Some("root"));
    lab.all("create").ends_with(0).every_node_is("unchanged");
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.destroy();
}

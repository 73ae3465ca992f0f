//! Packages, from a repository of the test's own that is served over HTTP on the node's loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::{DebianLab, MACHINE};
use crate::common::{Lab, Need, ORCH, Running, TIMEOUTS, kill, lacks, wait_until};

/// Each package and what it depends on.
const PACKAGES: [(&str, &str); 3] =
    [("orch-greeting", ""), ("orch-hello", "orch-greeting"), ("orch-slow", "")];

/// What `orch-slow` does once it is unpacked: it says that it has begun, and takes for ever until it is told not to.
const SLOW: &str = "#!/bin/sh\ntouch /var/lib/slow-began; test -e /var/lib/slow-enough || exec sleep 600\n";

fn spec(packages: &str) -> String {
    format!("schema_version: 1\nplatform: {{ packages: [{packages}] }}\n")
}

#[test]
fn packages_are_installed_with_what_they_need_and_once() {
    let Some(lab) = with_repository() else { return };
    lab.write("specs/plain.yaml", &spec("orch-hello"));
    lab.all("config").ends_with(0).every_node_is("changed");
    assert_eq!(
        lab.says(MACHINE, &["cat", "/usr/share/orch-hello", "/usr/share/orch-greeting"]),
        "orch-hello\norch-greeting"
    );
    let stamp = |path: &str| fs::metadata(lab.root(MACHINE).join(path)).unwrap().modified().unwrap();
    let before = (stamp("var/lib/dpkg/status"), stamp("var/log/apt/history.log"));
    lab.all("config").ends_with(0).every_node_is("unchanged");
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    assert_eq!((stamp("var/lib/dpkg/status"), stamp("var/log/apt/history.log")), before);
    lab.says(MACHINE, &["apt-get", "-y", "remove", "orch-greeting"]);
    lab.orch("status -M lab -H father").ends_with(2).says("package orch-hello");
    lab.all("config").ends_with(0).every_node_is("changed");
    lab.destroy();
}

#[test]
fn a_package_that_does_not_exist_fails_by_its_name_and_the_others_are_installed() {
    let Some(lab) = with_repository() else { return };
    lab.write("specs/plain.yaml", &spec("orch-hello, orch-nowhere"));
    lab.orch("config -M lab -H father")
        .ends_with(1)
        .says("package orch-nowhere")
        .says("Unable to locate package");
    assert!(lab.root(MACHINE).join("usr/share/orch-hello").exists());
    lab.destroy();
}

#[test]
fn a_package_run_that_is_cut_in_the_middle_is_healed_by_running_again() {
    let Some(lab) = with_repository() else { return };
    lab.write("specs/plain.yaml", &spec("orch-slow"));
    let words = "config -M lab -H father";
    let config = Running::start(lab.command(words).env("ORCH_NODE", ORCH), words);
    wait_until("the package is being set up", || lab.root(MACHINE).join("var/lib/slow-began").exists());
    lab.put(MACHINE, "var/lib/slow-enough", "");
    kill(lab.init(MACHINE).unwrap(), Signal::KILL);
    lab.wait_until_off(MACHINE);
    drop(config);
    lab.all("create").ends_with(0).every_node_is("changed");
    let state = ["dpkg-query", "-W", "-f", "${db:Status-Status}", "orch-slow"];
    assert_eq!(lab.says(MACHINE, &state), "installed");
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.destroy();
}

#[test]
fn a_name_is_never_taken_for_a_pattern() {
    let Some(lab) = with_repository() else { return };
    // As a pattern it would be any of the packages that there are.
    lab.write("specs/plain.yaml", &spec("orch.hello"));
    lab.orch("config -M lab -H father").ends_with(1).says("Unable to locate package orch.hello");
    assert!(!lab.root(MACHINE).join("usr/share/orch-hello").exists());
    lab.destroy();
}

#[test]
fn a_name_that_is_no_package_is_refused_before_anything_is_touched() {
    if lacks(&[]) {
        return;
    }
    let lab = Lab::with_nodes(TIMEOUTS, &["name: web, type: vm, image: any, preset: tiny, spec: plain"]);
    for name in [
        "--purge",
        "$(reboot)",
        "a;reboot",
        "a b",
        "-oDPkg::Pre-Invoke=reboot",
        "../a.deb",
        "/tmp/a.deb",
        "sudo-",
        "",
    ] {
        lab.write("specs/plain.yaml", &spec(&format!("{name:?}")));
        lab.orch("validate").ends_with(1).says("specs/plain.yaml:2:");
        assert_ne!(lab.orch("create -M lab -H father").code, 0);
        assert!(lab.machines().is_empty(), "{name}");
    }
}

/// A running node whose apt knows the repository alone.
fn with_repository() -> Option<DebianLab> {
    if lacks(&[Need::Program("dpkg-deb")]) {
        return None;
    }
    let lab = DebianLab::with_spec("schema_version: 1\n")?;
    lab.all("create").ends_with(0);
    let index: String = PACKAGES.iter().map(|(name, needs)| lab.publish(name, needs)).collect();
    lab.put(MACHINE, "srv/apt/Packages", index);
    lab.put(MACHINE, "etc/apt/sources.list", "deb [trusted=yes] http://127.0.0.1:8000 ./\n");
    let server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "/srv/apt", "8000"];
    lab.says(MACHINE, &[&["systemd-run", "--unit=repository"], &server[..]].concat());
    // Port 8000 of the loopback, in the kernel's words.
    wait_until("the repository is served", || {
        lab.says(MACHINE, &["cat", "/proc/net/tcp"]).contains("0100007F:1F40")
    });
    Some(lab)
}

impl DebianLab {
    /// Builds a package that holds its own name, puts it into the repository and gives its entry of the index.
    fn publish(&self, name: &str, needs: &str) -> String {
        let folder = self.site.join("packages").join(name);
        let needs = if needs.is_empty() { String::new() } else { format!("Depends: {needs}\n") };
        let about = format!(
            "Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: a test\n{needs}Description: {name}\n"
        );
        write(&folder.join("DEBIAN/control"), &about);
        write(&folder.join(format!("usr/share/{name}")), &format!("{name}\n"));
        if name == "orch-slow" {
            let script = folder.join("DEBIAN/postinst");
            write(&script, SLOW);
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let file = format!("{name}.deb");
        let package = self.site.join(&file);
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "-b"]).arg(&folder).arg(&package);
        assert!(build.output().unwrap().status.success());
        self.put(MACHINE, &format!("srv/apt/{file}"), fs::read(&package).unwrap());
        let digest = self.says(MACHINE, &["sha256sum", &format!("/srv/apt/{file}")]);
        let digest = digest.split_whitespace().next().unwrap();
        let size = fs::metadata(&package).unwrap().len();
        format!("{about}Filename: ./{file}\nSize: {size}\nSHA256: {digest}\n\n")
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

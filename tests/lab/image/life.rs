//! How such a machine comes up, goes down, and comes up again.

use std::fs;

use rustix::process::Signal;
use serde_json::Value as Json;

use super::{DebianLab, MACHINE};
use crate::common::{is_alive, kill};

const PLAIN: &str = "
schema_version: 1
access: { users: [{ name: alice, sudo: true, ssh_keys: [] }] }
health: [{ tcp: 22 }, { unit: ssh.service }]
";

#[test]
fn an_image_boots_its_own_systemd_and_is_configured_over_ssh() {
    let Some(lab) = DebianLab::with_spec(PLAIN) else { return };
    lab.all("create").ends_with(0).every_node_is("changed");
    lab.assert_all_is_up(MACHINE);
    let init = lab.init(MACHINE).unwrap();
    assert_eq!(fs::read_to_string(format!("/proc/{init}/comm")).unwrap().trim(), "systemd");
    assert_eq!(lab.says(MACHINE, &["hostname"]), "web");
    assert_eq!(lab.orch("exec -M lab -H father -- id -un").ends_with(0).stdout.lines().last(), Some("ops"));
    // Becoming root asks nobody for a password, and goes through the system's own rules for accounts.
    assert_eq!(lab.says(MACHINE, &["runuser", "-u", "alice", "--", "sudo", "-n", "id", "-u"]), "0");
    let sessions = lab.says(MACHINE, &["journalctl", "--no-pager", "-t", "sshd"]);
    assert!(sessions.contains("pam_unix(sshd:session): session opened for user ops"), "{sessions}");
    lab.all("config").ends_with(0).every_node_is("unchanged");
    lab.all("create").ends_with(0).every_node_is("unchanged");
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    assert_eq!(lab.init(MACHINE), Some(init));
    lab.destroy();
    assert!(!is_alive(init));
}

#[test]
fn what_an_image_says_about_itself_is_not_said_by_its_machines() {
    let twins = ["a", "b"].map(|name| format!("name: {name}, type: vm, image: debian, preset: tiny"));
    let Some(lab) = DebianLab::with_nodes(&[&twins[0], &twins[1]]) else { return };
    lab.all("create").ends_with(0);
    for name in ["a", "b"] {
        let machine = format!("lab-{name}");
        let record: Json =
            serde_json::from_slice(&fs::read(lab.machine(&machine).join("machine.json")).unwrap()).unwrap();
        let uuid = record["marks"]["uuid"].as_str().unwrap().replace('-', "");
        lab.assert_all_is_up(&machine);
        assert_eq!(lab.says(&machine, &["hostname"]), name);
        assert_eq!(lab.says(&machine, &["cat", "/etc/machine-id"]), uuid);
        // The one key that was made before the machine was, and none that came with the image.
        let settings = lab.says(&machine, &["sshd", "-T"]);
        let keys: Vec<&str> = settings.lines().filter(|line| line.starts_with("hostkey ")).collect();
        assert_eq!(keys, ["hostkey /etc/ssh/ssh_host_ed25519_key"]);
        let public = lab.says(&machine, &["ssh-keygen", "-y", "-f", "/etc/ssh/ssh_host_ed25519_key"]);
        assert!(public.starts_with(record["host_key"].as_str().unwrap()), "{public}");
    }
    lab.destroy();
}

/// A service that writes down that it was asked to end, and so ended in order.
const DIARY: &str = "
schema_version: 1
platform: { services: { enable: [diary] } }
files:
  - path: /etc/systemd/system/diary.service
    content: |
      [Service]
      Type=oneshot
      RemainAfterExit=yes
      ExecStart=/bin/true
      ExecStop=/bin/touch /var/lib/ended
      [Install]
      WantedBy=multi-user.target
";

#[test]
fn a_stop_lets_every_service_end_and_a_start_finds_the_disk_as_it_was() {
    let Some(lab) = DebianLab::with_spec(DIARY) else { return };
    lab.all("create").ends_with(0);
    lab.put(MACHINE, "home/kept", "kept");
    let before = lab.init(MACHINE).unwrap();
    // A larger disk is given to a machine that is off: it is stopped for that, and started again.
    lab.write("presets/tiny.yaml", "cores: 1\nmemory: 512\ndisk: 2\n");
    lab.all("create").ends_with(0).every_node_is("changed");
    assert!(!is_alive(before));
    assert_eq!(lab.says(MACHINE, &["cat", "/home/kept"]), "kept");
    assert!(lab.root(MACHINE).join("var/lib/ended").exists(), "the service was not asked to end");
    let size: u64 = lab.says(MACHINE, &["stat", "-f", "-c", "%b", "/"]).parse().unwrap();
    assert!(size * 4096 > 3 << 29, "{size} blocks are no 2 GB");
    lab.assert_all_is_up(MACHINE);
    lab.all("status").ends_with(0);
    lab.destroy();
}

#[test]
fn a_machine_that_went_off_is_seen_as_stopped_and_started_again() {
    let Some(lab) = DebianLab::with_spec(DIARY) else { return };
    lab.all("create").ends_with(0);
    lab.put(MACHINE, "home/kept", "kept");
    let ways: [&dyn Fn(); 3] = [
        &|| drop(lab.says(MACHINE, &["systemctl", "poweroff"])),
        &|| drop(lab.says(MACHINE, &["systemctl", "reboot"])),
        &|| kill(lab.init(MACHINE).unwrap(), Signal::KILL),
    ];
    for go_off in ways {
        lab.says(MACHINE, &["sync"]);
        go_off();
        lab.wait_until_off(MACHINE);
        lab.all("status").ends_with(1).says("stopped");
        lab.all("create").ends_with(0).every_node_is("changed");
        assert_eq!(lab.says(MACHINE, &["cat", "/home/kept"]), "kept");
        lab.all("status").ends_with(0);
    }
    lab.destroy();
}

#[test]
fn a_machine_with_a_systemd_of_its_own_lives_inside_of_another() {
    let outer = "name: outer, type: pve, image: debian, preset: tiny, spec: plain";
    let inner = "name: inner, type: vm, image: debian, preset: tiny, spec: plain, parent: outer";
    let Some(lab) = DebianLab::with_nodes(&[outer, inner]) else { return };
    lab.write("specs/plain.yaml", PLAIN);
    lab.all("create").ends_with(0).every_node_is("changed");
    for name in ["outer", "inner"] {
        lab.assert_all_is_up(&format!("lab-{name}"));
        assert_eq!(lab.says(&format!("lab-{name}"), &["hostname"]), name);
    }
    // The inner one is a process of the outer one's, which can be seen there.
    let seen = lab.says("lab-outer", &["sh", "-c", "cat /proc/[0-9]*/comm"]);
    assert_eq!(seen.lines().filter(|name| *name == "systemd-journal").count(), 2, "{seen}");
    lab.all("create").ends_with(0).every_node_is("unchanged");
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.destroy();
}

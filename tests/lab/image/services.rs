//! What systemd does on a node: services, timers, health, fail2ban, and the SSH server's own settings.

use super::{DebianLab, MACHINE};
use crate::common::{ORCH, Session, wait_until};

const SERVICES: &str = "
schema_version: 1
platform: { services: { enable: [beacon], disable: [idler] } }
files:
  - path: /etc/systemd/system/beacon.service
    content: &sleeper |
      [Service]
      ExecStart=/bin/sleep infinity
      [Install]
      WantedBy=multi-user.target
  - { path: /etc/systemd/system/idler.service, content: *sleeper }
health: [{ unit: beacon.service }]
";

#[test]
fn services_run_or_rest_as_asked_and_what_somebody_changes_is_shown_and_healed() {
    let Some(lab) = DebianLab::with_spec(SERVICES) else { return };
    lab.all("create").ends_with(0);
    let state = |unit: &str| {
        lab.says(MACHINE, &["systemctl", "show", "-P", "ActiveState", "-P", "UnitFileState", unit])
    };
    assert_eq!((state("beacon"), state("idler")), ("active\nenabled".into(), "inactive\ndisabled".into()));
    lab.all("status").ends_with(0);
    lab.says(MACHINE, &["systemctl", "stop", "beacon"]);
    lab.says(MACHINE, &["systemctl", "enable", "--now", "idler"]);
    let told = lab.orch("status -M lab -H father");
    let told = told.says("service beacon").says("it is inactive and enabled").says("service idler");
    assert_ne!(told.code, 0);
    lab.all("config").ends_with(0).every_node_is("changed");
    assert_eq!((state("beacon"), state("idler")), ("active\nenabled".into(), "inactive\ndisabled".into()));
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.all("config").ends_with(0).every_node_is("unchanged");

    // What runs is what the file says, also once that is something else.
    let command = || {
        let pid = lab.says(MACHINE, &["systemctl", "show", "-P", "MainPID", "beacon"]);
        lab.says(MACHINE, &["cat", &format!("/proc/{pid}/cmdline")])
    };
    assert!(command().contains("infinity"), "{}", command());
    lab.write("specs/plain.yaml", &SERVICES.replacen("sleep infinity", "sleep 1000001", 1));
    lab.all("config").ends_with(0).every_node_is("changed");
    assert!(command().contains("1000001"), "{}", command());
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.all("config").ends_with(0).every_node_is("unchanged");
    lab.destroy();
}

#[test]
fn what_is_to_be_done_once_is_healthy_once_it_was() {
    let bare = "schema_version: 1\n";
    let Some(lab) = DebianLab::with_spec(bare) else { return };
    lab.all("create").ends_with(0);
    let unit = "[Service]\nType=oneshot\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
    lab.put(MACHINE, "etc/systemd/system/once.service", unit);
    lab.says(MACHINE, &["systemctl", "enable", "once"]);
    lab.write("specs/plain.yaml", &format!("{bare}health: [{{ unit: once.service }}]\n"));
    lab.orch("status -M lab -H father").says("unit once.service: it is inactive");
    lab.says(MACHINE, &["systemctl", "start", "once"]);
    lab.all("config").ends_with(0);
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.destroy();
}

#[test]
fn a_unit_that_systemd_does_not_know_is_a_failure_that_names_it() {
    let spec = "schema_version: 1\nplatform: { services: { enable: [nowhere] } }\n";
    let Some(lab) = DebianLab::with_spec(spec) else { return };
    lab.orch("create -M lab -H father").ends_with(1).says("systemd knows no unit `nowhere`");
    lab.destroy();
}

#[test]
fn a_unit_that_nobody_wrote_down_can_be_watched_too() {
    let bare = "schema_version: 1\n";
    let Some(lab) = DebianLab::with_spec(bare) else { return };
    lab.all("create").ends_with(0);
    lab.says(MACHINE, &["systemd-run", "--unit=torch", "sleep", "infinity"]);
    lab.says(MACHINE, &["systemd-run", "--unit=pulse", "--on-active=1h", "true"]);
    lab.write(
        "specs/plain.yaml",
        &format!("{bare}health: [{{ unit: torch.service }}, {{ unit: pulse.timer }}]\n"),
    );
    lab.all("config").ends_with(0);
    lab.all("status").ends_with(0);
    lab.says(MACHINE, &["systemctl", "stop", "pulse.timer"]);
    lab.orch("status -M lab -H father")
        .ends_with(1)
        .says("unit pulse.timer")
        .never_says("unit torch.service: ");
    lab.destroy();
}

#[test]
fn fail2ban_watches_the_port_that_ssh_has() {
    let Some(lab) = DebianLab::with_spec("schema_version: 1\n") else { return };
    let posture = |port: u16| format!("ssh: {{ port: {port} }}\nfail2ban: {{ enabled: true }}\n");
    lab.write("postures/dev.yaml", &posture(22));
    lab.all("create").ends_with(0);
    let jail = ["fail2ban-client", "status", "sshd"];
    wait_until("the jail is there", || lab.says(MACHINE, &jail).contains("Total banned"));
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.all("config").ends_with(0).every_node_is("unchanged");
    lab.write("postures/dev.yaml", &posture(2222));
    lab.all("config").ends_with(0).every_node_is("changed");
    assert!(lab.says(MACHINE, &["fail2ban-client", "-d"]).contains("'2222'"));
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.write("postures/dev.yaml", "ssh: { port: 2222 }\n");
    lab.all("config").ends_with(0).every_node_is("changed");
    assert_ne!(lab.says(MACHINE, &["systemctl", "is-active", "fail2ban"]), "active");
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.destroy();
}

#[test]
fn another_port_for_ssh_cuts_no_connection() {
    let Some(lab) = DebianLab::with_spec("schema_version: 1\nhealth: [{ tcp: 22 }]\n") else { return };
    lab.all("create").ends_with(0);
    let is_open = |port| lab.listens(MACHINE, port);
    assert!(is_open(22) && !is_open(2222));
    let mut session = Session::open(lab.command("ssh -M lab -H father web -- cat").env("ORCH_NODE", ORCH));
    session.assert_answers("before");
    lab.write("postures/dev.yaml", "ssh: { port: 2222 }\n");
    lab.write("specs/plain.yaml", "schema_version: 1\nhealth: [{ tcp: 2222 }]\n");
    lab.all("config").ends_with(0).every_node_is("changed");
    session.assert_answers("after");
    session.close();
    lab.orch("exec -M lab -H father -- true").ends_with(0);
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    assert!(!is_open(22) && is_open(2222));
    lab.destroy();
}

#[test]
fn a_servers_file_that_the_configuration_brings_counts_at_once_or_not_at_all() {
    let bare = "schema_version: 1\n";
    let Some(lab) = DebianLab::with_spec(bare) else { return };
    lab.all("create").ends_with(0);
    let path = "/etc/ssh/sshd_config.d/60-mine.conf";
    let bring = |line: &str| {
        lab.write(
            "specs/plain.yaml",
            &format!("{bare}files: [{{ path: {path}, content: \"{line}\\n\" }}]\n"),
        );
    };
    bring("Nonsense yes");
    lab.orch("config -M lab -H father").ends_with(1).says("Nonsense");
    assert!(!lab.root(MACHINE).join(&path[1..]).exists());
    let reloads = || {
        let log = lab.says(MACHINE, &["journalctl", "--no-pager", "-u", "ssh"]);
        log.matches("Received SIGHUP; restarting.").count()
    };
    let before = reloads();
    bring("MaxAuthTries 3");
    lab.all("config").ends_with(0).every_node_is("changed");
    assert!(lab.says(MACHINE, &["sshd", "-T"]).contains("maxauthtries 3"));
    wait_until("the server is told", || reloads() > before);
    lab.all("status").ends_with(0).every_node_is("as-wanted");
    lab.all("config").ends_with(0).every_node_is("unchanged");
    lab.destroy();
}

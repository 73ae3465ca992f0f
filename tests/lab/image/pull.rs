//! Machines with a systemd of their own that fetch their configuration.

use super::{DebianLab, MACHINE};
use crate::common::spec;

const PULL: &str = "create -M lab -H father --mode pull --json";

#[test]
fn a_machine_with_a_systemd_fetches_by_a_unit_from_its_first_start_and_after_the_next() {
    let Some(lab) = DebianLab::with_spec(&spec("pulled")) else { return };
    lab.orch(PULL).ends_with(0).every_node_is("changed");
    lab.assert_all_is_up(MACHINE);
    assert_eq!(lab.says(MACHINE, &["systemctl", "is-active", "orch-node"]), "active");
    assert_eq!(lab.says(MACHINE, &["cat", "/etc/motd"]), "pulled");
    assert!(lab.says(MACHINE, &["cat", "/var/lib/orch/complete.json"]).contains("\"mode\":\"pull\""));
    lab.says(MACHINE, &["systemctl", "poweroff"]);
    lab.wait_until_off(MACHINE);
    lab.write("specs/plain.yaml", &spec("after the next start"));
    lab.orch(PULL).ends_with(0).every_node_is("changed");
    assert_eq!(lab.says(MACHINE, &["cat", "/etc/motd"]), "after the next start");
    lab.destroy();
}

#[test]
fn a_machine_with_a_systemd_that_was_pushed_is_given_the_unit_when_it_is_to_pull() {
    let Some(lab) = DebianLab::with_spec(&spec("pushed")) else { return };
    lab.all("create").ends_with(0);
    lab.write("specs/plain.yaml", &spec("pulled"));
    lab.orch(PULL).ends_with(0).every_node_is("changed");
    assert_eq!(lab.says(MACHINE, &["systemctl", "is-enabled", "orch-node"]), "enabled");
    assert_eq!(lab.says(MACHINE, &["cat", "/etc/motd"]), "pulled");
    lab.destroy();
}

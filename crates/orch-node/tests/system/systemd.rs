//! Where systemd runs, it watches over the watcher: a unit that is no part of anybody's connection, and that is started again
//! when it is killed.

use std::time::{Duration, Instant};

use orch_model::StorePath;
use orch_model::system::{RolloutPhase, SwitchOrder};

use crate::machine::{First, Machine, order, wait_for};
use crate::stand_in::StandIn;

fn watcher(machine: &Machine) -> Option<String> {
    let pids = machine.shell("systemctl show --property=MainPID --value 'orch-rollout-*'");
    pids.lines().find(|pid| !matches!(*pid, "" | "0")).map(String::from)
}

fn is_on(machine: &Machine, system: &StorePath) {
    assert_eq!((machine.running(), machine.boots()), (system.to_string(), system.to_string()));
    let left = || machine.shell("systemctl list-units --all --no-legend --plain 'orch-rollout*'");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !left().is_empty() {
        let status = "systemctl status --no-pager 'orch-rollout-*' || true";
        assert!(Instant::now() < deadline, "{}", machine.shell(status));
    }
}

#[test]
fn a_watcher_that_is_killed_is_started_again_by_systemd_and_leaves_no_unit_behind() {
    let Some((machine, first)) = Machine::with_first_by(First::Systemd) else { return };
    let second = machine.add(&StandIn::good("second"));
    machine.order(&order("r1", &second));
    machine.wait_for_phase(RolloutPhase::Waiting);
    for _ in 0..3 {
        let killed = wait_for("the unit", || watcher(&machine));
        machine.shell(&format!("kill -9 {killed}"));
        wait_for("another", || watcher(&machine).filter(|pid| *pid != killed));
    }
    // Whoever asks while it is about to be started again has systemd start another, and not one of his own.
    machine.shell(&format!("kill -9 {}", wait_for("the unit", || watcher(&machine))));
    machine.look();
    let all = machine.shell("pgrep -af 'system [w]atch' || true");
    assert!(all.lines().all(|line| line.contains("--alone")), "{all}");
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    is_on(&machine, &second);
    // While a system is activated too: then the node goes back.
    let slow = machine.add(&StandIn { before: "sleep 1000", ..StandIn::good("slow") });
    machine.order(&order("r2", &slow));
    wait_for("the activation", || (!machine.shell("pgrep -x sleep || true").is_empty()).then_some(()));
    machine.shell(&format!("kill -9 {}", wait_for("the unit", || watcher(&machine))));
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}");
    assert_eq!(machine.shell("pgrep -x sleep || true"), "");
    is_on(&machine, &second);
    assert_ne!(first, second);
}

#[test]
fn units_that_failed_are_evidence() {
    let Some((machine, first)) = Machine::with_first_by(First::Systemd) else { return };
    let after = "systemd-run --quiet --unit=broken --wait false; exit 4";
    let bad = machine.add(&StandIn { after, ..StandIn::good("bad") });
    machine.order(&order("r1", &bad));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    assert!(answer.record.evidence.iter().any(|line| line.contains("unit: broken.service")), "{answer:?}");
    is_on(&machine, &first);
}

#[test]
fn a_system_that_nobody_would_watch_over_once_it_is_booted_is_not_booted_into() {
    let Some((machine, first)) = Machine::with_first_by(First::Systemd) else { return };
    let second = machine.add(&StandIn { kernel: "another", ..StandIn::good("second") });
    let order = SwitchOrder { reboot: true, ..order("r1", &second) };
    let output = machine.ask(&["switch"], &serde_json::to_string(&order).unwrap(), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("differs in kernel") && said.contains("services.orch-node.enable"), "{said}");
    assert_eq!((machine.running(), machine.look().rollout), (first.to_string(), None));
}

//! Systems that are booted into: the node starts anew, and somebody has to say that it is to stay on what it came up with.

use orch_model::StorePath;
use orch_model::system::{RolloutPhase, SwitchLimits, SwitchOrder};

use crate::machine::{LIMITS, Machine, order, wait_for};
use crate::stand_in::StandIn;

fn order_boot(machine: &Machine, system: &StorePath, limits: SwitchLimits) {
    // On a machine that is busy the answer may be lost with the connection.
    let order = SwitchOrder { reboot: true, limits, ..order("r1", system) };
    machine.ask(&["switch"], &serde_json::to_string(&order).unwrap(), &[]);
}

fn boots(machine: &Machine) -> usize {
    machine.log().matches("is up").count()
}

#[test]
fn a_system_that_is_booted_into_and_confirmed_becomes_permanent() {
    let Some((machine, first)) = Machine::with_first() else { return };
    // Nothing but a boot brings it.
    let second = machine.add(&StandIn { before: "exit 100", kernel: "another", ..StandIn::good("second") });
    order_boot(&machine, &second, LIMITS);
    wait_for("the node to come up again", || (boots(&machine) == 2).then_some(()));
    machine.wait_for_phase(RolloutPhase::Waiting);
    assert_eq!(machine.shell("readlink -f /run/booted-system"), second.to_string());
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    assert_eq!((machine.running(), machine.boots()), (second.to_string(), second.to_string()));
    assert_eq!((answer.record.previous, boots(&machine)), (Some(first.to_string()), 2));
}

#[test]
fn a_system_that_is_booted_into_and_not_confirmed_is_booted_out_of() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn { kernel: "another", ..StandIn::good("second") });
    order_boot(&machine, &second, SwitchLimits { confirm: 1, ..LIMITS });
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}\n{}", machine.rollout_log());
    assert!(record.why.as_ref().unwrap().contains("nobody confirmed it"), "{record:?}");
    wait_for("the node to come up again", || (boots(&machine) == 3).then_some(()));
    assert_eq!((machine.running(), machine.boots()), (first.to_string(), first.to_string()));
    assert_eq!(machine.shell("readlink -f /run/booted-system"), first.to_string());
}

#[test]
fn a_system_that_does_not_come_up_is_not_said_to_run() {
    let Some((machine, first)) = Machine::with_first() else { return };
    // The node comes up with the system before, as by a boot loader that gives up on an entry.
    let boot = "ln -sfn system-1-link /nix/var/nix/profiles/system";
    let second = machine.add(&StandIn { boot, kernel: "another", ..StandIn::good("second") });
    order_boot(&machine, &second, LIMITS);
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}");
    assert!(record.why.as_ref().unwrap().contains("did not come up on it"), "{record:?}");
    wait_for("the node to come up again", || (boots(&machine) == 2).then_some(()));
    assert_eq!((machine.running(), machine.boots()), (first.to_string(), first.to_string()));
}

#[test]
fn a_node_that_needs_no_reboot_is_not_rebooted() {
    let Some((machine, _)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    order_boot(&machine, &second, LIMITS);
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    assert_eq!((machine.running(), boots(&machine)), (second.to_string(), 1));
}

#[test]
fn a_system_that_says_that_it_has_to_be_booted_into_is() {
    let Some((machine, _)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn { before: "exit 100", ..StandIn::good("second") });
    order_boot(&machine, &second, LIMITS);
    wait_for("the node to come up again", || (boots(&machine) == 2).then_some(()));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    assert_eq!(machine.running(), second.to_string());
}

#[test]
fn a_node_that_would_boot_the_same_again_is_not_rebooted_to_get_back() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn { kernel: "another", ..StandIn::good("second") });
    // Somebody has made it the default already.
    machine.shell(&format!("nix-env -p /nix/var/nix/profiles/system --set {second}"));
    order_boot(&machine, &second, SwitchLimits { confirm: 1, ..LIMITS });
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}\n{}", machine.rollout_log());
    wait_for("the node to be up", || (boots(&machine) == 2).then_some(()));
    assert_eq!((machine.running(), machine.boots()), (first.to_string(), second.to_string()));
}

#[test]
fn a_node_that_comes_up_on_the_new_system_again_is_not_rebooted_for_ever() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn { kernel: "another", ..StandIn::good("second") });
    // What its boot loader says is not what it boots.
    machine.shell(&format!(
        "mkdir -p /boot/loader/entries && echo default one.conf > /boot/loader/loader.conf \
         && {first}/bin/switch-to-configuration boot && nix-env -p /nix/var/nix/profiles/system --set {second}"
    ));
    order_boot(&machine, &second, SwitchLimits { confirm: 1, ..LIMITS });
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}\n{}", machine.rollout_log());
    wait_for("the node to come up again", || (boots(&machine) == 3).then_some(()));
    assert_eq!(machine.running(), first.to_string());
}

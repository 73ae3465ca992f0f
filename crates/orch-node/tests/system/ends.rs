//! Every way in which a rollout ends: what is said of it is what the test reads by itself.

use orch_model::StorePath;
use orch_model::system::{RolloutPhase, SwitchAnswer, SwitchLimits, SwitchOrder};

use crate::machine::{LIMITS, Machine, health, order, wait_for};
use crate::stand_in::StandIn;

/// The machine is on this system and boots it, and says so.
fn is_on(machine: &Machine, system: &StorePath) {
    let view = machine.look();
    assert_eq!((machine.running(), machine.boots()), (system.to_string(), system.to_string()));
    assert_eq!((view.running, view.boot_default), (Some(system.to_string()), Some(system.to_string())));
}

/// It went back: the record says why and has evidence, and the system before was activated last.
fn went_back(machine: &Machine, first: &StorePath, why: &str, evidence: &str) {
    let record = machine.wait_for_end();
    assert_eq!(record.phase, RolloutPhase::RolledBack, "{record:?}\n{}", machine.rollout_log());
    assert!(record.why.as_ref().is_some_and(|said| said.contains(why)), "{record:?}");
    assert!(record.evidence.iter().any(|line| line.contains(evidence)), "{record:?}");
    is_on(machine, first);
    assert_eq!(machine.activated(), first.to_string());
    wait_for("nobody to watch", || machine.watchers().is_empty().then_some(()));
    let generations = machine.shell("ls /nix/var/nix/profiles");
    assert!(!generations.contains("system-2-link"), "{generations}");
}

#[test]
fn a_good_system_that_is_confirmed_becomes_permanent() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    let taken = machine.order(&SwitchOrder { health: vec![health("true")], ..order("r1", &second) });
    assert!(taken.watched, "{taken:?}");
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    assert_eq!(answer.record.previous, Some(first.to_string()));
    assert_eq!((answer.unhealthy.len(), answer.record.why), (0, None));
    is_on(&machine, &second);
    wait_for("nobody to watch", || machine.watchers().is_empty().then_some(()));
    // The system before was the default until the very end.
    let calls = machine.shell("grep boot /var/lib/orch/calls");
    assert_eq!(calls, format!("boot {first}\nboot {second}"));
}

#[test]
fn a_system_whose_activation_fails_is_taken_back() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let bad = StandIn { after: "echo it cannot be >&2; exit 3", ..StandIn::good("bad") };
    let bad = machine.add(&bad);
    machine.order(&order("r1", &bad));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    went_back(&machine, &first, "exit status: 3", "it cannot be");
}

#[test]
fn a_system_whose_activation_hangs_is_taken_back_at_its_limit() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let hanging = StandIn { after: "echo begun; sleep 1000", ..StandIn::good("hanging") };
    let limits = SwitchLimits { activate: 1, ..LIMITS };
    let hanging = machine.add(&hanging);
    machine.order(&SwitchOrder { limits, ..order("r1", &hanging) });
    went_back(&machine, &first, "did not end within 1 s", "begun");
    assert_eq!(machine.shell("pgrep -x sleep || true"), "");
}

#[test]
fn a_system_with_which_the_node_is_not_healthy_is_taken_back() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    let check = health(
        "test $(readlink -f /run/current-system) = $(readlink -f /nix/var/nix/profiles/system) || { echo wrong; exit 1; }",
    );
    let limits = SwitchLimits { health: 1, ..LIMITS };
    machine.order(&SwitchOrder { health: vec![check], limits, ..order("r1", &second) });
    let answer = machine.confirm("r1");
    assert_eq!(answer.unhealthy.len(), 0, "the node is healthy again: {answer:?}");
    went_back(&machine, &first, "it is not healthy", "health: command sh");
}

#[test]
fn a_system_that_nobody_confirms_is_taken_back() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    let limits = SwitchLimits { confirm: 1, ..LIMITS };
    machine.order(&SwitchOrder { limits, ..order("r1", &second) });
    machine.wait_for_phase(RolloutPhase::Waiting);
    assert_eq!(machine.running(), second.to_string());
    went_back(&machine, &first, "nobody confirmed it within 1 s", "switch-to-configuration");
}

#[test]
fn a_system_that_can_only_be_booted_into_leaves_everything_as_it_was() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let other = StandIn { before: "exit 100", kernel: "another", ..StandIn::good("other") };
    let other = machine.add(&other);
    machine.order(&order("r1", &other));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::NeedsReboot, "{answer:?}");
    assert_eq!(answer.record.reboot_needed, ["kernel"]);
    is_on(&machine, &first);
    assert_eq!(machine.shell("ls /nix/var/nix/profiles | grep -c system-"), "1");
}

#[test]
fn a_permanent_system_is_taken_back_when_somebody_asks() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    machine.order(&order("r1", &second));
    assert_eq!(machine.confirm("r1").record.phase, RolloutPhase::Permanent);
    let answer: SwitchAnswer = machine.answer(&["back", "r1"], "");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    is_on(&machine, &first);
    let again: SwitchAnswer = machine.answer(&["back", "r1"], "");
    assert_eq!(again.record, answer.record);
}

#[test]
fn what_is_taken_back_is_forgotten_to_have_been_made_true_before_anything_is_done() {
    let Some(machine) = Machine::start() else { return };
    let before = "test ! -e /var/lib/orch/complete.json || touch /var/lib/orch/still-known";
    let first = machine.add(&StandIn { before, ..StandIn::good("first") });
    let second = machine.add(&StandIn::good("second"));
    for (id, system) in [("r1", &first), ("r2", &second)] {
        machine.order(&order(id, system));
        assert_eq!(machine.confirm(id).record.phase, RolloutPhase::Permanent);
    }
    let known = || machine.shell("cd /var/lib/orch; ls complete.json still-known 2> /dev/null || true");
    machine.shell("echo '{}' > /var/lib/orch/complete.json");
    let answer: SwitchAnswer = machine.answer(&["back", "r2"], "");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    assert_eq!((machine.running(), known()), (first.to_string(), String::new()));
}

#[test]
fn where_it_cannot_be_told_what_is_booted_nothing_is_begun() {
    let Some((machine, first)) = Machine::with_first() else { return };
    machine.shell("mkdir /boot/grub && echo 'set default=\"saved\"' > /boot/grub/grub.cfg");
    let second = machine.add(&StandIn::good("second"));
    let output = machine.ask(&["switch"], &serde_json::to_string(&order("r1", &second)).unwrap(), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("it cannot be told what the node boots by default"), "{said}");
    assert_eq!((machine.running(), machine.look().rollout), (first.to_string(), None));
    assert_eq!(machine.shell("ls /nix/var/nix/profiles | grep -c system-"), "1");
}

#[test]
fn a_boot_loader_that_says_no_more_what_it_boots_is_not_said_to_be_as_it_was() {
    let Some((machine, _)) = Machine::with_first() else { return };
    let after = "mkdir /boot/grub; echo 'set default=\"saved\"' > /boot/grub/grub.cfg; exit 1";
    let bad = machine.add(&StandIn { after, ..StandIn::good("bad") });
    machine.order(&order("r1", &bad));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Stuck, "{answer:?}");
}

#[test]
fn the_way_back_leads_to_a_system_that_no_profile_knows() {
    let Some((machine, first)) = Machine::with_first() else { return };
    // Somebody tries another system out, as it can be done by hand.
    let stranger = machine.add(&StandIn::good("stranger"));
    machine.shell(&format!("{stranger}/bin/switch-to-configuration test"));
    let bad = machine.add(&StandIn { after: "exit 1", ..StandIn::good("bad") });
    machine.order(&order("r1", &bad));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    assert_eq!((machine.running(), machine.boots()), (stranger.to_string(), first.to_string()));
    assert_eq!(machine.activated(), stranger.to_string());
}

#[test]
fn a_way_back_that_fails_is_not_said_to_have_been_gone() {
    let Some(machine) = Machine::start() else { return };
    // It cannot be activated again.
    let before = "test ! -e /var/lib/orch/activated || { echo not again; exit 7; }";
    let first = machine.add(&StandIn { before, ..StandIn::good("first") });
    machine.order(&order("r1", &first));
    assert_eq!(machine.confirm("r1").record.phase, RolloutPhase::Permanent);
    let bad = machine.add(&StandIn { after: "exit 1", ..StandIn::good("bad") });
    machine.order(&order("r2", &bad));
    let answer = machine.confirm("r2");
    assert_eq!(answer.record.phase, RolloutPhase::Stuck, "{answer:?}");
    assert_eq!((answer.view.running, machine.running()), (Some(bad.to_string()), bad.to_string()));
    assert!(answer.record.evidence.iter().any(|line| line.contains("exit status: 7")), "{:?}", answer.record);
    // As soon as it can be, it is gone.
    machine.shell("rm /var/lib/orch/activated");
    let answer: SwitchAnswer = machine.answer(&["back", "r2"], "");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    is_on(&machine, &first);
}

#[test]
fn what_is_booted_is_read_from_the_boot_loader() {
    let Some((machine, first)) = Machine::with_first() else { return };
    machine.shell(&format!(
        "mkdir -p /boot/loader/entries && echo default one.conf > /boot/loader/loader.conf \
         && {first}/bin/switch-to-configuration boot"
    ));
    let entry = || machine.shell("cat /boot/loader/entries/one.conf");
    let second = machine.add(&StandIn::good("second"));
    machine.order(&order("r1", &second));
    machine.wait_for_phase(RolloutPhase::Waiting);
    assert_eq!(entry(), format!("options init={first}/init"), "it is the default until the end");
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    assert_eq!(entry(), format!("options init={second}/init"));
    // One that says that it is booted, and is not.
    let liar = StandIn {
        boot: "echo options init=/nix/store/x/init > /boot/loader/entries/one.conf",
        ..StandIn::good("liar")
    };
    let liar = machine.add(&liar);
    machine.order(&order("r2", &liar));
    let answer = machine.confirm("r2");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    assert!(answer.record.why.as_ref().unwrap().contains("`/nix/store/x` is booted"), "{answer:?}");
    assert_eq!((entry(), machine.boots()), (format!("options init={second}/init"), second.to_string()));
}

#[test]
fn a_first_system_that_fails_is_not_said_to_be_taken_back() {
    let Some(machine) = Machine::start() else { return };
    let bad = machine.add(&StandIn { after: "exit 1", ..StandIn::good("bad") });
    machine.order(&order("r1", &bad));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Stuck, "{answer:?}");
    let good = machine.add(&StandIn::good("good"));
    machine.order(&order("r2", &good));
    assert_eq!(machine.confirm("r2").record.phase, RolloutPhase::Permanent);
    is_on(&machine, &good);
}

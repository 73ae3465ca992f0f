//! Watchers that are killed without a word, the power that fails, a disk that is full: every rollout ends by itself, and on
//! a good system.

use orch_model::StorePath;
use orch_model::system::{RolloutPhase, RolloutRecord, SwitchAnswer, SwitchLimits, SwitchOrder};

use crate::machine::{LIMITS, Machine, order, wait_for};
use crate::stand_in::StandIn;

/// Every phase that a rollout of a system that fails goes through, and of one that is kept.
const FAILING: [&str; 3] = ["armed", "activating", "returning"];
const KEPT: [&str; 3] = ["armed", "waiting", "confirmed"];

/// What the record says is what is read.
fn says_the_truth(machine: &Machine, record: &RolloutRecord, first: &StorePath) {
    let wanted = match record.phase {
        RolloutPhase::Permanent => record.system.to_string(),
        RolloutPhase::RolledBack => first.to_string(),
        phase => panic!("{phase:?} is no end to hope for: {record:?}\n{}", machine.rollout_log()),
    };
    assert_eq!((machine.running(), machine.boots()), (wanted.clone(), wanted.clone()), "{record:?}");
    assert_eq!(machine.activated(), wanted, "{record:?}");
    wait_for("nobody to watch", || machine.watchers().is_empty().then_some(()));
}

#[test]
fn a_rollout_that_fails_ends_by_itself_whenever_its_watcher_is_killed() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let bad = machine.add(&StandIn { after: "exit 1", ..StandIn::good("bad") });
    for phase in FAILING {
        machine.order_cut(&order(phase, &bad), phase);
        if phase == "armed" {
            // Who takes the order is killed before anybody watches, and nothing was done: the next who asks sees to it.
            machine.look();
        }
        let record = machine.wait_for_end();
        assert_eq!((record.id.as_str(), record.phase), (phase, RolloutPhase::RolledBack), "{record:?}");
        says_the_truth(&machine, &record, &first);
    }
}

#[test]
fn a_rollout_that_is_confirmed_ends_by_itself_whenever_its_watcher_is_killed() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let mut last = first;
    for (phase, name) in KEPT.into_iter().zip(["one", "two", "three"]) {
        let next = machine.add(&StandIn::good(name));
        machine.order_cut(&order(phase, &next), phase);
        let answer = machine.confirm(phase);
        assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
        says_the_truth(&machine, &answer.record, &last);
        last = next;
    }
}

#[test]
fn whichever_of_the_two_who_watch_is_killed_there_are_two_again() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    machine.order(&order("r1", &second));
    machine.wait_for_phase(RolloutPhase::Waiting);
    for which in [0, 1, 0, 1] {
        let two = wait_for("two who watch", || Some(machine.watchers()).filter(|all| all.len() == 2));
        machine.shell(&format!("kill -9 {}", two[which]));
        wait_for("another", || {
            let now = machine.watchers();
            (now.len() == 2 && !now.contains(&two[which])).then_some(())
        });
    }
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::Permanent, "{answer:?}");
    says_the_truth(&machine, &answer.record, &first);
}

#[test]
fn an_activation_that_its_watcher_left_behind_is_ended_before_the_way_back() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let slow = StandIn { before: "echo begun; sleep 1000", ..StandIn::good("slow") };
    let slow = machine.add(&slow);
    machine.order(&order("r1", &slow));
    let sleeps = || machine.shell("pgrep -x sleep || true");
    wait_for("the activation", || (!sleeps().is_empty()).then_some(()));
    let worker = machine.shell("cat /run/orch-rollout/watcher.json");
    let worker: serde_json::Value = serde_json::from_str(&worker).unwrap();
    machine.shell(&format!("kill -9 {}", worker["pid"]));
    let record = machine.wait_for_end();
    assert!(record.why.as_ref().unwrap().contains("its watcher was ended"), "{record:?}");
    says_the_truth(&machine, &record, &first);
    assert_eq!(sleeps(), "");
}

#[test]
fn where_all_who_watch_are_killed_the_next_who_asks_has_somebody_watch_again() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    for (id, asks) in [("r1", "look"), ("r2", "back"), ("r3", "confirm")] {
        let limits = SwitchLimits { confirm: if asks == "look" { 2 } else { 20 }, ..LIMITS };
        machine.order(&SwitchOrder { limits, ..order(id, &second) });
        machine.wait_for_phase(RolloutPhase::Waiting);
        wait_for("nobody to watch", || {
            let all = machine.watchers().join(" ");
            // One of them may just be starting another.
            machine.shell(&format!("kill -9 {all} 2> /dev/null || true"));
            machine.watchers().is_empty().then_some(())
        });
        match asks {
            "look" => drop(machine.look()),
            "back" => drop(machine.answer::<SwitchAnswer>(&["back", id], "")),
            _ => drop(machine.confirm(id)),
        }
        let record = machine.wait_for_end();
        let wanted = if asks == "confirm" { RolloutPhase::Permanent } else { RolloutPhase::RolledBack };
        assert_eq!((record.id.as_str(), record.phase), (id, wanted), "{record:?}");
        says_the_truth(&machine, &record, &first);
    }
}

#[test]
fn a_power_cut_at_any_moment_leads_back_to_the_system_before() {
    let Some((mut machine, first)) = Machine::with_first() else { return };
    let bad = machine.add(&StandIn { after: "sleep 1000", ..StandIn::good("bad") });
    let second = machine.add(&StandIn::good("second"));
    for (id, system, phase) in
        [("r1", &bad, RolloutPhase::Activating), ("r2", &second, RolloutPhase::Waiting)]
    {
        machine.order(&order(id, system));
        machine.wait_for_phase(phase);
        machine.cut_power();
        machine.boot();
        let record = machine.wait_for_end();
        assert_eq!((record.id.as_str(), record.phase), (id, RolloutPhase::RolledBack), "{record:?}");
        assert_eq!(record.why.as_deref(), Some("the node was rebooted in between"));
        assert_eq!((machine.running(), machine.boots()), (first.to_string(), first.to_string()));
        assert!(!machine.shell("ls /nix/var/nix/profiles").contains("system-2-link"));
    }
}

#[test]
fn a_system_that_was_confirmed_and_is_booted_by_default_stays_after_a_power_cut() {
    let Some((mut machine, first)) = Machine::with_first() else { return };
    // It writes its boot entry for so long that the power can fail meanwhile.
    let slow = machine.add(&StandIn { boot: "sleep 1000", ..StandIn::good("slow") });
    machine.order(&order("r1", &slow));
    machine.wait_for_phase(RolloutPhase::Waiting);
    let confirming = machine.begin(&["confirm", "r1"], &[]);
    wait_for("the boot entry", || (machine.boots() == slow.to_string()).then_some(()));
    machine.shell("touch /var/lib/orch/quick");
    machine.cut_power();
    confirming.wait_with_output().unwrap();
    machine.boot();
    let record = machine.wait_for_end();
    says_the_truth(&machine, &record, &first);
}

#[test]
fn a_full_disk_does_not_stop_the_way_back() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let greedy = StandIn {
        after: "cat /dev/zero > /var/lib/orch/fill 2> /dev/null; exit 1",
        ..StandIn::good("greedy")
    };
    let greedy = machine.add(&greedy);
    // The state of the node on a disk of its own, with the record of a rollout yet to come.
    machine.shell(
        "mkdir /run/disk && mount -t tmpfs -o size=512k none /run/disk && cp -a /var/lib/orch/. /run/disk/ \
         && mount --bind /run/disk /var/lib/orch",
    );
    machine.order(&order("r1", &greedy));
    let answer = machine.confirm("r1");
    assert_eq!(answer.record.phase, RolloutPhase::RolledBack, "{answer:?}");
    assert_eq!(machine.shell("df --output=avail /var/lib/orch | tail -n 1").trim(), "0");
    assert_eq!((machine.running(), machine.boots()), (first.to_string(), first.to_string()));
}

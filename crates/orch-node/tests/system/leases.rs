//! Who may do something with a node: one run at a time, and one rollout at a time.

use orch_model::system::{LeaseAnswer, LeaseClaim, RolloutPhase, SwitchAnswer, SwitchOrder};

use crate::machine::{Machine, order, wait_for};
use crate::stand_in::StandIn;

fn claim(machine: &Machine, run: &str, seconds: u64) -> LeaseAnswer {
    let claim = LeaseClaim { holder: format!("alice of {run}"), run: run.into(), seconds };
    machine.answer(&["lease"], &serde_json::to_string(&claim).unwrap())
}

fn refused(machine: &Machine, order: &SwitchOrder) -> String {
    let output = machine.ask(&["switch"], &serde_json::to_string(order).unwrap(), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_lease_is_given_to_one_run_renewed_refused_released_and_ends_by_itself() {
    let Some((mut machine, first)) = Machine::with_first() else { return };
    let given = claim(&machine, "a", 60);
    assert!(given.granted && given.view.running == Some(first.to_string()), "{given:?}");
    let other = claim(&machine, "b", 60);
    let lease = other.view.lease.unwrap();
    assert!(!other.granted && lease.holder == "alice of a" && lease.since == given.view.lease.unwrap().since);
    assert!(claim(&machine, "a", 60).granted);
    let second = machine.add(&StandIn::good("second"));
    let said = refused(&machine, &SwitchOrder { run: "b".into(), ..order("r1", &second) });
    assert!(said.contains("alice of a") && said.contains(&lease.since), "{said}");
    let _: () = machine.answer(&["release", "b"], "");
    assert!(!claim(&machine, "b", 60).granted, "only who has it gives it back");
    let _: () = machine.answer(&["release", "a"], "");
    assert!(claim(&machine, "b", 1).granted);
    wait_for("the end of a lease", || claim(&machine, "a", 60).granted.then_some(()));
    machine.cut_power();
    machine.boot();
    assert!(claim(&machine, "b", 60).granted, "a lease is of one boot");
}

#[test]
fn a_run_that_has_lost_its_lease_does_nothing_more() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    let leased = SwitchOrder { run: "a".into(), leased: true, ..order("r1", &second) };
    let said = refused(&machine, &leased);
    assert!(said.contains("does not belong to run `a` any more"), "{said}");
    assert_eq!((machine.running(), machine.look().rollout), (first.to_string(), None));
    assert!(claim(&machine, "a", 60).granted);
    machine.order(&leased);
    assert_eq!(machine.confirm("r1").record.phase, RolloutPhase::Permanent);
    let _: () = machine.answer(&["release", "a"], "");
    assert!(claim(&machine, "b", 60).granted);
    let back = machine.ask(&["back", "--run", "a", "r1"], "", &[]);
    assert!(String::from_utf8_lossy(&back.stderr).contains("alice of b"), "{back:?}");
    assert_eq!((back.status.code(), machine.running()), (Some(1), second.to_string()));
    let _: () = machine.answer(&["release", "b"], "");
    let back: SwitchAnswer = machine.answer(&["back", "--run", "a", "r1"], "");
    assert_eq!((back.record.phase, machine.running()), (RolloutPhase::RolledBack, first.to_string()));
}

#[test]
fn the_same_order_again_attaches_and_another_one_is_refused() {
    let Some((machine, _)) = Machine::with_first() else { return };
    let (second, third) = (machine.add(&StandIn::good("second")), machine.add(&StandIn::good("third")));
    let taken = machine.order(&order("r1", &second));
    machine.wait_for_phase(RolloutPhase::Waiting);
    let again = machine.order(&order("r1", &second));
    assert!(again.watched && again.record.since == taken.record.since, "{again:?}");
    let said = refused(&machine, &SwitchOrder { run: "run-2".into(), ..order("r2", &third) });
    assert!(said.contains("r1") && said.contains("run-1") && said.contains(&taken.record.since), "{said}");
    assert_eq!(machine.confirm("r1").record.phase, RolloutPhase::Permanent);
    let ended = machine.order(&order("r1", &second));
    assert_eq!(ended.record.phase, RolloutPhase::Permanent);
    assert_eq!(machine.shell("grep -c test /var/lib/orch/calls"), "2", "the first and the second, once each");
}

#[test]
fn of_many_orders_at_once_one_is_taken() {
    let Some((machine, _)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    let ids: Vec<String> = (0..8).map(|number| format!("r{number}")).collect();
    let taken: Vec<&String> = std::thread::scope(|scope| {
        let (machine, second) = (&machine, &second);
        let asked: Vec<_> = ids
            .iter()
            .map(|id| {
                scope.spawn(move || {
                    let text = serde_json::to_string(&order(id, second)).unwrap();
                    machine.ask(&["switch"], &text, &[]).status.success().then_some(id)
                })
            })
            .collect();
        asked.into_iter().filter_map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert_eq!(machine.confirm(taken[0]).record.phase, RolloutPhase::Permanent);
}

#[test]
fn what_is_no_system_and_what_is_not_known_is_refused() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let none = "/nix/store/00000000000000000000000000000000-none".parse().unwrap();
    assert!(refused(&machine, &order("r1", &none)).contains("is no system"), "nothing is there");
    let long = "a".repeat(256);
    assert!(refused(&machine, &order(&long, &none)).contains("is no system"), "its name is not too long");
    for id in ["", "--alone", "a b", "a/b", &format!("{long}a")] {
        let text = serde_json::to_string(&order(id, &first)).unwrap();
        assert_eq!(machine.ask(&["switch"], &text, &[]).status.code(), Some(3), "{id:?}");
    }
    for asked in [["confirm", "r9"], ["back", "r9"]] {
        let output = machine.ask(&asked, "", &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("`r9` is not known here"), "{output:?}");
    }
    assert_eq!(machine.running(), first.to_string());
    assert_eq!(machine.look().rollout, None);
}

#[test]
fn who_confirms_is_not_kept_waiting_for_longer_than_he_wants() {
    let Some((machine, _)) = Machine::with_first() else { return };
    let slow = machine.add(&StandIn { before: "sleep 3", ..StandIn::good("slow") });
    machine.order(&order("r1", &slow));
    assert_eq!(machine.ask(&["confirm", "--limit", "1", "r1"], "", &[]).status.code(), Some(4));
    assert_eq!(machine.confirm("r1").record.phase, RolloutPhase::Permanent);
}

//! What a node says of its store and its systems, and what it takes into the store.

use std::io::Write;
use std::process::{Command, Stdio};

use orch_model::StorePath;
use orch_model::system::{Inventory, SystemQuestion, SystemView};

use crate::machine::Machine;
use crate::stand_in::StandIn;

fn look(machine: &Machine, verb: &str, closure: &[&StorePath]) -> SystemView {
    let question = SystemQuestion { closure: closure.iter().map(|path| (*path).clone()).collect() };
    machine.answer(&[verb], &serde_json::to_string(&question).unwrap())
}

#[test]
fn a_node_says_how_it_stands_and_what_it_lacks() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let lacking: StorePath = "/nix/store/00000000000000000000000000000000-lacking".parse().unwrap();
    let view = look(&machine, "look", &[&first, &lacking]);
    assert_eq!(view.missing, std::slice::from_ref(&lacking));
    assert!(view.platform.ends_with("-linux") && view.free > 0 && view.rollout.is_none(), "{view:?}");
    assert!(view.nix.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())));
    assert!(!view.substitutes, "its settings name nowhere to fetch from");
    assert_eq!(view.booted, Some(first.to_string()));
    let fetched = look(&machine, "substitute", &[&first, &lacking]);
    assert_eq!(fetched.missing, [lacking]);
}

#[test]
fn what_one_node_exports_another_receives() {
    let (Some((from, _)), Some((to, first))) = (Machine::with_first(), Machine::with_first()) else { return };
    let second = from.add(&StandIn::good("second"));
    assert_eq!(look(&to, "look", &[&second]).missing, std::slice::from_ref(&second));
    from.shell(&format!("nix-store --export {second} > /run/export"));
    let stream = from.read("/run/export");
    let mut child = to.begin(&["receive"], &[]);
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"{\"received\":1}\n", "{output:?}");
    assert!(look(&to, "look", &[&second]).missing.is_empty());
    to.shell("nix-store --gc");
    assert!(look(&to, "look", &[&second]).missing.is_empty(), "it is held until it is gone over to");
    assert_eq!(to.running(), first.to_string());
    let mut broken = to.begin(&["receive"], &[]);
    broken.stdin.take().unwrap().write_all(&stream[..stream.len() / 2]).unwrap();
    assert_eq!(broken.wait_with_output().unwrap().status.code(), Some(1));
}

#[test]
fn who_brings_nothing_more_is_not_waited_for_for_ever() {
    let Some((machine, _)) = Machine::with_first() else { return };
    for (limit, why) in [("--idle", "nothing came any more"), ("--limit", "not all of it came")] {
        let mut child = machine.begin(&["receive", limit, "1"], &[]);
        // The connection is there, and nobody speaks.
        let silent = child.stdin.take().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
        drop(silent);
    }
}

#[test]
fn both_systems_of_a_rollout_are_kept_from_being_collected() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let second = machine.add(&StandIn::good("second"));
    machine.order(&crate::machine::order("r1", &second));
    machine.confirm("r1");
    machine.shell("nix-env -p /nix/var/nix/profiles/system --delete-generations old && nix-store --gc");
    assert!(look(&machine, "look", &[&first, &second]).missing.is_empty());
    // The generation before is gone, and the way back is not.
    let answer: orch_model::system::SwitchAnswer = machine.answer(&["back", "r1"], "");
    assert_eq!(answer.record.phase, orch_model::system::RolloutPhase::RolledBack, "{answer:?}");
    assert_eq!((machine.running(), machine.boots()), (first.to_string(), first.to_string()));
}

#[test]
fn an_inventory_tells_two_systems_apart() {
    let Some((machine, first)) = Machine::with_first() else { return };
    let other = machine.add(&StandIn { kernel: "another", ..StandIn::good("other") });
    let of_first: Inventory = machine.answer(&["inventory"], "");
    let of_other: Inventory = machine.answer(&["inventory", other.as_str()], "");
    assert_eq!((&of_first.system, &of_other.system), (&first.to_string(), &other.to_string()));
    assert_eq!((&of_first.closure, &of_other.closure), (&vec![first], &vec![other]));
    assert_ne!(of_first.boot, of_other.boot);
    let unit = |inventory: &Inventory| inventory.units.get("web.service").cloned();
    assert!(unit(&of_first).is_some() && unit(&of_first) != unit(&of_other), "{of_first:?} {of_other:?}");
    let none = machine.ask(&["inventory", "/nix/store/none"], "", &[]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn a_node_without_nix_says_so() {
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_orch-node"))
        .arg("--root")
        .arg(root.path())
        .args(["system", "look"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    let view: SystemView = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((view.nix, view.running, view.boot_default), (None, None, None));
}

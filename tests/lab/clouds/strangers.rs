//! Machines elsewhere that are not ours: they stay as they are, whatever they are called.

use super::home::{Home, on_each};
use super::people::Shown;
use crate::common::{TIMEOUTS, node};

/// What is written on a machine in the place of its mark.
const NO_MARK: &str = "somebody-elses";

#[test]
fn a_machine_with_the_name_and_number_of_ours_is_left_alone_and_ours_is_made_beside_it() {
    let Some(home) = Home::with_nodes(&[&node("a")]) else { return };
    let run = |host: &str, verb: &str| home.orch(&format!("{verb} -M lab -H {host} --json"));
    on_each(|host| {
        let people = home.people(host);
        // What ours would be called is seen once, and taken by somebody else then.
        run(host, "create").ends_with(0);
        let Shown { id, name, .. } = people.machine("lab-a");
        run(host, "destroy --yes").ends_with(0);
        people.put_stranger(&name, id.trim_start_matches("qemu/"));
        let stranger = people.machine("lab-a");
        let before = people.config(&stranger.id);
        run(host, "create").ends_with(0).every_node_is("changed");
        let all = people.machines();
        assert_eq!(all.len(), 2, "{host}: {all:?}");
        let ours = all.iter().find(|machine| machine.uuid.is_some()).unwrap().clone();
        assert_ne!(ours.id, stranger.id);
        run(host, "create").ends_with(0).every_node_is("unchanged");
        run(host, "destroy --yes").ends_with(0).every_node_is("changed");
        assert_eq!(people.machines(), std::slice::from_ref(&stranger), "{host}");
        // Where there is no other name or number either, it is said who is in the way.
        if host == "cloud" {
            people.put_stranger(&ours.name, "");
            let refused = run(host, "create").ends_with(1).says(&ours.name);
            assert_eq!(refused.node("a")["status"], "failed", "{}", refused.stdout);
        }
        assert_eq!(people.config(&stranger.id), before, "{host}: byte by byte");
        assert!(people.machines().iter().all(|machine| machine.uuid.is_none()), "{host}: nothing is begun");
    });
    let taken = home.people("mother").machine("lab-a");
    let number = taken.id.trim_start_matches("qemu/").to_owned();
    home.lab.write_nodes(TIMEOUTS, &[&format!("{}, vmid: {number}", node("a"))]);
    let before = home.people("mother").config(&taken.id);
    for verb in ["create", "create --replace", "destroy --yes"] {
        let refused = run("mother", verb);
        let code = i32::from(!verb.starts_with("destroy"));
        let refused = refused.ends_with(code);
        if code != 0 {
            refused.says(&number);
        }
    }
    assert_eq!(home.people("mother").config(&taken.id), before);
    assert_eq!(home.people("mother").machines(), [taken]);
    home.down();
}

#[test]
fn a_machine_whose_mark_somebody_wrote_over_is_not_destroyed() {
    let Some(home) = Home::with_nodes(&[&node("a")]) else { return };
    on_each(|host| {
        let people = home.people(host);
        home.orch(&format!("create -M lab -H {host}")).ends_with(0);
        people.alter_mark(&people.machine("lab-a"), NO_MARK);
        let altered = people.machine("lab-a");
        let before = people.config(&altered.id);
        // At Hetzner the other marks still say whose it was, and so it is told of.
        let code = if host == "cloud" { 2 } else { 0 };
        let told = home.orch(&format!("destroy -M lab -H {host} --yes --json"));
        let told = told.ends_with(code).every_node_is("unchanged");
        assert_eq!(told.json()["left"]["found"][0]["name"] == "lab-a", host == "cloud", "{}", told.stdout);
        assert_eq!(people.config(&altered.id), before, "{host}");
        assert!(people.runs(&altered.id), "{host}");
    });
    home.down();
}

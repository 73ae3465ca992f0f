//! Machines elsewhere that are to be otherwise than they are.

use std::fs;

use super::home::{Home, on_each};
use crate::common::{TIMEOUTS, node};

#[test]
fn a_machine_elsewhere_is_resized_in_place_made_anew_when_that_is_asked_for_and_switched_on_again() {
    let Some(home) = Home::with_nodes(&[&node("a")]) else { return };
    let create = |host: &str, more: &str| home.orch(&format!("create -M lab -H {host} --json {more}"));
    on_each(|host| {
        create(host, "").ends_with(0).every_node_is("changed");
    });
    let before = ["mother", "cloud"].map(|host| home.people(host).machine("lab-a"));
    home.lab.write_nodes(TIMEOUTS, &[&node("a").replace("tiny", "wide")]);
    on_each(|host| {
        let people = home.people(host);
        let place = usize::from(host == "cloud");
        fs::write(home.root(host, "a").join("var/lib/kept"), "kept").unwrap();
        let seen = home.orch(&format!("status -M lab -H {host} --json")).ends_with(2);
        assert_eq!(seen.node("a")["condition"], "differs", "{host}");
        create(host, "").ends_with(0).every_node_is("changed");
        assert_eq!(people.machine("lab-a"), before[place], "{host}: the same machine");
        let (config, type_of) = (people.config(&before[place].id), "/server_type/name");
        let is_wide = config["cores"] == 2 || config.pointer(type_of).is_some_and(|name| name == "cx32");
        assert!(is_wide, "{host}: {config}");
        create(host, "").ends_with(0).every_node_is("unchanged");

        people.switch_off(&before[place].id);
        create(host, "").ends_with(0).every_node_is("changed");
        assert!(people.runs(&before[place].id), "{host}: it is on again");
        assert_eq!(people.machine("lab-a"), before[place], "{host}: the same machine");
        home.orch(&format!("status -M lab -H {host}")).ends_with(0);
    });
    let other = node("a").replace("tiny", "wide").replace("image: any", "image: other");
    home.lab.write_nodes(TIMEOUTS, &[&other]);
    on_each(|host| {
        let people = home.people(host);
        let place = usize::from(host == "cloud");
        let config = people.config(&before[place].id);
        create(host, "").ends_with(0).every_node_is("unchanged").says("needs --replace");
        let seen = home.orch(&format!("status -M lab -H {host} --json")).ends_with(2);
        assert_eq!(seen.node("a")["condition"], "differs", "{host}");
        home.orch(&format!("plan -M lab -H {host}")).ends_with(0).says("needs replace");
        assert_eq!(people.config(&before[place].id), config, "{host}: it is as it was");
        create(host, "--replace").ends_with(0).every_node_is("changed");
        let after = people.machine("lab-a");
        assert_ne!(after.uuid, before[place].uuid, "{host}: another machine");
        assert!(!home.root(host, "a").join("var/lib/kept").exists(), "{host}: made anew");
        create(host, "").ends_with(0).every_node_is("unchanged");
        home.orch(&format!("destroy -M lab -H {host} --yes")).ends_with(0);
        home.assert_empty(&[host]);
    });
    home.down();
}

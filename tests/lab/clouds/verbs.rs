//! `orch lab`: brought up, looked at, made to go wrong, killed, brought up again and taken down.

use rustix::process::{Pid, Signal, kill_process};

use super::home::{ELSEWHERE, Home, on_each};
use crate::common::{node, wait_until};

#[test]
fn a_lab_is_brought_up_once_goes_wrong_when_told_and_goes_on_after_it_was_killed() {
    let Some(home) = Home::with_nodes(&[&node("a")]) else { return };
    home.lab.orch("lab up --quick").ends_with(0).says("was up already").says("the lab is up");
    let shown = home.lab.orch("lab status").ends_with(0).says("Proxmox VE at").says("Hetzner Cloud at");
    let file = home.file();
    for host in file.hosts.values() {
        assert!(!shown.stdout.contains(host.token.expose()));
    }
    on_each(|host| {
        home.orch(&format!("create -M lab -H {host} --json")).ends_with(0).every_node_is("changed");
    });

    let fault = |words: &str| home.lab.orch(&format!("lab fault {words}"));
    fault("-H mother server-error --method GET --path /cluster --times 1").ends_with(0);
    fault("-H mother").ends_with(0).says("goes wrong  server-error, GET, `/cluster`, 1 times");
    home.orch("create -M lab -H mother --json").ends_with(0).every_node_is("unchanged");
    fault("-H mother").ends_with(0).says("server-error, GET, `/cluster`, 0 times");
    fault("-H cloud no-privilege").ends_with(0).says("goes wrong  no-privilege, always");
    home.orch("destroy -M lab -H cloud --yes --json").ends_with(1).every_node_is("failed");
    fault("-H cloud --clear").ends_with(0).never_says("no-privilege");
    home.orch("create -M lab -H cloud --json").ends_with(0);
    fault("-H nowhere too-many").ends_with(3).says("`nowhere`");
    fault("-H cloud no-such-fault").ends_with(3).says("too-many");

    let before = ELSEWHERE.map(|host| home.people(host).machines());
    kill_process(Pid::from_raw(file.pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until("it is gone", || !file.is_served());
    home.lab.orch("lab status").ends_with(1).says("the lab is down");
    home.orch("status -M lab -H mother").ends_with(1);
    home.lab.orch("lab up --quick").ends_with(0).never_says("was up already");
    assert_eq!(ELSEWHERE.map(|host| home.people(host).machines()), before);
    on_each(|host| {
        home.orch(&format!("create -M lab -H {host} --json")).ends_with(0).every_node_is("unchanged");
        home.orch(&format!("exec -M lab -H {host} -- hostname")).ends_with(0).says("a");
    });
    // With machines in it.
    home.down();
}

//! A provider that dies: the lab itself is killed in the middle of what it was asked to do, and comes up again.

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Lab, Need, lacks, wait_until};
use crate::kill::moments::chosen;
use crate::kill::sweep;

/// A host, and after how many questions it dies.
type Cell = (&'static str, u64);

/// Runs a verb, and has the lab die when its host was asked so often. Brings it up again, and waits for the end of the driver,
/// whatever that is: it may go on where the host is back, and would wait long for one that stays away.
fn die_during(lab: &Lab, (host, questions): Cell, verb: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = lab.state.join("lab");
    let status = || runtime.block_on(orch_lab::status(&folder)).unwrap();
    let host_name: orch_model::HostName = host.parse().unwrap();
    let asked = || status().hosts[&host_name].calls;
    let before = asked();
    let mut driver = lab.start(&words(host, verb));
    wait_until("enough was asked", || driver.has_ended() || asked() >= before + questions);
    let file = status().file;
    kill_process(Pid::from_raw(file.pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until("the lab is gone", || !file.is_served());
    lab.orch("lab up --quick").ends_with(0);
    driver.end();
}

fn words(host: &str, verb: &str) -> String {
    let yes = if verb == "destroy" { "--yes" } else { "" };
    format!("--lab {verb} -M workers -H {host} {yes}")
}

fn live_without_it(cell: Cell) {
    let lab = Lab::with_sample_site();
    lab.orch("lab up --quick").ends_with(0);
    let run = |verb: &str| lab.orch(&words(cell.0, verb)).ends_with(0);
    let told = |verb: &str| lab.orch(&format!("{} --json", words(cell.0, verb))).ends_with(0);
    die_during(&lab, cell, "create");
    run("create");
    told("status").every_node_is("as-wanted");
    told("create").every_node_is("unchanged");
    die_during(&lab, cell, "destroy");
    run("destroy");
    told("destroy").every_node_is("unchanged");
    lab.orch("lab down").ends_with(0);
    let place = lab.state.display().to_string();
    wait_until("no process is left", || crate::common::speaking_of(&place).is_empty());
}

#[test]
fn a_provider_that_dies_in_the_middle_of_its_tasks_is_gone_on_with_once_it_is_back() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let cells = (1..=40).step_by(3).flat_map(|questions| [("mother", questions), ("cloud", questions)]);
    sweep(chosen(cells.collect(), 14), live_without_it);
}

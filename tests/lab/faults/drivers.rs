//! Two drivers at once.

use super::{CREATE, DESTROY, NEEDS, STATUS, edit, made, motd, start_configuring};
use crate::common::{Gate, assert_nothing_is_left, lacks, wait_until};

#[test]
fn a_second_driver_is_told_who_has_the_host_and_whoever_only_looks_is_not_kept_waiting() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a", "b"]);
    edit(&lab);
    let gate = Gate::hold(&lab, "lab-a");
    let first = start_configuring(&lab, &gate);
    for words in [CREATE, "config -M lab -H father", DESTROY] {
        let told = lab.orch(words).ends_with(1).says("host `father` is in use by create lab");
        told.says(&format!("process {}", first.pid()));
    }
    lab.orch("plan -M lab -H father --json").ends_with(0);
    // The other node is done, and whoever looks sees it while the first is still being worked on.
    let complete = || lab.orch(&format!("{STATUS} --only b")).code == 0;
    wait_until("the other node is seen to be done", complete);
    assert!(gate.is_waited_at());
    lab.orch("exec -M lab -H father --only b -- true").ends_with(0);
    drop(gate);
    first.end().ends_with(0).every_node_is("changed");
    assert_eq!(motd(&lab, "lab-a"), "as wanted now");
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

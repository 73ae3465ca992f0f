//! What cannot be is refused with its reason, before anything is touched.

use super::home::{Home, furnished};
use crate::common::{Lab, TIMEOUTS, lacks, node};

#[test]
fn machines_inside_of_servers_of_hetzner_are_refused_and_nothing_is_touched() {
    let Some(home) = Home::sample() else { return };
    for verb in ["create", "test"] {
        let refused = home.orch(&format!("{verb} -M nested-test -H cloud")).ends_with(3);
        refused
            .says("node `test-vm` is to live inside `inner-pve`")
            .says("cannot host virtual machines")
            .says("nothing was touched");
    }
    let calls = home.calls("cloud");
    assert!(!calls.is_empty(), "it was asked");
    assert!(calls.iter().all(|(method, _)| method == "GET"), "{calls:?}");
    home.assert_empty(&["cloud"]);
    home.down();
}

#[test]
fn without_a_lab_nothing_is_done_in_one() {
    if lacks(&[]) {
        return;
    }
    let lab = furnished(Lab::with_nodes(TIMEOUTS, &[&node("a")]));
    for words in ["create -M lab -H mother", "status -M lab -H cloud", "status --orphans"] {
        let refused = lab.orch(&format!("--lab {words}")).ends_with(3);
        refused.says("there is no lab in").says("hint: ");
    }
    lab.orch("lab status").ends_with(3).says("there is no lab in");
    lab.orch("lab down").ends_with(0);
}

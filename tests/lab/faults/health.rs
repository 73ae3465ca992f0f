//! Nodes that are configured and not healthy.

use super::{CREATE, DESTROY, NEEDS, STATUS};
use crate::common::{Lab, assert_nothing_is_left, lacks, node, spec};

const BRIEF: &str = "timeouts: { create: 30s, boot: 20s, config: 4s, destroy: 20s }";

#[test]
fn a_node_that_is_not_healthy_is_a_failure_each_time_until_it_is() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = Lab::with_nodes(BRIEF, &[&node("a")]);
    let health = "health: [ { command: [test, -e, /var/lib/well] } ]\n";
    lab.write("specs/plain.yaml", &(spec("as wanted") + health));
    for _ in 0..2 {
        let failed = lab.orch(CREATE).ends_with(1).every_node_is("failed");
        failed.says("it was configured, and is not healthy: command test -e /var/lib/well");
    }
    lab.orch(STATUS).ends_with(1).every_node_is("unhealthy");
    std::fs::write(lab.root("lab-a").join("var/lib/well"), "").unwrap();
    lab.orch(CREATE).ends_with(0);
    lab.orch(CREATE).ends_with(0).every_node_is("unchanged");
    lab.orch(STATUS).ends_with(0);
    lab.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&lab);
}

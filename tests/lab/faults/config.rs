//! Configurations that cannot be made true in full.

use std::fs;

use super::{CREATE, NEEDS, STATUS, made, motd};
use crate::common::{assert_nothing_is_left, lacks, spec};

/// What one line of a spec's files says wrong, and what is said about it.
const WRONG: [(&str, &str); 2] = [
    ("{ path: /etc/orch-test, content: x, owner: nobody-of-that-name }", "nobody-of-that-name"),
    ("{ path: /etc/ssh, content: x }", "/etc/ssh"),
];

#[test]
fn a_configuration_that_fails_half_way_does_the_rest_says_what_failed_and_is_healed_by_mending_the_spec() {
    if lacks(&NEEDS) {
        return;
    }
    let lab = made(&["a"]);
    for (number, (line, subject)) in WRONG.into_iter().enumerate() {
        let content = format!("as wanted {number}");
        lab.write("specs/plain.yaml", &spec(&content).replace("files: [", &format!("files: [{line}, ")));
        let failed = lab.orch(CREATE).ends_with(1).every_node_is("failed").says(subject);
        assert!(failed.node("a")["hint"].is_string(), "it says what to try");
        assert_eq!(motd(&lab, "lab-a"), content, "the others are applied");
        let state = lab.root("lab-a").join("var/lib/orch");
        let report = fs::read_to_string(state.join("failed.json")).unwrap();
        assert!(report.contains(subject), "{report}");
        assert!(!state.join("complete.json").exists(), "what failed is not complete");
        assert_ne!(lab.orch(STATUS).code, 0);

        lab.write("specs/plain.yaml", &spec(&content));
        // Everything but what failed was there already.
        lab.orch(CREATE).ends_with(0);
        assert!(state.join("complete.json").exists() && !state.join("failed.json").exists());
        lab.orch(STATUS).ends_with(0);
    }
    lab.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&lab);
}

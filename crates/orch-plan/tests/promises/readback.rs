//! "Done" is said only when a fresh look shows it.

use expect_test::{Expect, expect};
use orch_plan::{Action, confirm};

use crate::site::{fleet, mark, planned, world};

const WEB: &str = "- { name: web, type: vm, spec: base }";

/// Plans `goal` in the world `before`, and reads the action `verb` back from the world `after`, machine `x`.
fn check(goal: &str, before: &str, verb: &str, after: &str, expected: &Expect) {
    let fleet = fleet(WEB);
    let plan = planned(goal, &fleet, &world(&fleet, before));
    let node = &plan.nodes[0];
    let action: &Action = node.down.iter().chain(&node.up).find(|action| action.verb() == verb).expect(verb);
    let view = &world(&fleet, after).hosts[&node.identity.host];
    let confirmed = confirm(action, &fleet.site, &node.identity, mark("x"), view);
    expected.assert_eq(&confirmed.map_or_else(|why| why.0, |()| "done".to_owned()));
}

const GONE: &str = "";
const FINE: &str = "pve/x m-web node=web";

#[test]
fn a_host_that_does_not_answer_confirms_nothing() {
    check(
        "create",
        GONE,
        "create",
        "pve unreachable no route",
        &expect!["host `pve` cannot be looked at: no route"],
    );
    check(
        "destroy",
        FINE,
        "destroy",
        "pve unreachable no route",
        &expect!["host `pve` cannot be looked at: no route"],
    );
}

#[test]
fn a_creation_is_confirmed_by_one_running_machine_of_its_size_with_its_mark() {
    let create = |after: &str, expected: Expect| check("create", GONE, "create", after, &expected);
    create("pve/x m-web node=web config=never", expect!["done"]);
    create(GONE, expect!["no machine bears its mark"]);
    create("pve/x m-web", expect!["no machine bears its mark"]);
    create("pve/y m-web node=web", expect!["no machine bears its mark"]);
    create("pve/x m-web node=other", expect!["no machine bears its mark"]);
    create("pve/x m-web node=web site=away", expect!["no machine bears its mark"]);
    create("pve/x m-web node=web manifest=n", expect!["no machine bears its mark"]);
    create("pve/x m-web node=web host=metal", expect!["no machine bears its mark"]);
    create("pve/x m-web node=web stopped", expect!["machine `x` does not run"]);
    create("pve/x m-web node=web partial", expect!["machine `x` does not run"]);
    create("pve/x m-web node=web cores=2", expect!["machine `x` has another size"]);
    create("pve/x m-web node=web\npve/y m-web node=web mark=x", expect!["two machines bear its mark"]);
}

#[test]
fn an_adoption_is_confirmed_as_a_creation_is() {
    let adopt = |after: &str, expected: Expect| {
        check("create", "pve/x m-web node=web partial", "adopt", after, &expected);
    };
    adopt(FINE, expect!["done"]);
    adopt(GONE, expect!["no machine bears its mark"]);
    adopt("pve/x m-web node=web partial", expect!["machine `x` does not run"]);
    adopt("pve/x m-web node=web disk=11", expect!["machine `x` has another size"]);
}

#[test]
fn a_resize_is_confirmed_by_the_size_whether_the_machine_runs_or_not() {
    let resize = |after: &str, expected: Expect| {
        check("create", "pve/x m-web node=web stopped memory=2048", "resize", after, &expected);
    };
    resize(FINE, expect!["done"]);
    resize("pve/x m-web node=web stopped", expect!["done"]);
    resize("pve/x m-web node=web stopped memory=2048", expect!["machine `x` has another size"]);
    resize(GONE, expect!["no machine bears its mark"]);
}

#[test]
fn a_start_is_confirmed_by_a_machine_that_runs() {
    let start = |after: &str, expected: Expect| {
        check("create", "pve/x m-web node=web stopped", "start", after, &expected);
    };
    start(FINE, expect!["done"]);
    start("pve/x m-web node=web stopped", expect!["machine `x` does not run"]);
    start(GONE, expect!["no machine bears its mark"]);
}

#[test]
fn a_configuration_is_confirmed_by_its_digest_or_by_silence() {
    let configure = |after: &str, expected: Expect| {
        check("config", "pve/x m-web node=web config=other", "configure", after, &expected);
    };
    configure(FINE, expect!["done"]);
    configure("pve/x m-web node=web config=unknown", expect!["done"]);
    configure("pve/x m-web node=web config=other", expect!["machine `x` has another configuration"]);
    configure("pve/x m-web node=web config=never", expect!["machine `x` has no configuration"]);
    configure("pve/x m-web node=web stopped", expect!["machine `x` does not run"]);
    configure(GONE, expect!["no machine bears its mark"]);
}

#[test]
fn a_destruction_is_confirmed_when_that_machine_is_gone() {
    let destroy = |after: &str, expected: Expect| check("destroy", FINE, "destroy", after, &expected);
    destroy(GONE, expect!["done"]);
    destroy(FINE, expect!["machine `x` is still there"]);
    destroy("pve/x m-web node=web stopped", expect!["machine `x` is still there"]);
    // A stranger that got the same id afterwards, and a copy that an action of its own destroys.
    destroy("pve/x m-web", expect!["done"]);
    destroy("pve/y m-web node=web mark=x", expect!["done"]);
}

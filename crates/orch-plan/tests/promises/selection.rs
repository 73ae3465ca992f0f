//! `--only`: by name, by the name that several share, by tag, with children.

use expect_test::expect;
use orch_plan::Selector;

use crate::site::{check, fleet, planned, world};

const NODES: &str = "
- { name: outer, type: pve, tags: [infra] }
- { name: inner, type: pve, parent: outer }
- { name: leaf, type: vm, parent: inner, tags: [app, web] }
- { name: web, count: 2, type: vm, tags: [web] }";

#[test]
fn a_name_picks_its_node() {
    check_picked("web-2", "web-2");
    check_picked("inner", "inner");
}

#[test]
fn the_name_of_an_entry_picks_all_its_nodes() {
    check_picked("web", "web-1 web-2");
}

#[test]
fn a_tag_picks_all_that_have_it() {
    check_picked("tag:web", "leaf web-1 web-2");
}

#[test]
fn plus_picks_everything_inside_at_any_depth() {
    check_picked("outer+", "outer inner leaf");
    check_picked("inner+", "inner leaf");
    check_picked("web+", "web-1 web-2");
}

#[test]
fn several_selectors_pick_what_any_of_them_picks_each_once_in_the_fleets_order() {
    check_picked("web-2,tag:app,outer,web-2", "outer leaf web-2");
}

#[test]
fn what_picks_nothing_is_an_error_that_says_what_there_is() {
    check(
        "create --only wbe",
        NODES,
        "",
        &expect![[r#"
            error: --only wbe matches no node of manifest `m`
            hint: choose from `outer`, `inner`, `leaf`, `web-1`, `web-2`
        "#]],
    );
    check(
        "create --only tag:wbe,outer,none+",
        NODES,
        "",
        &expect![[r#"
            error: --only tag:wbe matches no node of manifest `m`
            hint: choose from `app`, `infra`, `web`

            error: --only none+ matches no node of manifest `m`
            hint: choose from `outer`, `inner`, `leaf`, `web-1`, `web-2`
        "#]],
    );
    check(
        "create --only tag:web",
        "- { name: a, type: vm }",
        "",
        &expect![[r#"
            error: --only tag:web matches no node of manifest `m`
            hint: no node of it has a tag
        "#]],
    );
}

#[test]
fn a_selector_is_printed_as_it_is_written_and_nonsense_is_none() {
    for text in ["web", "web+", "tag:web"] {
        assert_eq!(text.parse::<Selector>().map(|selector| selector.to_string()).as_deref(), Ok(text));
    }
    for text in ["", "+", "tag:", "Web", "a b", "tag:a+", "a++"] {
        assert!(text.parse::<Selector>().is_err(), "{text}");
    }
}

#[test]
fn a_node_whose_parent_is_missing_and_not_selected_is_refused() {
    check(
        "create --only inner,web-1",
        NODES,
        "",
        &expect![[r#"
            create m on pve (site home)

              ! refused       inner  its parent `outer` does not exist, and is not selected
              + create        web-1
                  create      `m-web-1`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10006

            2 nodes: 1 to create, 1 refused
        "#]],
    );
}

#[test]
fn a_parent_that_is_not_selected_must_run() {
    check(
        "create --only inner",
        NODES,
        "pve/1 m-outer node=outer",
        &expect![[r#"
        create m on pve (site home)

          + create        inner
              create      `m-inner`: pve from debian-13, 1 core, 1024 MB, 10 GB, inside outer

        1 node: 1 to create
    "#]],
    );
    check(
        "create --only inner",
        NODES,
        "pve/1 m-outer node=outer stopped",
        &expect![[r#"
            create m on pve (site home)

              ! refused       inner  its parent `outer` does not run

            1 node: 1 refused
        "#]],
    );
    check(
        "create --only inner",
        NODES,
        "pve/1 m-outer node=outer partial",
        &expect![[r#"
            create m on pve (site home)

              ! refused       inner  its parent `outer` does not run

            1 node: 1 refused
        "#]],
    );
    check(
        "create --only inner",
        NODES,
        "pve/1 o node=outer\npve/2 p node=outer",
        &expect![[r#"
            create m on pve (site home)

              ! refused       inner  several machines bear the mark of its parent `outer`

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn what_a_plan_waits_for_is_counted_among_the_selected() {
    let fleet = fleet(
        "- { name: a, type: vm }\n- { name: b, type: vm }\n- { name: c, type: vm, depends_on: [b, a] }",
    );
    let needs = |goal: &str| planned(goal, &fleet, &world(&fleet, "")).nodes.pop().map(|node| node.needs);
    assert_eq!(needs("create"), Some(vec![0, 1]));
    assert_eq!(needs("create --only b,c"), Some(vec![0]));
    assert_eq!(needs("create --only c"), Some(vec![]));
}

fn check_picked(only: &str, expected: &str) {
    let fleet = fleet(NODES);
    let plan = planned(&format!("config --only {only}"), &fleet, &world(&fleet, ""));
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name().as_str()).collect();
    assert_eq!(names.join(" "), expected, "--only {only}");
}

//! Which node is in which batch.

use expect_test::{Expect, expect};
use orch_plan::{Plan, Share, Strategy};

use crate::site::{check, fleet, planned, world};

/// `count` nodes that are there, all of them to be configured but those whose numbers are given.
fn nodes_with(count: usize, as_wanted: &[usize], options: &str) -> Plan {
    let fleet = fleet(&format!("- {{ name: web, type: vm, spec: base, count: {count} }}"));
    let line = |number: usize| {
        let config = if as_wanted.contains(&number) { "" } else { " config=other" };
        format!("pve/{number} m-web-{number} node=web-{number}{config}\n")
    };
    let lines: String = (1..=count).map(line).collect();
    planned(&format!("config {options}"), &fleet, &world(&fleet, &lines))
}

fn sizes(count: usize, options: &str) -> Vec<usize> {
    let stages = nodes_with(count, &[], options).stages.expect("it is staged");
    stages.batches.iter().map(Vec::len).collect()
}

#[test]
fn batches_go_as_far_as_their_shares_say_and_the_last_one_takes_what_is_left() {
    let cases: [(usize, &str, &[usize]); 12] = [
        (20, "--strategy canary", &[1, 1, 18]),
        (100, "--strategy canary", &[1, 9, 90]),
        (8, "--strategy canary", &[1, 7]),
        (2, "--strategy canary", &[1, 1]),
        (3, "--strategy serial", &[1, 1, 1]),
        (5, "--max-fail 1", &[5]),
        (5, "--rollback-succeeded", &[5]),
        (10, "--batch 2,50%", &[2, 3, 5]),
        (10, "--strategy serial --batch 50%", &[5, 5]),
        (7, "--batch 10%,20%,30%,100%", &[1, 1, 1, 4]),
        (3, "--batch 5,2", &[3]),
        (3, "--batch 1,1,1", &[1, 2]),
    ];
    for (count, options, expected) in cases {
        assert_eq!(sizes(count, options), expected, "{count} nodes, {options}");
    }
}

#[test]
fn a_plan_without_a_word_about_batches_has_none_and_its_digest_is_what_it_was() {
    let plain = nodes_with(3, &[], "");
    assert_eq!(plain.stages, None);
    assert_ne!(plain.digest, nodes_with(3, &[], "--strategy serial").digest);
    assert_ne!(plain.digest, nodes_with(3, &[], "--reboot").digest);
    let json = serde_json::to_value(&plain).unwrap();
    assert!(json.get("stages").is_none() && json.get("reboot").is_none());
}

#[test]
fn nodes_to_which_nothing_is_done_are_in_no_batch() {
    let plan = nodes_with(4, &[1, 3], "--strategy serial");
    assert_eq!(plan.stages.expect("it is staged").batches, [[1], [3]]);
    let noop = nodes_with(2, &[1, 2], "--strategy canary");
    assert!(noop.stages.expect("it is staged").batches.is_empty());
}

#[test]
fn only_what_configures_is_staged() {
    let fleet = fleet("- { name: web, type: vm, spec: base, count: 3 }");
    let plan = planned("create --strategy serial", &fleet, &world(&fleet, ""));
    assert_eq!(plan.stages, None);
}

#[test]
fn no_node_is_in_a_batch_before_what_it_needs() {
    let nodes = "- { name: app, type: vm, spec: base, depends_on: [db] }
- { name: db, type: vm, spec: base, depends_on: [disk] }
- { name: disk, type: vm, spec: base }";
    let lines = "pve/1 m-app node=app config=other\npve/2 m-db node=db config=other\npve/3 m-disk node=disk config=other";
    check(
        "config --strategy serial --max-fail 2 --rollback-succeeded",
        nodes,
        lines,
        &expect![[r#"
        config m on pve (site home)

          ~ change        disk  its configuration changed
              configure   as base, by push
          ~ change        db    its configuration changed
              configure   as base, by push
          ~ change        app   its configuration changed
              configure   as base, by push

        in 3 batches (serial), 2 may fail, else those before are taken back:
          1. disk
          2. db
          3. app

        3 nodes: 3 to change
    "#]],
    );
}

#[test]
fn a_staged_plan_says_who_goes_when() {
    let lines = "pve/1 m-web-1 node=web-1 config=other\npve/2 m-web-2 node=web-2 config=other\npve/3 m-web-3 node=web-3";
    check(
        "config --strategy canary",
        "- { name: web, type: vm, spec: base, count: 3 }",
        lines,
        &expect![[r#"
            config m on pve (site home)

              ~ change        web-1  its configuration changed
                  configure   as base, by push
              ~ change        web-2  its configuration changed
                  configure   as base, by push
              = unchanged     web-3

            in 2 batches (canary), none may fail:
              1. web-1
              2. web-2

            3 nodes: 2 to change, 1 unchanged
        "#]],
    );
}

#[test]
fn a_staged_plan_as_json_names_nodes_by_their_place() {
    let plan = nodes_with(3, &[2], "--batch 1,100% --max-fail 1");
    let json = serde_json::to_string(&plan.stages).unwrap();
    let expected: Expect =
        expect![[r#"{"strategy":"all","max_fail":1,"rollback_succeeded":false,"batches":[[0],[2]]}"#]];
    expected.assert_eq(&json);
}

#[test]
fn shares_and_strategies_are_read_as_they_are_written() {
    for text in ["1", "250", "1%", "10%", "100%"] {
        assert_eq!(text.parse::<Share>().expect(text).to_string(), text);
    }
    for text in ["", "0", "0%", "101%", "-1", "+1", "1.5", "%", "10%%", "ten", "99999999999", "1 "] {
        assert!(text.parse::<Share>().is_err(), "{text}");
    }
    for text in ["all", "serial", "canary"] {
        assert_eq!(text.parse::<Strategy>().expect(text).to_string(), text);
    }
    assert!("blue-green".parse::<Strategy>().unwrap_err().contains("choose from"));
}

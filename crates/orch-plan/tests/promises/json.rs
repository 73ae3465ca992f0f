//! A plan is data: it is stored, read again and recognised.

use std::collections::BTreeSet;

use expect_test::expect;
use orch_plan::{Observed, Plan};

use crate::site::{fleet, fleet_where, planned, world};

const NODES: &str = "
- { name: outer, type: pve, spec: pve, image: pve, preset: large }
- { name: inner, type: vm, spec: web, parent: outer }
- { name: web, type: vm, spec: base, host: cloud, preset: small, depends_on: [inner] }
- { name: half, type: vm, spec: base, host: metal }
- { name: off, type: vm, host: metal }";
const WORLD: &str = "
    pve/1 m-outer node=outer image=pve-8 vmid=10001
    pve/2 m-inner node=inner
    cloud can
    cloud/3 m-web node=web cores=2
    metal/4 m-half node=half partial
    metal/5 m-off node=off stopped cores=2
    metal/6 m-old node=old-one";

/// Every kind of action and verdict in a few plans.
fn plans() -> Vec<Plan> {
    let fleet = fleet(NODES);
    let goals = ["create", "create --replace", "config", "destroy", "destroy --only off"];
    goals.into_iter().map(|goal| planned(goal, &fleet, &world(&fleet, WORLD))).collect()
}

#[test]
fn a_plan_reads_back_as_itself() {
    let mut seen = BTreeSet::new();
    for plan in plans() {
        let json = serde_json::to_string(&plan).unwrap();
        let back: Plan = serde_json::from_str(&json).unwrap();
        assert_eq!(back, plan);
        assert_eq!(serde_json::to_string(&back).unwrap(), json);
        assert_eq!(back.to_string(), plan.to_string());
        let actions = plan.nodes.iter().flat_map(|node| node.down.iter().chain(&node.up));
        seen.extend(actions.map(|action| action.verb().to_owned()));
        seen.extend(plan.nodes.iter().map(|node| format!("{:?}", node.verdict)));
    }
    let all =
        "Change Destroy NeedsReplace Refused Replace Unchanged adopt configure create destroy resize start";
    assert_eq!(seen.into_iter().filter(|word| word != "Create").collect::<Vec<_>>().join(" "), all);
}

#[test]
fn what_was_observed_reads_back_as_itself() {
    let fleet = fleet(NODES);
    let observed = world(
        &fleet,
        &format!("{WORLD}\nmetal/7 m-x config=never type=ct\nmetal/8 m-y node=off config=other"),
    );
    let json = serde_json::to_string(&observed).unwrap();
    assert_eq!(serde_json::from_str::<Observed>(&json).unwrap(), observed);
    let short = r#"{"hosts":{"metal":{"seen":{"machines":[{"id":"1","name":"a","state":"running","size":{"cores":1,"memory":1,"disk":1}}]}}}}"#;
    let observed: Observed = serde_json::from_str(short).unwrap();
    expect![[r#"
        Observed {
            hosts: {
                HostName(
                    "metal",
                ): Seen {
                    machines: [
                        Machine {
                            id: "1",
                            name: "a",
                            marks: None,
                            inside: None,
                            state: Running,
                            size: Size {
                                cores: 1,
                                memory: 1,
                                disk: 1,
                            },
                            kind: None,
                            image: None,
                            vmid: None,
                            applied: Unknown,
                            keys: Unknown,
                        },
                    ],
                    abilities: Abilities {
                        cores: true,
                        memory: true,
                        disk: Grow,
                    },
                },
            },
        }
    "#]]
    .assert_debug_eq(&observed);
}

#[test]
fn the_keys_of_a_plan_stand_in_one_order() {
    let fleet = fleet("- { name: web, type: vm }");
    let plan = planned("create --replace", &fleet, &world(&fleet, "pve/1 m-web node=web image=old"));
    expect![[r#"
        {
          "verb": "create",
          "site": "home",
          "manifest": "m",
          "hosts": [
            "pve"
          ],
          "on_error": "stop",
          "parallelism": 16,
          "timeouts": {
            "create": "10m",
            "boot": "5m",
            "config": "10m",
            "destroy": "5m"
          },
          "nodes": [
            {
              "identity": "m.web@pve",
              "verdict": "replace",
              "why": [
                "image old -> debian-13"
              ],
              "needs": [],
              "down": [
                {
                  "do": "destroy",
                  "machine": {
                    "id": "1",
                    "name": "m-web",
                    "uuid": "00000000-0000-0000-0000-000000000031"
                  }
                }
              ],
              "up": [
                {
                  "do": "create",
                  "machine": {
                    "name": "m-web",
                    "kind": "vm",
                    "image": "debian-13",
                    "size": {
                      "cores": 1,
                      "memory": 1024,
                      "disk": 10
                    },
                    "vmid": 10008,
                    "parent": null
                  }
                }
              ]
            }
          ],
          "leftovers": [],
          "digest": "a27ab9de2da1cd5bbba202f41f4548fd5d65b5bd4bba105831ece42d7d363637"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&plan).unwrap());
}

#[test]
fn the_digest_of_a_plan_is_the_same_today_and_tomorrow() {
    let fleet = fleet("- { name: web, type: vm }");
    let plan = planned("create", &fleet, &world(&fleet, ""));
    expect!["c9a8e6b6a92db04fe948d6e36b02343c0b68e477c7c4feb92b30c16181b0afcf"]
        .assert_eq(&plan.digest.to_string());
    assert!(plan.to_string().ends_with(&format!("plan {}", plan.digest.short())));
}

#[test]
fn equal_input_gives_equal_bytes() {
    let bytes = || plans().iter().map(|plan| serde_json::to_string(plan).unwrap()).collect::<Vec<_>>();
    assert_eq!(bytes(), bytes());
}

#[test]
fn the_digest_tells_apart_whatever_is_done_otherwise() {
    let web = "- { name: web, type: vm, spec: base }";
    let one = "pve/1 m-web node=web";
    let variants = [
        ("create", web, ""),
        ("create", "- { name: web, type: vm }", ""),
        ("create", "- { name: web, type: vm, spec: web }", ""),
        ("create", "- { name: web, type: vm, spec: base, execution: { mode: pull } }", ""),
        ("create", "- { name: web, type: vm, spec: base, preset: large }", ""),
        ("create", "- { name: web, type: vm, spec: base, disk: 11 }", ""),
        ("create", "- { name: web, type: vm, spec: base, image: pve }", ""),
        ("create", "- { name: web, type: vm, spec: base, vmid: 10005 }", ""),
        ("create", "- { name: web, type: vm, spec: base, host: metal }", ""),
        ("create", "- { name: web, type: pve, spec: base }", ""),
        ("create", "- { name: wob, type: vm, spec: base }", ""),
        ("create", web, "pve/9 m-web"),
        ("create", web, one),
        ("create", web, "pve/1 m-web node=web stopped"),
        ("create", web, "pve/1 m-web node=web mark=z stopped"),
        ("create", web, "pve/1 m-web node=web cores=2"),
        ("create", web, "pve/1 m-web node=web cores=3"),
        ("create", web, "pve/1 m-web node=web partial"),
        ("create", web, "pve/1 m-web node=web config=other"),
        ("create", web, "pve unreachable x"),
        ("config", web, one),
        ("config", web, "pve/1 m-web node=web config=other"),
        ("destroy", web, ""),
        ("destroy", web, one),
        ("destroy", web, "pve/2 m-web node=web mark=1"),
        ("destroy", web, "pve/1 m-wob node=web"),
        ("destroy", web, "pve/1 m-web node=web mark=z"),
        ("destroy", web, "pve/1 m-web node=web\npve/2 m-old node=old"),
        ("destroy --only web", web, "pve/1 m-web node=web\npve/2 m-old node=old"),
        ("create", "- { name: a, type: vm }\n- { name: b, type: vm }", ""),
        ("create", "- { name: a, type: vm }\n- { name: b, type: vm, depends_on: [a] }", ""),
    ];
    let mut digests = BTreeSet::new();
    for (goal, nodes, lines) in variants {
        let fleet = fleet(nodes);
        let plan = planned(goal, &fleet, &world(&fleet, lines));
        assert!(digests.insert(plan.digest), "{goal} {nodes} {lines}");
    }
    let away = fleet_where(&[("site.yaml", "name: away")], web);
    assert!(digests.insert(planned("create", &away, &world(&away, "")).digest));
}

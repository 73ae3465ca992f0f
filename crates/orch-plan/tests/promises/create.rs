//! `create` makes what is missing and mends what can be mended in place.

use expect_test::expect;
use orch_plan::Verdict;

use crate::simulate::{FIRST, LAST, order};
use crate::site::{check, fleet, planned, world};

const WEB: &str = "- { name: web, type: vm, spec: base }";
const DEEP: &str = "
- { name: inner, type: vm, parent: middle }
- { name: middle, type: pve, image: pve, parent: outer }
- { name: outer, type: pve, image: pve }";

#[test]
fn a_missing_node_is_created_and_configured() {
    check(
        "create",
        WEB,
        "",
        &expect![[r#"
        create m on pve (site home)

          + create        web
              create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10008
              configure   as base, by push

        1 node: 1 to create
    "#]],
    );
}

#[test]
fn a_node_without_a_spec_is_created_and_not_configured() {
    check(
        "create",
        "- { name: web, type: ct, template: alpine }",
        "",
        &expect![[r#"
        create m on pve (site home)

          + create        web
              create      `m-web`: ct from debian-13, 1 core, 1024 MB, 10 GB, VMID 10008

        1 node: 1 to create
    "#]],
    );
    check(
        "create",
        "- { name: web, type: vm }",
        "pve/1 m-web node=web config=never",
        &expect![[r#"
        create m on pve (site home)

          = unchanged     web

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn secrets_of_a_node_are_named_and_hosts_are_told_apart() {
    let nodes = "
- { name: web, type: vm, spec: web, host: cloud, preset: large, execution: { mode: pull } }
- { name: standby, type: vm, spec: base, host: metal, depends_on: [web] }";
    check(
        "create",
        nodes,
        "",
        &expect![[r#"
        create m on cloud, metal (site home)

          + create        web      on cloud
              create      `m-web`: vm from debian-13, 4 cores, 8192 MB, 64 GB
              configure   as web, by pull, secrets tls, db
          + create        standby  on metal
              create      `m-standby`: vm from this-machine, 1 core, 1024 MB, 10 GB
              configure   as base, by push

        2 nodes: 2 to create
    "#]],
    );
}

#[test]
fn parents_come_before_children_in_the_plan_and_in_every_order() {
    check(
        "create",
        DEEP,
        "",
        &expect![[r#"
        create m on pve (site home)

          + create        outer
              create      `m-outer`: pve from pve-9, 1 core, 1024 MB, 10 GB, VMID 10002
          + create        middle
              create      `m-middle`: pve from pve-9, 1 core, 1024 MB, 10 GB, inside outer
          + create        inner
              create      `m-inner`: vm from debian-13, 1 core, 1024 MB, 10 GB, inside middle

        3 nodes: 3 to create
    "#]],
    );
    let fleet = fleet(DEEP);
    let plan = planned("create", &fleet, &world(&fleet, ""));
    for mut choose in [FIRST, LAST] {
        assert_eq!(order(&plan, &mut choose), "up outer, up middle, up inner");
    }
}

#[test]
fn a_dependency_comes_before_its_dependents_in_every_order() {
    let fleet = fleet("- { name: a, type: vm, depends_on: [b] }\n- { name: b, type: vm, host: metal }");
    let plan = planned("create", &fleet, &world(&fleet, ""));
    for mut choose in [FIRST, LAST] {
        assert_eq!(order(&plan, &mut choose), "up b, up a");
    }
}

#[test]
fn a_running_node_with_its_configuration_is_unchanged() {
    check(
        "create",
        WEB,
        "pve/1 m-web node=web",
        &expect![[r#"
        create m on pve (site home)

          = unchanged     web

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn names_images_and_types_that_a_provider_cannot_tell_are_no_difference() {
    let nodes = "- { name: web, type: pve, spec: pve, vmid: 10001 }";
    check(
        "create",
        nodes,
        "pve/1 another-name node=web type=vm",
        &expect![[r#"
        create m on pve (site home)

          = unchanged     web

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn a_stopped_node_is_started() {
    check(
        "create",
        WEB,
        "pve/1 m-web node=web stopped",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  stopped
              start       `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)

        1 node: 1 to change
    "#]],
    );
}

#[test]
fn the_why_of_a_configuration_is_told() {
    check(
        "create",
        WEB,
        "pve/1 m-web node=web config=never",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  it was never configured
              configure   as base, by push

        1 node: 1 to change
    "#]],
    );
    check(
        "create",
        WEB,
        "pve/1 m-web node=web config=other",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  its configuration changed
              configure   as base, by push

        1 node: 1 to change
    "#]],
    );
    check(
        "create",
        WEB,
        "pve/1 m-web node=web config=unknown",
        &expect![[r#"
            create m on pve (site home)

              ~ change        web  its current configuration is unknown
                  configure   as base, by push

            1 node: 1 to change
        "#]],
    );
}

#[test]
fn a_larger_size_is_given_in_place_before_the_start_and_the_configuration() {
    let world = "pve/1 m-web node=web stopped cores=2 memory=2048 disk=5 config=other";
    check(
        "create",
        "- { name: web, type: vm, spec: base, preset: large }",
        world,
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  cores 2 -> 4; memory 2048 -> 8192; disk 5 -> 64; stopped; its configuration changed
              resize      2 cores, 2048 MB, 5 GB -> 4 cores, 8192 MB, 64 GB
              start       `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)
              configure   as base, by push

        1 node: 1 to change
    "#]],
    );
}

#[test]
fn cores_and_memory_shrink_in_place_and_a_disk_does_not() {
    check(
        "create",
        WEB,
        "pve/1 m-web node=web cores=2",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  cores 2 -> 1
              resize      2 cores, 1024 MB, 10 GB -> 1 core, 1024 MB, 10 GB

        1 node: 1 to change
    "#]],
    );
    check(
        "create",
        WEB,
        "pve/1 m-web node=web memory=4096",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  memory 4096 -> 1024
              resize      1 core, 4096 MB, 10 GB -> 1 core, 1024 MB, 10 GB

        1 node: 1 to change
    "#]],
    );
    check(
        "create",
        WEB,
        "pve/1 m-web node=web cores=2 disk=20",
        &expect![[r#"
            create m on pve (site home)

              ! needs replace web  cores 2 -> 1; disk 20 -> 10; this needs --replace
                  resize      2 cores, 1024 MB, 20 GB -> 1 core, 1024 MB, 20 GB

            1 node: 1 in need of --replace
        "#]],
    );
}

#[test]
fn each_size_is_mended_only_where_the_host_can() {
    for (able, unable, machine) in [
        ("cores", "memory,disk=any", "cores=2"),
        ("memory", "cores,disk=any", "memory=2048"),
        ("disk=any", "cores,memory,disk=grow", "disk=20"),
        ("disk=grow", "cores,memory", "disk=5"),
    ] {
        let fleet = fleet(WEB);
        let verdict = |can: &str| {
            let lines = format!("pve can {can}\npve/1 m-web node=web {machine}");
            let plan = planned("create", &fleet, &world(&fleet, &lines));
            plan.nodes[0].verdict
        };
        assert_eq!((verdict(able), verdict(unable)), (Verdict::Change, Verdict::NeedsReplace), "{machine}");
    }
}

#[test]
fn what_an_interrupted_run_began_is_finished_whatever_its_size() {
    check(
        "create",
        WEB,
        "pve/7 m-web-1 node=web partial vmid=10003 disk=99 config=never",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  an interrupted run began to make it
              adopt       `m-web-1`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10003
              configure   as base, by push

        1 node: 1 to change
    "#]],
    );
}

#[test]
fn two_machines_with_one_mark_are_refused() {
    check(
        "create",
        WEB,
        "pve/1 m-web node=web mark=x\npve/2 m-web node=web mark=x",
        &expect![[r#"
            create m on pve (site home)

              ! refused       web  two machines bear its mark (`1` and `2`): destroy it, then create it

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn marks_of_another_site_manifest_or_host_are_strangers_marks() {
    let world = "
        pve/1 a node=web site=away cores=8
        pve/2 b node=web manifest=n stopped
        pve/3 c node=web host=metal partial";
    check(
        "create",
        WEB,
        world,
        &expect![[r#"
        create m on pve (site home)

          + create        web
              create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10008
              configure   as base, by push

        1 node: 1 to create
    "#]],
    );
}

#[test]
fn a_host_that_cannot_be_looked_at_stops_its_own_nodes_alone() {
    let nodes = "
- { name: a, type: vm }
- { name: b, type: vm, host: metal }
- { name: c, type: vm, host: cloud, preset: small }";
    check(
        "create",
        nodes,
        "pve unreachable no route\nmetal unseen",
        &expect![[r#"
            create m on cloud, metal, pve (site home)

              ! refused       a  on pve; host `pve` cannot be looked at: no route
              ! refused       b  on metal; host `metal` was not looked at
              + create        c  on cloud
                  create      `m-c`: vm from debian-13, 1 core, 1024 MB, 10 GB

            3 nodes: 1 to create, 2 refused
        "#]],
    );
}

#[test]
fn nothing_is_made_inside_a_parent_that_will_not_run() {
    let nodes = "
- { name: outer, type: pve, image: pve, vmid: 200 }
- { name: middle, type: pve, image: pve, parent: outer }
- { name: inner, type: vm, parent: middle }";
    check(
        "create",
        nodes,
        "pve/200 db vmid=200",
        &expect![[r#"
            create m on pve (site home)

              ! refused       outer   VMID 200 belongs to another machine (`db`)
              ! refused       middle  its parent `outer` is refused
              ! refused       inner   its parent `middle` is refused

            3 nodes: 3 refused
        "#]],
    );
    check(
        "create",
        nodes,
        "pve/1 m-outer node=outer stopped image=pve-8",
        &expect![[r#"
            create m on pve (site home)

              ! needs replace outer   image pve-8 -> pve-9; stopped; this needs --replace
                  start       `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
              + create        middle
                  create      `m-middle`: pve from pve-9, 1 core, 1024 MB, 10 GB, inside outer
              + create        inner
                  create      `m-inner`: vm from debian-13, 1 core, 1024 MB, 10 GB, inside middle

            3 nodes: 2 to create, 1 in need of --replace
        "#]],
    );
    check(
        "create",
        nodes,
        "pve/1 m-outer node=outer\npve/2 m-outer-2 node=outer",
        &expect![[r#"
            create m on pve (site home)

              ! refused       outer   two machines bear its mark (`1` and `2`): destroy it, then create it
              ! refused       middle  its parent `outer` is refused
              ! refused       inner   its parent `middle` is refused

            3 nodes: 3 refused
        "#]],
    );
}

#[test]
fn a_child_is_made_inside_a_parent_that_runs_though_it_needs_a_replacement() {
    check(
        "create",
        DEEP,
        "pve/1 m-outer node=outer image=pve-8",
        &expect![[r#"
            create m on pve (site home)

              ! needs replace outer   image pve-8 -> pve-9; this needs --replace
              + create        middle
                  create      `m-middle`: pve from pve-9, 1 core, 1024 MB, 10 GB, inside outer
              + create        inner
                  create      `m-inner`: vm from debian-13, 1 core, 1024 MB, 10 GB, inside middle

            3 nodes: 2 to create, 1 in need of --replace
        "#]],
    );
}

#[test]
fn machines_that_the_manifest_no_longer_describes_are_listed_and_left_alone() {
    let world = "pve/1 m-web node=web\npve/2 m-old node=old-one\npve/3 x node=old-one manifest=n";
    check(
        "create",
        WEB,
        world,
        &expect![[r#"
            create m on pve (site home)

              = unchanged     web
              ? left over     old-one  `m-old` is no longer described; `destroy --only old-one` removes it

            1 node: 1 unchanged
        "#]],
    );
    check(
        "config",
        WEB,
        world,
        &expect![[r#"
            config m on pve (site home)

              = unchanged     web
              ? left over     old-one  `m-old` is no longer described; `destroy --only old-one` removes it

            1 node: 1 unchanged
        "#]],
    );
}

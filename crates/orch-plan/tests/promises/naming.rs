//! Names and VMIDs of what is made: stable, in range, and never a stranger's.

use expect_test::expect;
use orch_plan::Action;

use crate::site::{check, check_fleet, fleet, fleet_where, planned, world};

const WEB: &str = "- { name: web, type: vm }";

#[test]
fn a_stranger_keeps_our_name_and_our_machine_gets_a_distinct_one() {
    check(
        "create",
        WEB,
        "pve/1 m-web cores=8",
        &expect![[r#"
        create m on pve (site home)

          + create        web
              create      `m-web-a09933bd`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10008

        1 node: 1 to create
    "#]],
    );
}

#[test]
fn a_node_is_refused_where_both_of_its_names_are_taken() {
    let fleet = fleet(WEB);
    let distinct = fleet.nodes[0].identity.distinct_name();
    check_fleet(
        "create",
        &fleet,
        &format!("pve/1 m-web\npve/2 {distinct}"),
        &expect![[r#"
            create m on pve (site home)

              ! refused       web  its names `m-web` and `m-web-a09933bd` belong to other machines

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn a_name_that_is_too_long_is_cut_and_stays_distinct() {
    let long = "n".repeat(63);
    check(
        "create",
        &format!("- {{ name: {long}, type: vm, host: metal }}"),
        "",
        &expect![[r#"
        create m on metal (site home)

          + create        nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
              create      `m-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-80581ce0`: vm from this-machine, 1 core, 1024 MB, 10 GB

        1 node: 1 to create
    "#]],
    );
}

#[test]
fn a_stranger_keeps_the_vmid_that_a_node_insists_on() {
    check(
        "create",
        "- { name: web, type: vm, vmid: 200 }",
        "pve/200 db vmid=200",
        &expect![[r#"
            create m on pve (site home)

              ! refused       web  VMID 200 belongs to another machine (`db`)

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn a_vmid_is_derived_from_the_identity_alone() {
    assert_eq!(vmids(WEB, ""), vmids(&format!("- {{ name: other, type: vm, host: metal }}\n{WEB}"), ""));
    assert_eq!(vmids(WEB, ""), [10_008]);
}

#[test]
fn a_derived_vmid_steps_past_taken_ones_and_round_the_end_of_the_range() {
    assert_eq!(vmids(WEB, "pve/1 db vmid=10008"), [10_009]);
    assert_eq!(vmids(WEB, "pve/1 db vmid=10008\npve/2 dc vmid=10009"), [10_000]);
}

#[test]
fn a_derived_vmid_is_never_one_that_another_node_insists_on() {
    let insists = "- { name: late, type: vm, vmid: 10008, depends_on: [web] }";
    assert_eq!(vmids(&format!("{WEB}\n{insists}"), ""), [10_009, 10_008]);
}

#[test]
fn a_whole_range_is_used_and_then_nodes_are_refused() {
    let nodes = "- { name: web, count: 11, type: vm }";
    let mut got = vmids(nodes, "");
    got.sort_unstable();
    assert_eq!(got, (10_000..=10_009).collect::<Vec<u32>>());
    let few = (
        "hosts/pve.yaml",
        "{ provider: proxmox, api_endpoint: 'https://p', api_token: 'secret:p', datastore: z, vmid_range: [300, 300], images: { '*': d } }",
    );
    check_fleet(
        "create",
        &fleet_where(&[few], "- { name: w, count: 3, type: vm }"),
        "",
        &expect![[r#"
            create m on pve (site home)

              + create        w-1
                  create      `m-w-1`: vm from d, 1 core, 1024 MB, 10 GB, VMID 300
              ! refused       w-2  every VMID from 300 to 300 is taken
              ! refused       w-3  every VMID from 300 to 300 is taken

            3 nodes: 1 to create, 2 refused
        "#]],
    );
}

#[test]
fn inside_another_node_a_vmid_is_what_the_manifest_says_or_the_nodes_own_choice() {
    let nodes = "
- { name: outer, type: pve, vmid: 100 }
- { name: a, type: vm, vmid: 100, parent: outer }
- { name: b, type: vm, parent: outer }";
    check(
        "create",
        nodes,
        "",
        &expect![[r#"
        create m on pve (site home)

          + create        outer
              create      `m-outer`: pve from debian-13, 1 core, 1024 MB, 10 GB, VMID 100
          + create        a
              create      `m-a`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 100, inside outer
          + create        b
              create      `m-b`: vm from debian-13, 1 core, 1024 MB, 10 GB, inside outer

        3 nodes: 3 to create
    "#]],
    );
}

#[test]
fn hosts_without_vmids_get_none_even_where_one_is_written() {
    check(
        "create",
        "- { name: web, type: vm, vmid: 200, host: cloud, preset: small }",
        "",
        &expect![[r#"
        create m on cloud (site home)

          + create        web
              create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB

        1 node: 1 to create
    "#]],
    );
}

/// The VMIDs of what is created, in the order of the plan.
fn vmids(nodes: &str, lines: &str) -> Vec<u32> {
    let fleet = fleet(nodes);
    let plan = planned("create", &fleet, &world(&fleet, lines));
    let actions = plan.nodes.iter().flat_map(|node| &node.up);
    let vmids = actions.filter_map(|action| match action {
        Action::Create { machine } => machine.vmid,
        _ => None,
    });
    vmids.collect()
}

#[test]
fn names_and_vmids_inside_another_machine_take_none_on_the_host() {
    let world = "pve/1 host\npve/2 m-web vmid=9000 inside=1";
    check(
        "create",
        "- { name: web, type: vm, vmid: 9000 }",
        world,
        &expect![[r#"
        create m on pve (site home)

          + create        web
              create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 9000

        1 node: 1 to create
    "#]],
    );
}

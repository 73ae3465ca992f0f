//! What cannot be mended in place is made anew with `--replace`, and only then.

use expect_test::expect;

use crate::simulate::{FIRST, LAST, World, order};
use crate::site::{check, fleet, planned, world};

const WEB: &str = "- { name: web, type: vm, spec: base }";
const DEEP: &str = "
- { name: outer, type: pve, image: pve }
- { name: middle, type: pve, image: pve, parent: outer }
- { name: inner, type: vm, parent: middle }
- { name: beside, type: vm, depends_on: [outer] }";
const DEEP_WORLD: &str = "
    pve/1 m-outer node=outer image=pve-8
    pve/2 m-middle node=middle
    pve/3 m-inner node=inner
    pve/4 m-beside node=beside";

#[test]
fn another_image_type_or_vmid_needs_a_replacement_that_is_not_made_unasked() {
    check(
        "create",
        WEB,
        "pve/1 m-web node=web image=debian-12 config=other",
        &expect![[r#"
            create m on pve (site home)

              ! needs replace web  image debian-12 -> debian-13; its configuration changed; this needs --replace
                  configure   as base, by push

            1 node: 1 in need of --replace
        "#]],
    );
    check(
        "create",
        WEB,
        "pve/1 m-web node=web type=ct",
        &expect![[r#"
            create m on pve (site home)

              ! needs replace web  type ct -> vm; this needs --replace

            1 node: 1 in need of --replace
        "#]],
    );
    let insists = "- { name: web, type: vm, spec: base, vmid: 10002 }";
    check(
        "create",
        insists,
        "pve/1 m-web node=web vmid=10001 cores=2",
        &expect![[r#"
            create m on pve (site home)

              ! needs replace web  cores 2 -> 1; vmid 10001 -> 10002; this needs --replace
                  resize      2 cores, 1024 MB, 10 GB -> 1 core, 1024 MB, 10 GB

            1 node: 1 in need of --replace
        "#]],
    );
}

#[test]
fn with_replace_a_machine_is_destroyed_and_made_under_its_old_name_and_vmid() {
    check(
        "create --replace",
        WEB,
        "pve/1 other-name node=web image=debian-12 vmid=10004",
        &expect![[r#"
            create m on pve (site home)

              ± replace       web  image debian-12 -> debian-13
                  destroy     `other-name` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `other-name`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10004
                  configure   as base, by push

            1 node: 1 to replace
        "#]],
    );
}

#[test]
fn with_replace_what_can_be_mended_in_place_still_is() {
    check(
        "create --replace",
        WEB,
        "pve/1 m-web node=web cores=2",
        &expect![[r#"
        create m on pve (site home)

          ~ change        web  cores 2 -> 1
              resize      2 cores, 1024 MB, 10 GB -> 1 core, 1024 MB, 10 GB

        1 node: 1 to change
    "#]],
    );
}

#[test]
fn a_replaced_machine_moves_to_the_vmid_insisted_on_and_never_to_a_strangers() {
    let insists = "- { name: web, type: vm, vmid: 200 }";
    check(
        "create --replace",
        insists,
        "pve/1 m-web node=web vmid=10001",
        &expect![[r#"
            create m on pve (site home)

              ± replace       web  vmid 10001 -> 200
                  destroy     `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 200

            1 node: 1 to replace
        "#]],
    );
    check(
        "create --replace",
        insists,
        "pve/1 m-web node=web vmid=10001\npve/2 db vmid=200",
        &expect![[r#"
            create m on pve (site home)

              ! refused       web  VMID 200 belongs to another machine (`db`)

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn a_replaced_machine_leaves_a_vmid_that_another_node_insists_on() {
    let nodes = "- { name: a, type: vm, vmid: 10003 }\n- { name: b, type: vm }";
    check(
        "create --replace",
        nodes,
        "pve/1 m-b node=b vmid=10003 image=debian-12",
        &expect![[r#"
            create m on pve (site home)

              ! refused       a  VMID 10003 belongs to another machine (`m-b`)
              ± replace       b  image debian-12 -> debian-13
                  destroy     `m-b` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-b`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10009

            2 nodes: 1 to replace, 1 refused
        "#]],
    );
}

#[test]
fn a_replaced_machine_on_a_host_without_vmids_gets_none() {
    let nodes = "- { name: web, type: vm, vmid: 200, host: metal }";
    check(
        "create --replace",
        nodes,
        "metal/1 m-web node=web image=old",
        &expect![[r#"
            create m on metal (site home)

              ± replace       web  image old -> this-machine
                  destroy     `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-web`: vm from this-machine, 1 core, 1024 MB, 10 GB

            1 node: 1 to replace
        "#]],
    );
}

#[test]
fn a_full_range_of_vmids_stops_no_replacement() {
    let strangers = (10_001..=10_009).map(|vmid| format!("pve/{vmid} s{vmid} vmid={vmid}\n"));
    let ours = "pve/1 m-web node=web vmid=10000 image=debian-12";
    check(
        "create --replace",
        WEB,
        &strangers.chain([ours.to_owned()]).collect::<Vec<_>>().concat(),
        &expect![[r#"
            create m on pve (site home)

              ± replace       web  image debian-12 -> debian-13
                  destroy     `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10000
                  configure   as base, by push

            1 node: 1 to replace
        "#]],
    );
}

#[test]
fn whatever_lives_on_a_replaced_node_is_replaced_with_it() {
    check(
        "create --replace",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
            create m on pve (site home)

              ± replace       outer   image pve-8 -> pve-9
                  destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-outer`: pve from pve-9, 1 core, 1024 MB, 10 GB, VMID 10002
              ± replace       middle  its parent `outer` is made anew
                  destroy     `m-middle` (id 2, mark 00000000-0000-0000-0000-000000000032)
                  create      `m-middle`: pve from pve-9, 1 core, 1024 MB, 10 GB, inside outer
              ± replace       inner   its parent `middle` is made anew
                  destroy     `m-inner` (id 3, mark 00000000-0000-0000-0000-000000000033)
                  create      `m-inner`: vm from debian-13, 1 core, 1024 MB, 10 GB, inside middle
              = unchanged     beside

            4 nodes: 3 to replace, 1 unchanged
        "#]],
    );
}

#[test]
fn children_go_down_before_a_replaced_parent_and_come_up_after_it() {
    let fleet = fleet(DEEP);
    let plan = planned("create --replace", &fleet, &world(&fleet, DEEP_WORLD));
    for mut choose in [FIRST, LAST] {
        let order = order(&plan, &mut choose);
        assert_eq!(order, "down inner, down middle, down outer, up outer, up middle, up inner");
        let mut world = World::new(&fleet, world(&fleet, DEEP_WORLD));
        world.run(&plan, &mut choose);
        assert!(planned("create", &fleet, &world.observed).is_noop());
    }
}

#[test]
fn a_missing_child_of_a_replaced_node_is_created() {
    let world = "pve/1 m-outer node=outer image=pve-8";
    check(
        "create --replace --only outer,middle",
        DEEP,
        world,
        &expect![[r#"
            create m on pve (site home)

              ± replace       outer   image pve-8 -> pve-9
                  destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-outer`: pve from pve-9, 1 core, 1024 MB, 10 GB, VMID 10002
              + create        middle
                  create      `m-middle`: pve from pve-9, 1 core, 1024 MB, 10 GB, inside outer

            2 nodes: 1 to create, 1 to replace
        "#]],
    );
}

#[test]
fn a_node_is_not_replaced_under_a_child_that_is_not_selected() {
    check(
        "create --replace --only outer",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
            create m on pve (site home)

              ! refused       outer  `middle` lives on it and is not selected: use `--only outer+`

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn a_grandchild_that_is_not_selected_holds_all_that_it_lives_inside_of() {
    check(
        "create --replace --only outer,middle",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
            create m on pve (site home)

              ! refused       outer   `inner` lives on it and is not selected: use `--only outer+`
              = unchanged     middle

            2 nodes: 1 unchanged, 1 refused
        "#]],
    );
}

#[test]
fn a_node_is_not_replaced_under_a_child_whose_mark_two_machines_bear() {
    let doubled = format!("{DEEP_WORLD}\npve/5 m-inner-2 node=inner");
    check(
        "create --replace",
        DEEP,
        &doubled,
        &expect![[r#"
            create m on pve (site home)

              ! refused       outer   several machines bear the mark of `inner`, which lives on it: destroy that first
              = unchanged     middle
              ! refused       inner   two machines bear its mark (`3` and `5`): destroy it, then create it
              = unchanged     beside

            4 nodes: 2 unchanged, 2 refused
        "#]],
    );
}

#[test]
fn what_was_begun_from_another_image_is_not_finished_but_replaced() {
    let world = "pve/1 m-web node=web partial image=debian-12 config=never";
    check(
        "create",
        WEB,
        world,
        &expect![[r#"
            create m on pve (site home)

              ! refused       web  an interrupted run made part of it differently (image debian-12 -> debian-13); this needs --replace

            1 node: 1 refused
        "#]],
    );
    check(
        "create --replace",
        WEB,
        world,
        &expect![[r#"
            create m on pve (site home)

              ± replace       web  image debian-12 -> debian-13
                  destroy     `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)
                  create      `m-web`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10008
                  configure   as base, by push

            1 node: 1 to replace
        "#]],
    );
}

#[test]
fn a_child_is_not_replaced_inside_a_parent_that_cannot_take_it_back() {
    let doubled = "
        pve/1 m-outer node=outer
        pve/2 m-outer-2 node=outer
        pve/3 m-middle node=middle image=pve-8";
    check(
        "create --replace",
        DEEP,
        doubled,
        &expect![[r#"
            create m on pve (site home)

              ! refused       outer   two machines bear its mark (`1` and `2`): destroy it, then create it
              ! refused       middle  its parent `outer` is refused
              ! refused       inner   its parent `middle` is refused
              + create        beside
                  create      `m-beside`: vm from debian-13, 1 core, 1024 MB, 10 GB, VMID 10004

            4 nodes: 1 to create, 3 refused
        "#]],
    );
}

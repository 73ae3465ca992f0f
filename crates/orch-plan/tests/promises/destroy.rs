//! `destroy` takes down what is ours, from the inside out, and nothing else.

use expect_test::expect;

use crate::simulate::{FIRST, LAST, World, order};
use crate::site::{check, fleet, planned, world};

const WEB: &str = "- { name: web, type: vm, spec: base }";
const DEEP: &str = "
- { name: outer, type: pve }
- { name: middle, type: pve, parent: outer }
- { name: inner, type: vm, parent: middle }";
const DEEP_WORLD: &str = "
    pve/1 m-outer node=outer
    pve/2 m-middle node=middle
    pve/3 m-inner node=inner";

#[test]
fn what_is_gone_is_unchanged() {
    check(
        "destroy",
        WEB,
        "",
        &expect![[r#"
        destroy m on pve (site home)

          = unchanged     web  it does not exist

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn a_machine_is_destroyed_in_whatever_state_it_is() {
    for state in ["", "stopped", "partial"] {
        let fleet = fleet(WEB);
        let observed = world(&fleet, &format!("pve/1 m-web node=web {state}"));
        assert_eq!(planned("destroy", &fleet, &observed).counts().destroy, 1, "{state}");
    }
}

#[test]
fn every_machine_with_the_mark_of_a_node_is_destroyed() {
    let lines = "pve/1 m-web node=web mark=x\npve/2 m-web node=web mark=x\npve/3 copy node=web";
    check(
        "destroy",
        WEB,
        lines,
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       web  3 machines bear its mark
              destroy     `m-web` (id 1, mark 00000000-0000-0000-0000-000000000078)
              destroy     `m-web` (id 2, mark 00000000-0000-0000-0000-000000000078)
              destroy     `copy` (id 3, mark 00000000-0000-0000-0000-000000000033)

        1 node: 1 to destroy
    "#]],
    );
    let fleet = fleet(WEB);
    let mut world = World::new(&fleet, world(&fleet, lines));
    let plan = planned("destroy", &fleet, &world.observed);
    world.run(&plan, &mut |_| 0);
    assert!(planned("destroy", &fleet, &world.observed).is_noop());
}

#[test]
fn children_are_destroyed_before_their_parents_in_every_order() {
    check(
        "destroy",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       outer
              destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
          - destroy       middle
              destroy     `m-middle` (id 2, mark 00000000-0000-0000-0000-000000000032)
          - destroy       inner
              destroy     `m-inner` (id 3, mark 00000000-0000-0000-0000-000000000033)

        3 nodes: 3 to destroy
    "#]],
    );
    let fleet = fleet(DEEP);
    let plan = planned("destroy", &fleet, &world(&fleet, DEEP_WORLD));
    for mut choose in [FIRST, LAST] {
        assert_eq!(order(&plan, &mut choose), "down inner, down middle, down outer");
    }
}

#[test]
fn dependents_are_destroyed_before_what_they_depend_on_even_through_one_that_is_gone() {
    let nodes = "
- { name: a, type: vm }
- { name: b, type: vm, depends_on: [a] }
- { name: c, type: vm, depends_on: [b] }";
    let fleet = fleet(nodes);
    let plan = planned("destroy", &fleet, &world(&fleet, "pve/1 m-a node=a\npve/3 m-c node=c"));
    for mut choose in [FIRST, LAST] {
        assert_eq!(order(&plan, &mut choose), "down c, down a");
    }
}

#[test]
fn strangers_are_never_touched() {
    let world = "
        pve/1 m-web
        pve/2 a node=web site=away
        pve/3 b node=web manifest=n
        pve/4 c node=web host=metal
        metal/5 d node=web host=metal";
    check(
        "destroy",
        WEB,
        world,
        &expect![[r#"
        destroy m on pve (site home)

          = unchanged     web  it does not exist

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn leftovers_go_with_the_whole_and_before_whatever_they_may_live_on() {
    let lines = format!("{DEEP_WORLD}\npve/4 m-old node=old-one\npve/5 m-old node=old-one");
    check(
        "destroy",
        DEEP,
        &lines,
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       outer
              destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
          - destroy       middle
              destroy     `m-middle` (id 2, mark 00000000-0000-0000-0000-000000000032)
          - destroy       inner
              destroy     `m-inner` (id 3, mark 00000000-0000-0000-0000-000000000033)
          - destroy       old-one  the manifest no longer describes it
              destroy     `m-old` (id 4, mark 00000000-0000-0000-0000-000000000034)
          - destroy       old-one  the manifest no longer describes it
              destroy     `m-old` (id 5, mark 00000000-0000-0000-0000-000000000035)

        5 nodes: 5 to destroy
    "#]],
    );
    let fleet = fleet(DEEP);
    let plan = planned("destroy", &fleet, &world(&fleet, &lines));
    for mut choose in [FIRST, LAST] {
        let order = order(&plan, &mut choose);
        assert!(order.ends_with("down outer") && order.matches("down old-one").count() == 2, "{order}");
        let before_middle = order.split_once("down middle").map_or("", |(before, _)| before);
        assert_eq!(before_middle.matches("down old-one").count(), 2, "{order}");
    }
}

#[test]
fn leftovers_are_left_alone_where_nodes_are_named_even_if_all_are() {
    let world = "pve/1 m-web node=web\npve/2 m-old node=old-one";
    check(
        "destroy --only web",
        WEB,
        world,
        &expect![[r#"
            destroy m on pve (site home)

              - destroy       web
                  destroy     `m-web` (id 1, mark 00000000-0000-0000-0000-000000000031)
              ? left over     old-one  `m-old` is no longer described; `destroy --only old-one` removes it

            1 node: 1 to destroy
        "#]],
    );
}

#[test]
fn a_leftover_is_destroyed_alone_where_it_is_named() {
    let world = "pve/1 m-web node=web\npve/2 m-old node=old-one";
    check(
        "destroy --only old-one",
        WEB,
        world,
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       old-one  the manifest no longer describes it
              destroy     `m-old` (id 2, mark 00000000-0000-0000-0000-000000000032)

        1 node: 1 to destroy
    "#]],
    );
}

#[test]
fn a_node_that_moved_to_another_host_leaves_its_machine_over_on_the_first() {
    let nodes = "- { name: web, type: vm, host: metal }\n- { name: other, type: vm }";
    check(
        "create",
        nodes,
        "pve/1 m-web node=web\npve/2 m-other node=other",
        &expect![[r#"
            create m on metal, pve (site home)

              + create        web    on metal
                  create      `m-web`: vm from this-machine, 1 core, 1024 MB, 10 GB
              = unchanged     other  on pve
              ? left over     web    `m-web` stayed on pve when the node moved

            2 nodes: 1 to create, 1 unchanged
        "#]],
    );
}

#[test]
fn a_parent_with_a_child_that_is_not_selected_is_refused_and_with_plus_it_goes() {
    check(
        "destroy --only outer",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
            destroy m on pve (site home)

              ! refused       outer  `middle` lives on it and is not selected: use `--only outer+`

            1 node: 1 refused
        "#]],
    );
    check(
        "destroy --only outer+",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       outer
              destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
          - destroy       middle
              destroy     `m-middle` (id 2, mark 00000000-0000-0000-0000-000000000032)
          - destroy       inner
              destroy     `m-inner` (id 3, mark 00000000-0000-0000-0000-000000000033)

        3 nodes: 3 to destroy
    "#]],
    );
    check(
        "destroy --only outer",
        DEEP,
        "pve/1 m-outer node=outer",
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       outer
              destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)

        1 node: 1 to destroy
    "#]],
    );
}

#[test]
fn a_grandchild_that_is_not_selected_holds_all_that_it_lives_inside_of() {
    check(
        "destroy --only outer,middle",
        DEEP,
        DEEP_WORLD,
        &expect![[r#"
            destroy m on pve (site home)

              ! refused       outer   `inner` lives on it and is not selected: use `--only outer+`
              ! refused       middle  `inner` lives on it and is not selected: use `--only middle+`

            2 nodes: 2 refused
        "#]],
    );
}

#[test]
fn a_host_that_cannot_be_looked_at_keeps_its_nodes() {
    let nodes = "- { name: a, type: vm }\n- { name: b, type: vm, host: metal }";
    check(
        "destroy",
        nodes,
        "pve unreachable no route\nmetal/1 m-b node=b",
        &expect![[r#"
            destroy m on metal, pve (site home)

              ! refused       a  on pve; host `pve` cannot be looked at: no route
              - destroy       b  on metal
                  destroy     `m-b` (id 1, mark 00000000-0000-0000-0000-000000000031)

            2 nodes: 1 to destroy, 1 refused
        "#]],
    );
}

const NEST: &str = "- { name: outer, type: pve }\n- { name: inner, type: vm, parent: outer }";

#[test]
fn a_node_on_which_a_strangers_machine_lives_is_not_destroyed_with_it() {
    let world = "pve/1 m-outer node=outer\npve/2 m-inner node=inner inside=1\npve/3 precious inside=1";
    check(
        "destroy",
        NEST,
        world,
        &expect![[r#"
        destroy m on pve (site home)

          ! refused       outer  machine `precious` lives on it, and is not a node of this manifest
          - destroy       inner
              destroy     `m-inner` (id 2, mark 00000000-0000-0000-0000-000000000032)

        2 nodes: 1 to destroy, 1 refused
    "#]],
    );
    check(
        "create --replace",
        NEST,
        &world.replace("node=outer", "node=outer image=old"),
        &expect![[r#"
        create m on pve (site home)

          ! refused       outer  machine `precious` lives on it, and is not a node of this manifest
          = unchanged     inner

        2 nodes: 1 unchanged, 1 refused
    "#]],
    );
}

#[test]
fn a_node_on_which_a_leftover_lives_goes_only_with_it() {
    let world = "pve/1 m-outer node=outer\npve/2 m-old node=old-one inside=1";
    check(
        "destroy --only outer",
        NEST,
        world,
        &expect![[r#"
            destroy m on pve (site home)

              ! refused       outer    machine `m-old` lives on it, and is not a node of this manifest
              ? left over     old-one  `m-old` is no longer described; `destroy --only old-one` removes it

            1 node: 1 refused
        "#]],
    );
    check(
        "destroy",
        NEST,
        world,
        &expect![[r#"
        destroy m on pve (site home)

          - destroy       outer
              destroy     `m-outer` (id 1, mark 00000000-0000-0000-0000-000000000031)
          = unchanged     inner    it does not exist
          - destroy       old-one  the manifest no longer describes it
              destroy     `m-old` (id 2, mark 00000000-0000-0000-0000-000000000032)

        3 nodes: 2 to destroy, 1 unchanged
    "#]],
    );
}

//! `config` configures what runs, makes nothing, and says who does.

use expect_test::expect;

use crate::site::check;

const WEB: &str = "- { name: web, type: vm, spec: base, execution: { mode: hybrid } }";

#[test]
fn a_node_that_is_not_there_stopped_half_made_or_doubled_is_refused_with_the_way_out() {
    check(
        "config",
        WEB,
        "",
        &expect![[r#"
            config m on pve (site home)

              ! refused       web  it does not exist: `create` makes it

            1 node: 1 refused
        "#]],
    );
    check(
        "config",
        WEB,
        "pve/1 m-web node=web stopped config=other",
        &expect![[r#"
            config m on pve (site home)

              ! refused       web  it is stopped: `create` starts it

            1 node: 1 refused
        "#]],
    );
    check(
        "config",
        WEB,
        "pve/1 m-web node=web partial config=never",
        &expect![[r#"
            config m on pve (site home)

              ! refused       web  an interrupted run began to make it: `create` finishes it

            1 node: 1 refused
        "#]],
    );
    check(
        "config",
        WEB,
        "pve/1 m-web node=web\npve/2 m-web node=web",
        &expect![[r#"
            config m on pve (site home)

              ! refused       web  several machines bear its mark: destroy it, then create it

            1 node: 1 refused
        "#]],
    );
}

#[test]
fn a_node_with_its_configuration_is_unchanged_whatever_else_differs() {
    check(
        "config",
        WEB,
        "pve/1 m-web node=web cores=9 image=debian-12",
        &expect![[r#"
        config m on pve (site home)

          = unchanged     web

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn a_node_with_another_configuration_or_none_is_configured() {
    check(
        "config",
        WEB,
        "pve/1 m-web node=web config=other",
        &expect![[r#"
        config m on pve (site home)

          ~ change        web  its configuration changed
              configure   as base, by hybrid

        1 node: 1 to change
    "#]],
    );
    check(
        "config",
        WEB,
        "pve/1 m-web node=web config=never",
        &expect![[r#"
        config m on pve (site home)

          ~ change        web  it was never configured
              configure   as base, by hybrid

        1 node: 1 to change
    "#]],
    );
    check(
        "config",
        WEB,
        "pve/1 m-web node=web config=unknown",
        &expect![[r#"
            config m on pve (site home)

              ~ change        web  its current configuration is unknown
                  configure   as base, by hybrid

            1 node: 1 to change
        "#]],
    );
}

#[test]
fn a_node_without_a_spec_has_nothing_to_configure() {
    check(
        "config",
        "- { name: web, type: vm }",
        "pve/1 m-web node=web config=never",
        &expect![[r#"
        config m on pve (site home)

          = unchanged     web

        1 node: 1 unchanged
    "#]],
    );
}

#[test]
fn replace_is_no_word_for_config() {
    check(
        "config --replace",
        WEB,
        "pve/1 m-web node=web image=debian-12",
        &expect![[r#"
        config m on pve (site home)

          = unchanged     web

        1 node: 1 unchanged
    "#]],
    );
}

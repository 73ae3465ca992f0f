//! Older layouts: what is renamed, what is ignored, and what must be migrated.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check, check_spec};
use expect_test::expect;

#[test]
fn older_names_are_taken_with_a_warning_that_names_the_new_one() {
    check(
        &[("hosts/h.yaml", "provider: local\nssh_user: admin\n")],
        &expect![[r#"
        warning: hosts/h.yaml:2:1: `ssh_user` is an older name of `ssh.user`
          |
        2 | ssh_user: admin
          | ^^^^^^^^
        hint: write `ssh.user`"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: local\nhost_user: admin\n")],
        &expect![[r#"
        warning: hosts/h.yaml:2:1: `host_user` is an older name of `ssh.user`
          |
        2 | host_user: admin
          | ^^^^^^^^^
        hint: write `ssh.user`"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: local\nspec_server: https://orch:44443\nvm_user: ops\n")],
        &expect![[r#"
            warning: hosts/h.yaml:2:1: `spec_server` is an older name of `server_url`
              |
            2 | spec_server: https://orch:44443
              | ^^^^^^^^^^^
            hint: write `server_url`

            warning: hosts/h.yaml:3:1: `vm_user` is an older name of `node_user`
              |
            3 | vm_user: ops
              | ^^^^^^^
            hint: write `node_user`"#]],
    );
    check(
        &[("site.yaml", "spec_server: https://orch:44443\nautomation_user: ops\n")],
        &expect![[r#"
        warning: site.yaml:1:1: `spec_server` is an older name of `server_url`
          |
        1 | spec_server: https://orch:44443
          | ^^^^^^^^^^^
        hint: write `server_url`

        warning: site.yaml:2:1: `automation_user` is an older name of `node_user`
          |
        2 | automation_user: ops
          | ^^^^^^^^^^^^^^^
        hint: write `node_user`"#]],
    );
    check(
        &[("site.yaml", "defaults:\n  vm_user: ops\n")],
        &expect![[r#"
        warning: site.yaml:2:3: `vm_user` is an older name of `node_user`
          |
        2 |   vm_user: ops
          |   ^^^^^^^
        hint: write `node_user`"#]],
    );
}

#[test]
fn an_older_name_beside_the_new_one_is_ignored_and_says_so() {
    check(
        &[("hosts/h.yaml", "provider: local\nnode_user: ops\nvm_user: admin\n")],
        &expect![[r#"
        warning: hosts/h.yaml:3:1: `vm_user` is an older name of `node_user`
          |
        3 | vm_user: admin
          | ^^^^^^^
        hint: it is ignored, because `node_user` is given too"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: local\nssh: { user: ops }\nssh_user: admin\n")],
        &expect![[r#"
        warning: hosts/h.yaml:3:1: `ssh_user` is an older name of `ssh.user`
          |
        3 | ssh_user: admin
          | ^^^^^^^^
        hint: it is ignored, because `ssh.user` is given too"#]],
    );
}

#[test]
fn an_older_name_with_a_wrong_value_is_placed_where_it_stands() {
    check(
        &[("hosts/h.yaml", "provider: local\nssh_user: Admin\n")],
        &expect![[r#"
            warning: hosts/h.yaml:2:1: `ssh_user` is an older name of `ssh.user`
              |
            2 | ssh_user: Admin
              | ^^^^^^^^
            hint: write `ssh.user`

            error: hosts/h.yaml:2:11: `Admin` is not a user name: lower-case letters, digits, `_` and `-`, at most 32 characters
              |
            2 | ssh_user: Admin
              |           ^^^^^"#]],
    );
}

#[test]
fn fields_that_orch_does_not_need_are_ignored_with_a_warning() {
    check(
        &[(
            "site.yaml",
            "image_release: 7\npve_remove_subscription_nag: true\ndefaults: { image_release: 7 }\n",
        )],
        &expect![[r#"
            warning: site.yaml:1:1: `image_release` has no effect any more
              |
            1 | image_release: 7
              | ^^^^^^^^^^^^^
            hint: remove it

            warning: site.yaml:2:1: `pve_remove_subscription_nag` has no effect any more
              |
            2 | pve_remove_subscription_nag: true
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: remove it

            warning: site.yaml:3:13: `image_release` has no effect any more
              |
            3 | defaults: { image_release: 7 }
              |             ^^^^^^^^^^^^^
            hint: remove it"#]],
    );
    check(
        &[("postures/p.yaml", "auth: { method: token }\n")],
        &expect![[r#"
        warning: postures/p.yaml:1:1: `auth` has no effect any more
          |
        1 | auth: { method: token }
          | ^^^^
        hint: remove it"#]],
    );
    check(
        &[(
            "manifests/m.yaml",
            "schema_version: 2\nname: m\nsettings: { timeout_buffer: 60 }\nnodes: [{ name: a, type: vm }]\n",
        )],
        &expect![[r#"
            warning: manifests/m.yaml:3:13: `timeout_buffer` has no effect any more
              |
            3 | settings: { timeout_buffer: 60 }
              |             ^^^^^^^^^^^^^^
            hint: remove it"#]],
    );
    check_spec(
        "run: { trigger: webhook, url: https://x, interval: 5m }\n",
        &expect![[r#"
        warning: specs/s.yaml:2:17: this trigger has no effect any more
          |
        2 | run: { trigger: webhook, url: https://x, interval: 5m }
          |                 ^^^^^^^
        hint: use `schedule` with an interval, or `manual`"#]],
    );
    check_spec(
        "run: { trigger: git, repo: x }\n",
        &expect![[r#"
        warning: specs/s.yaml:2:17: this trigger has no effect any more
          |
        2 | run: { trigger: git, repo: x }
          |                 ^^^
        hint: use `schedule` with an interval, or `manual`"#]],
    );
    check_spec(
        "run: { trigger: cron }\n",
        &expect![[r#"
            error: specs/s.yaml:2:17: `cron` is not a trigger
              |
            2 | run: { trigger: cron }
              |                 ^^^^
            hint: choose from `manual`, `schedule`"#]],
    );
}

#[test]
fn a_manifest_of_version_1_is_refused_once_with_the_way_to_migrate() {
    let levels = "schema_version: 1\nname: other\nlevels:\n  - { name: outer, type: pve, spec: nowhere }\n";
    check(
        &[("manifests/m.yaml", levels)],
        &expect![[r#"
        error: manifests/m.yaml:1:1: this manifest has the layout of version 1, which orch does not read
          |
        1 | schema_version: 1
          | ^^^^^^^^^^^^^^
        hint: set `schema_version: 2`, and write each entry of `levels` as an entry of `nodes` whose `parent:` names the node one level above (the first level has none)"#]],
    );
    check(
        &[("manifests/m.yaml", "schema_version: 2\nname: m\nlevels: []\n")],
        &expect![[r#"
        error: manifests/m.yaml:3:1: this manifest has the layout of version 1, which orch does not read
          |
        3 | levels: []
          | ^^^^^^
        hint: set `schema_version: 2`, and write each entry of `levels` as an entry of `nodes` whose `parent:` names the node one level above (the first level has none)"#]],
    );
    check(
        &[("manifests/m.yaml", "schema_version: 3\nname: m\nnodes: [{ name: a, type: vm }]\n")],
        &expect![[r#"
            error: manifests/m.yaml:1:17: schema_version 3 is not understood, 2 is
              |
            1 | schema_version: 3
              |                 ^"#]],
    );
}

//! What the site file, hosts, presets and postures may not say.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check, check_spec};
use expect_test::expect;

#[test]
fn a_preset_has_bounds() {
    check(
        &[("presets/p.yaml", "cores: 0\nmemory: 511\ndisk: 0\n")],
        &expect![[r#"
        error: presets/p.yaml:1:8: 0 is out of range: 1 to 128
          |
        1 | cores: 0
          |        ^

        error: presets/p.yaml:2:9: 511 is too small: at least 512
          |
        2 | memory: 511
          |         ^^^

        error: presets/p.yaml:3:7: 0 is too small: at least 1
          |
        3 | disk: 0
          |       ^"#]],
    );
    check(
        &[("presets/p.yaml", "cores: 129\nmemory: 5000000000\ndisk: -1\n")],
        &expect![[r#"
        error: presets/p.yaml:1:8: 129 is out of range: 1 to 128
          |
        1 | cores: 129
          |        ^^^

        error: presets/p.yaml:2:9: 5000000000 is out of range: 512 to 4294967295
          |
        2 | memory: 5000000000
          |         ^^^^^^^^^^

        error: presets/p.yaml:3:7: -1 is too small: at least 1
          |
        3 | disk: -1
          |       ^^"#]],
    );
    check(
        &[
            ("presets/p.yaml", "cores: 1\nmemory: 512\ndisk: 1\n"),
            ("presets/q.yaml", "cores: 128\nmemory: 512\ndisk: 1\n"),
        ],
        &expect![""],
    );
    check(
        &[("presets/p.yaml", "cores: two\nmemory: 1.5\n")],
        &expect![[r#"
        error: presets/p.yaml:1:1: this preset has no `disk`, which is required
          |
        1 | cores: two
          | ^

        error: presets/p.yaml:1:8: expected a whole number, found text `two`
          |
        1 | cores: two
          |        ^^^

        error: presets/p.yaml:2:9: expected a whole number, found a number `1.5`
          |
        2 | memory: 1.5
          |         ^^^"#]],
    );
}

#[test]
fn an_unknown_key_is_named_with_its_record_in_every_kind_of_file() {
    check(
        &[(
            "site.yaml",
            "domian: a.b\nserver: { sign: {} }\njobs: { alow: {} }\ndefaults: { timezon: UTC }\n",
        )],
        &expect![[r#"
            error: site.yaml:1:1: a site has no key `domian`
              |
            1 | domian: a.b
              | ^^^^^^
            hint: did you mean `domain`?

            error: site.yaml:2:11: a server section has no key `sign`
              |
            2 | server: { sign: {} }
              |           ^^^^
            hint: choose from `signing_keys`, `accept_legacy_tokens`

            error: site.yaml:3:9: a jobs section has no key `alow`
              |
            3 | jobs: { alow: {} }
              |         ^^^^
            hint: did you mean `allow`?

            error: site.yaml:4:13: a set of defaults has no key `timezon`
              |
            4 | defaults: { timezon: UTC }
              |             ^^^^^^^
            hint: did you mean `timezone`?"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: local\nimage: {}\nssh: { users: root }\n")],
        &expect![[r#"
            error: hosts/h.yaml:2:1: a local host has no key `image`
              |
            2 | image: {}
              | ^^^^^
            hint: did you mean `images`?

            error: hosts/h.yaml:3:8: an ssh section has no key `users`
              |
            3 | ssh: { users: root }
              |        ^^^^^
            hint: did you mean `user`?"#]],
    );
    check_spec(
        "identity: { host: a }\naccess: { user: [] }\nplatform: { package: [], services: { enabled: [] } }\nrun: { trigered: manual }\n",
        &expect![[r#"
            error: specs/s.yaml:2:13: an identity section has no key `host`
              |
            2 | identity: { host: a }
              |             ^^^^
            hint: choose from `hostname`, `domain`

            error: specs/s.yaml:3:11: an access section has no key `user`
              |
            3 | access: { user: [] }
              |           ^^^^
            hint: did you mean `users`?

            error: specs/s.yaml:4:13: a platform section has no key `package`
              |
            4 | platform: { package: [], services: { enabled: [] } }
              |             ^^^^^^^
            hint: did you mean `packages`?

            error: specs/s.yaml:4:38: a services section has no key `enabled`
              |
            4 | platform: { package: [], services: { enabled: [] } }
              |                                      ^^^^^^^
            hint: did you mean `enable`?

            error: specs/s.yaml:5:8: a run section has no key `trigered`
              |
            5 | run: { trigered: manual }
              |        ^^^^^^^^
            hint: choose from `trigger`, `interval`"#]],
    );
    check(
        &[("postures/p.yaml", "ssh: { prot: 22 }\nsudo: { nopaswd: true }\nfail2ban: true\n")],
        &expect![[r#"
            error: postures/p.yaml:1:8: an ssh posture has no key `prot`
              |
            1 | ssh: { prot: 22 }
              |        ^^^^
            hint: did you mean `port`?

            error: postures/p.yaml:2:9: a sudo posture has no key `nopaswd`
              |
            2 | sudo: { nopaswd: true }
              |         ^^^^^^^
            hint: did you mean `nopasswd`?

            error: postures/p.yaml:3:11: expected the keys of a fail2ban posture, found a boolean `true`
              |
            3 | fail2ban: true
              |           ^^^^"#]],
    );
}

#[test]
fn a_host_is_read_by_its_provider() {
    check(
        &[("hosts/h.yaml", "images: {}\n")],
        &expect![[r#"
        error: hosts/h.yaml:1:1: this host has no `provider`, which is required
          |
        1 | images: {}
          | ^"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: proxmx\nwhatever: 1\n")],
        &expect![[r#"
            error: hosts/h.yaml:1:11: `proxmx` is not a provider
              |
            1 | provider: proxmx
              |           ^^^^^^
            hint: did you mean `proxmox`?"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: proxmox\n")],
        &expect![[r#"
            error: hosts/h.yaml:1:1: this proxmox host has no `api_endpoint`, which is required
              |
            1 | provider: proxmox
              | ^

            error: hosts/h.yaml:1:1: this proxmox host has no `api_token`, which is required
              |
            1 | provider: proxmox
              | ^

            error: hosts/h.yaml:1:1: this proxmox host has no `datastore`, which is required
              |
            1 | provider: proxmox
              | ^"#]],
    );
    check(
        &[("hosts/h.yaml", "provider: local\ntoken: secret:x\n")],
        &expect![[r#"
            error: hosts/h.yaml:2:1: a local host has no key `token`
              |
            2 | token: secret:x
              | ^^^^^
            hint: choose from `provider`, `images`, `ssh`, `domain`, `timezone`, `dns_servers`, `gateway`, `bridge`, `node_user`, `server_url`"#]],
    );
}

#[test]
fn the_values_of_a_host_have_grammars() {
    check(
        &[(
            "hosts/h.yaml",
            "provider: proxmox\napi_endpoint: http://h:8006\napi_token: secret:t\ntls_fingerprint: AB:CD\ndatastore: 7\nvlan: 4095\nvmid_range: [200, 100]\nssh: { user: Root, port: 0, host_keys: [ssh-dss AAAA] }\ndns_servers: [10.0.0]\ngateway: here\nbridge: 'vm br'\n",
        )],
        &expect![[r#"
            error: hosts/h.yaml:2:15: `http://h:8006` is not an https address: it starts with `https://`
              |
            2 | api_endpoint: http://h:8006
              |               ^^^^^^^^^^^^^

            error: hosts/h.yaml:4:18: `AB:CD` is not a certificate fingerprint: 32 pairs of hexadecimal digits with `:` between
              |
            4 | tls_fingerprint: AB:CD
              |                  ^^^^^

            error: hosts/h.yaml:5:12: expected text, found a number `7`
              |
            5 | datastore: 7
              |            ^
            hint: write it in quotes

            error: hosts/h.yaml:6:7: 4095 is out of range: 1 to 4094
              |
            6 | vlan: 4095
              |       ^^^^

            error: hosts/h.yaml:7:13: a range is two numbers, the smaller one first
              |
            7 | vmid_range: [200, 100]
              |             ^

            error: hosts/h.yaml:8:14: `Root` is not a user name: lower-case letters, digits, `_` and `-`, at most 32 characters
              |
            8 | ssh: { user: Root, port: 0, host_keys: [ssh-dss AAAA] }
              |              ^^^^

            error: hosts/h.yaml:8:26: 0 is out of range: 1 to 65535
              |
            8 | ssh: { user: Root, port: 0, host_keys: [ssh-dss AAAA] }
              |                          ^

            error: hosts/h.yaml:8:41: `ssh-dss AAAA` is not an ssh public key: a key type, the key in base64, and a comment
              |
            8 | ssh: { user: Root, port: 0, host_keys: [ssh-dss AAAA] }
              |                                         ^^^^^^^^^^^^

            error: hosts/h.yaml:9:15: `10.0.0` is not an IP address
              |
            9 | dns_servers: [10.0.0]
              |               ^^^^^^

            error: hosts/h.yaml:10:10: `here` is not an IP address
               |
            10 | gateway: here
               |          ^^^^

            error: hosts/h.yaml:11:9: `vm br` is not a valid name: letters, digits and any of `:_.@-`, first a letter or digit
               |
            11 | bridge: 'vm br'
               |         ^^^^^^^"#]],
    );
    check(
        &[(
            "hosts/h.yaml",
            "provider: hetzner\ntoken: secret:t\nlocation: nbg1\nnetworks: [10.0.0.0, 10.0.0.0/33]\n",
        )],
        &expect![[r#"
            error: hosts/h.yaml:4:12: `10.0.0.0` is not an address with a prefix such as `10.0.0.5/24`
              |
            4 | networks: [10.0.0.0, 10.0.0.0/33]
              |            ^^^^^^^^

            error: hosts/h.yaml:4:22: `10.0.0.0/33` is not an address with a prefix such as `10.0.0.5/24`
              |
            4 | networks: [10.0.0.0, 10.0.0.0/33]
              |                      ^^^^^^^^^^^"#]],
    );
}

#[test]
fn a_posture_speaks_the_words_of_sshd() {
    check(
        &[("postures/p.yaml", "ssh: { permit_root_login: no, password_authentication: yes }\n")],
        &expect![""],
    );
    check(
        &[(
            "postures/p.yaml",
            "ssh: { permit_root_login: false, password_authentication: maybe, port: 70000 }\n",
        )],
        &expect![[r#"
            error: postures/p.yaml:1:27: expected a value of permit_root_login, found a boolean `false`
              |
            1 | ssh: { permit_root_login: false, password_authentication: maybe, port: 70000 }
              |                           ^^^^^
            hint: choose from `no`, `prohibit-password`, `forced-commands-only`, `yes`

            error: postures/p.yaml:1:59: `maybe` is not a value of password_authentication
              |
            1 | ssh: { permit_root_login: false, password_authentication: maybe, port: 70000 }
              |                                                           ^^^^^
            hint: choose from `no`, `yes`

            error: postures/p.yaml:1:72: 70000 is out of range: 1 to 65535
              |
            1 | ssh: { permit_root_login: false, password_authentication: maybe, port: 70000 }
              |                                                                        ^^^^^"#]],
    );
}

#[test]
fn a_key_without_a_value_says_the_same_as_no_key() {
    check(
        &[
            ("site.yaml", "name:\nssh_keys:\nserver:\ndefaults:\ngateway:\n"),
            ("hosts/h.yaml", "provider: local\nssh:\nimages:\n"),
            ("postures/p.yaml", "ssh:\nsudo: { nopasswd: }\npackages:\n"),
            (
                "specs/s.yaml",
                "schema_version: 1\nnetwork:\naccess:\nhealth:\nrun: { trigger: , interval: }\n",
            ),
            (
                "manifests/m.yaml",
                "schema_version: 2\nname: m\npattern:\nsettings:\nnodes: [{ name: a, type: vm, parent: , count: , tags: }]\n",
            ),
        ],
        &expect![""],
    );
    check(
        &[("presets/p.yaml", "cores:\nmemory: 512\ndisk: 1\n")],
        &expect![[r#"
        error: presets/p.yaml:1:6: expected a whole number, found nothing
          |
        1 | cores:
          |      ^"#]],
    );
}

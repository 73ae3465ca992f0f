//! What a spec may not say.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::check_spec;
use expect_test::expect;

#[test]
fn a_health_check_is_one_of_four() {
    check_spec(
        "health:\n  - { tcp: 22 }\n  - { http: 'http://localhost/' }\n  - { unit: nginx.service }\n  - { command: [true-ish, '1'] }\n",
        &expect![""],
    );
    check_spec(
        "health:\n  - {}\n  - { tcp: 22, unit: sshd }\n  - { tcp: 0 }\n  - { tcp: ssh }\n  - { command: [] }\n  - { command: nginx -t }\n  - { unit: 'a b' }\n  - { udp: 53 }\n  - tcp\n",
        &expect![[r#"
            error: specs/s.yaml:3:5: a health check is exactly one of tcp, http, unit and command
              |
            3 |   - {}
              |     ^

            error: specs/s.yaml:4:5: a health check is exactly one of tcp, http, unit and command
              |
            4 |   - { tcp: 22, unit: sshd }
              |     ^

            error: specs/s.yaml:5:12: 0 is out of range: 1 to 65535
              |
            5 |   - { tcp: 0 }
              |            ^

            error: specs/s.yaml:6:12: expected a whole number, found text `ssh`
              |
            6 |   - { tcp: ssh }
              |            ^^^

            error: specs/s.yaml:7:5: the command of a health check names a program
              |
            7 |   - { command: [] }
              |     ^

            error: specs/s.yaml:8:16: expected a list, found text `nginx -t`
              |
            8 |   - { command: nginx -t }
              |                ^^^^^^^^

            error: specs/s.yaml:9:13: `a b` is not a valid name: letters, digits and any of `:_.@-`, first a letter or digit
              |
            9 |   - { unit: 'a b' }
              |             ^^^^^

            error: specs/s.yaml:10:7: a health check has no key `udp`
               |
            10 |   - { udp: 53 }
               |       ^^^
            hint: choose from `tcp`, `http`, `unit`, `command`

            error: specs/s.yaml:11:5: expected the keys of a health check, found text `tcp`
               |
            11 |   - tcp
               |     ^^^"#]],
    );
}

#[test]
fn files_have_a_path_a_mode_and_an_owner() {
    check_spec(
        "files:\n  - { path: etc/motd, content: x }\n  - { path: /etc/../motd, content: x }\n  - { path: /etc/a, content: x, mode: 0o644 }\n  - { path: /etc/b, content: x, mode: 644 }\n  - { path: /etc/c, content: x, mode: '0888' }\n  - { path: /etc/d, content: x, owner: 'root:root' }\n  - { path: /etc/e }\n  - { path: /etc/f, content: x, mode: 0644 }\n",
        &expect![[r#"
            error: specs/s.yaml:3:13: `etc/motd` is not an absolute path: it starts with `/` and has no empty part, `.` or `..`
              |
            3 |   - { path: etc/motd, content: x }
              |             ^^^^^^^^

            error: specs/s.yaml:4:13: `/etc/../motd` is not an absolute path: it starts with `/` and has no empty part, `.` or `..`
              |
            4 |   - { path: /etc/../motd, content: x }
              |             ^^^^^^^^^^^^

            error: specs/s.yaml:5:39: `0o644` is not a file mode: four octal digits in quotes, such as "0644"
              |
            5 |   - { path: /etc/a, content: x, mode: 0o644 }
              |                                       ^^^^^

            error: specs/s.yaml:6:39: `644` is not a file mode: four octal digits in quotes, such as "0644"
              |
            6 |   - { path: /etc/b, content: x, mode: 644 }
              |                                       ^^^

            error: specs/s.yaml:7:39: `0888` is not a file mode: four octal digits in quotes, such as "0644"
              |
            7 |   - { path: /etc/c, content: x, mode: '0888' }
              |                                       ^^^^^^

            error: specs/s.yaml:8:40: `root:root` is not a user name: lower-case letters, digits, `_` and `-`, at most 32 characters
              |
            8 |   - { path: /etc/d, content: x, owner: 'root:root' }
              |                                        ^^^^^^^^^^^

            error: specs/s.yaml:9:5: this file has no `content`, which is required
              |
            9 |   - { path: /etc/e }
              |     ^"#]],
    );
}

#[test]
fn a_path_a_user_and_a_service_are_given_once() {
    check_spec(
        "access: { users: [{ name: ops }, { name: ops }] }\nplatform: { services: { enable: [chrony], disable: [chrony] } }\nfiles: [{ path: /run/a, content: x }]\nsecrets: [{ name: a, path: /run/a }]\n",
        &expect![[r#"
            error: specs/s.yaml:2:42: user `ops` is given twice
              |
            2 | access: { users: [{ name: ops }, { name: ops }] }
              |                                          ^^^

            error: specs/s.yaml:3:53: service `chrony` is both enabled and disabled
              |
            3 | platform: { services: { enable: [chrony], disable: [chrony] } }
              |                                                     ^^^^^^

            error: specs/s.yaml:5:28: `/run/a` is written twice
              |
            5 | secrets: [{ name: a, path: /run/a }]
              |                            ^^^^^^"#]],
    );
}

#[test]
fn users_packages_services_zones_and_secrets_have_grammars() {
    check_spec(
        "identity: { hostname: Web_1, domain: a..b }\nnetwork: { ip: 10.0.0.5, gateway: 10.0.0, dns: [x] }\naccess: { users: [{ name: 'a b', sudo: 1 }, { sudo: true }] }\nplatform: { packages: [-rf, 3], services: { enable: ['x;y'] }, hypervisor: kvm }\nconfig: { timezone: ../etc/passwd }\nsecrets: [{ name: a b, path: /run/x, mode: '400' }]\nnixos: { rollout: copy, install: usb }\nenroll_recipient: 'yes'\nrun: { interval: soon }\n",
        &expect![[r#"
            error: specs/s.yaml:2:23: `Web_1` is not a node name: lower-case letters, digits and `-`, first a letter, at most 63 characters
              |
            2 | identity: { hostname: Web_1, domain: a..b }
              |                       ^^^^^

            error: specs/s.yaml:2:38: `a..b` is not a domain: letters, digits, `-` and `.`
              |
            2 | identity: { hostname: Web_1, domain: a..b }
              |                                      ^^^^

            error: specs/s.yaml:3:16: `10.0.0.5` is not an address with a prefix such as `10.0.0.5/24`
              |
            3 | network: { ip: 10.0.0.5, gateway: 10.0.0, dns: [x] }
              |                ^^^^^^^^

            error: specs/s.yaml:3:35: `10.0.0` is not an IP address
              |
            3 | network: { ip: 10.0.0.5, gateway: 10.0.0, dns: [x] }
              |                                   ^^^^^^

            error: specs/s.yaml:3:49: `x` is not an IP address
              |
            3 | network: { ip: 10.0.0.5, gateway: 10.0.0, dns: [x] }
              |                                                 ^

            error: specs/s.yaml:4:27: `a b` is not a user name: lower-case letters, digits, `_` and `-`, at most 32 characters
              |
            4 | access: { users: [{ name: 'a b', sudo: 1 }, { sudo: true }] }
              |                           ^^^^^

            error: specs/s.yaml:4:40: expected true or false, found a number `1`
              |
            4 | access: { users: [{ name: 'a b', sudo: 1 }, { sudo: true }] }
              |                                        ^

            error: specs/s.yaml:4:45: this user has no `name`, which is required
              |
            4 | access: { users: [{ name: 'a b', sudo: 1 }, { sudo: true }] }
              |                                             ^

            error: specs/s.yaml:5:24: `-rf` is not a package name: letters, digits and any of `+._:@/~=-`, first a letter or digit, no part ends in `-` or `.`
              |
            5 | platform: { packages: [-rf, 3], services: { enable: ['x;y'] }, hypervisor: kvm }
              |                        ^^^

            error: specs/s.yaml:5:29: expected text, found a number `3`
              |
            5 | platform: { packages: [-rf, 3], services: { enable: ['x;y'] }, hypervisor: kvm }
              |                             ^
            hint: write it in quotes

            error: specs/s.yaml:5:54: `x;y` is not a valid name: letters, digits and any of `:_.@-`, first a letter or digit
              |
            5 | platform: { packages: [-rf, 3], services: { enable: ['x;y'] }, hypervisor: kvm }
              |                                                      ^^^^^

            error: specs/s.yaml:5:76: `kvm` is not a hypervisor
              |
            5 | platform: { packages: [-rf, 3], services: { enable: ['x;y'] }, hypervisor: kvm }
              |                                                                            ^^^
            hint: choose from `proxmox`

            error: specs/s.yaml:6:21: `../etc/passwd` is not a time zone: a name of the tz database such as `Europe/Berlin`
              |
            6 | config: { timezone: ../etc/passwd }
              |                     ^^^^^^^^^^^^^

            error: specs/s.yaml:7:19: `a b` is not a key name: letters, digits, `.`, `_`, `@` and `-`
              |
            7 | secrets: [{ name: a b, path: /run/x, mode: '400' }]
              |                   ^^^

            error: specs/s.yaml:7:44: `400` is not a file mode: four octal digits in quotes, such as "0644"
              |
            7 | secrets: [{ name: a b, path: /run/x, mode: '400' }]
              |                                            ^^^^^

            error: specs/s.yaml:8:19: `copy` is not a way to roll out
              |
            8 | nixos: { rollout: copy, install: usb }
              |                   ^^^^
            hint: choose from `closure`, `nixos-rebuild`

            error: specs/s.yaml:8:34: `usb` is not a way to install
              |
            8 | nixos: { rollout: copy, install: usb }
              |                                  ^^^
            hint: choose from `nixos-anywhere`

            error: specs/s.yaml:9:19: expected true or false, found text `'yes'`
              |
            9 | enroll_recipient: 'yes'
              |                   ^^^^^

            error: specs/s.yaml:10:18: `soon` is not a length of time: write it as `90s`, `10m`, `2h` or `1d`
               |
            10 | run: { interval: soon }
               |                  ^^^^"#]],
    );
}

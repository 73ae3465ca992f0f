//! Secrets are mentioned and never written, and one that was written is not repeated.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use common::{check, site, told};
use expect_test::expect;

#[test]
fn a_literal_secret_is_refused_and_not_repeated() {
    check(
        &[("hosts/h.yaml", "provider: hetzner\ntoken: hunter2 # really\nlocation: nbg1\n")],
        &expect![[r#"
        error: hosts/h.yaml:2:8: a secret is mentioned as `secret:<file>#<path>` or `secret:<name>`, never written here
          |
        2 | token: ••••••
          |        ^^^^^^
        hint: put it into a sops file under secrets/, and change it wherever it was used: it has been in a plain file"#]],
    );
    let places = [
        ("hosts/h.yaml", "provider: hetzner\ntoken: hunter2\nlocation: nbg1\n"),
        ("hosts/h.yaml", "provider: proxmox\napi_endpoint: https://h\napi_token: hunter2\ndatastore: d\n"),
        ("hosts/h.yaml", "provider: k3s\nkubeconfig: |\n  hunter2\n  hunter2\n"),
        ("site.yaml", "server: { signing_keys: { k1: hunter2 } }\n"),
        ("hosts/h.json", r#"{ "provider": "hetzner", "token": "hunter2", "lokation": "nbg1" }"#),
        ("hosts/h.toml", "provider = \"hetzner\"\ntoken = \"hunter2\"\nlocation = \"nbg1\"\n"),
        // Other problems of the same line show the line, but not the secret.
        ("hosts/h.yaml", "{ provider: hetzner, token: hunter2, lokation: nbg1 }\n"),
        ("hosts/h.yaml", "{ provider: hetzer, token: hunter2 }\n"),
        ("hosts/h.yaml", "{ provider: hetzner, token: hunter2, token: hunter2, location: x }\n"),
        ("hosts/h.yaml", "provider: hetzner\ntokn: hunter2\nlocation: x\n"),
        ("hosts/h.yaml", "provider: hetzner\ntoken: hunter2: x\n"),
        ("hosts/h.toml", "provider = \"hetzner\"\ntoken = hunter2\n"),
        ("hosts/h.yaml", "provider: local\nroot_password: hunter2\n"),
    ];
    for (path, text) in places {
        let told = told(&site(&[(path, text)])).to_string();
        assert!(told.contains(path) && !told.contains("hunter2"), "{path}: {text}\n{told}");
    }
    let number =
        told(&site(&[("hosts/h.yaml", "provider: hetzner\ntoken: 271828\nlocation: nbg1\n")])).to_string();
    assert!(number.contains("never written here") && !number.contains("271828"), "{number}");
}

#[test]
fn a_value_that_is_no_secret_is_repeated() {
    let control =
        told(&site(&[("hosts/h.yaml", "provider: hetzner\nlokation: hunter2\ntoken: secret:hcloud\n")]));
    assert!(
        control.to_string().contains("hunter2"),
        "the control shows that the value would have been there"
    );
}

#[test]
fn a_mention_of_a_secret_cannot_lead_out_of_the_site() {
    for mention in ["secret:", "secret:../x", "secret:/etc/shadow", "secret:a b", "secret:a#../b"] {
        let text = format!("provider: hetzner\ntoken: '{mention}'\nlocation: nbg1\n");
        assert!(told(&site(&[("hosts/h.yaml", &text)])).has_errors(), "{mention}");
    }
}

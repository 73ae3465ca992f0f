//! What opens hosts and what nodes are given to start with is searched for wherever it must not be, over whole lives on hosts
//! elsewhere. Every search is shown to find it where it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use orch_lab::Request;
use orch_model::UserName;
use orch_model::pull::Enrolment;
use orch_providers::cloud::{FirstBoot, FirstKey, user_data};
use serde_json::json;

use super::home::{ELSEWHERE, Home};
use super::scene::pair;
use crate::common::node;
use crate::secrets::needles::Needles;
use crate::secrets::places;
use crate::secrets::watch::Watch;

/// What user data has and nothing else, how every private key begins, and how every token of a node does.
const USER_DATA: &str = "\"ed25519_private\"";
const PRIVATE_KEY: &str = "BEGIN OPENSSH PRIVATE KEY";
const ENROLMENT: &str = "eyJ2IjoxLCJuIjoi";

fn needles(home: &Home) -> Arc<Needles> {
    let file = home.file();
    let opens = ELSEWHERE.map(|host| file.hosts[host].token.expose().to_owned());
    Arc::new(Needles::of(&[
        ("what opens mother", opens[0].as_bytes()),
        ("what opens cloud", opens[1].as_bytes()),
        ("user data", USER_DATA.as_bytes()),
        ("a private key", PRIVATE_KEY.as_bytes()),
        ("a token of a node", ENROLMENT.as_bytes()),
    ]))
}

/// Everything that the driver and the lab wrote, but for where these are kept.
fn found_outside(home: &Home, needles: &Needles) -> BTreeSet<String> {
    let folder = home.folder();
    let kept =
        ["lab.json", "identity.json", "hosts", "driver/keys", "driver/server"].map(|name| folder.join(name));
    let kept: Vec<_> = kept.iter().map(std::path::PathBuf::as_path).collect();
    let mut found = places::below(needles, &folder, &kept);
    found.extend(places::below(needles, &home.lab.site, &[]));
    found.extend(
        needles.in_bytes(home.ask(&Request::Calls { host: None, reset: false }).to_string().as_bytes()),
    );
    for words in ["lab status", "lab status --json"] {
        found.extend(needles.in_bytes(home.lab.orch(words).stdout.as_bytes()));
    }
    found
}

#[test]
fn what_opens_hosts_and_what_nodes_are_given_is_in_nothing_that_is_said_or_written_down() {
    let Some(home) = Home::with_nodes(&[&node("a")]) else { return };
    let needles = needles(&home);
    let page = home.lab.site.join("run.html");
    let watch = Watch::begin(&needles, &[]);
    let mut found = BTreeSet::new();
    std::thread::scope(|scope| {
        let lives = ELSEWHERE.map(|host| {
            let (home, needles, page) = (&home, &needles, page.with_extension(format!("{host}.html")));
            scope.spawn(move || {
                let mut found = BTreeSet::new();
                for mode in ["push", "pull"] {
                    for words in [
                        format!("create -M lab -H {host} --mode {mode} --json --report {}", page.display()),
                        format!("status -M lab -H {host} --mode {mode}"),
                        format!("plan -M lab -H {host} --mode {mode}"),
                        format!("ssh-config -M lab -H {host}"),
                        format!("exec -M lab -H {host} -- true"),
                        format!("destroy -M lab -H {host} --yes --report {}", page.display()),
                    ] {
                        if words.starts_with("destroy") && mode == "pull" {
                            assert_controls(home, host, needles);
                        }
                        let said = home.orch(&words).ends_with(0);
                        found.extend(needles.in_bytes(said.stdout.as_bytes()));
                        found.extend(needles.in_bytes(said.stderr.as_bytes()));
                    }
                }
                assert!(page.exists(), "there is a page");
                found
            })
        });
        for life in lives {
            found.extend(life.join().unwrap());
        }
    });
    found.extend(watch.end());
    found.extend(found_outside(&home, &needles));
    assert!(found.is_empty(), "{found:#?}");
    // What is put there on purpose is found.
    let token = home.file().hosts["cloud"].token.expose().to_owned();
    let planted = home.folder().join("driver/runs/planted");
    std::fs::write(&planted, format!("{{\"said\":\"{token}\"}}")).unwrap();
    let found = found_outside(&home, &needles);
    assert!(found.iter().any(|found| found.contains("what opens cloud")), "{found:#?}");
    std::fs::remove_file(planted).unwrap();
    home.down();
}

/// Every needle is found where such a thing is.
fn assert_controls(home: &Home, host: &str, needles: &Needles) {
    let kept = places::below(needles, &home.root(host, "a").join("var/lib/orch"), &[]);
    assert!(kept.iter().any(|found| found.contains("a token of a node")), "{host}: {kept:#?}");
    let opens = needles.in_bytes(&std::fs::read(home.folder().join("lab.json")).unwrap());
    for what in ["what opens mother", "what opens cloud"] {
        assert!(opens.iter().any(|found| found.starts_with(what)), "{opens:#?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let key = pair(&folder.path().join("key"));
    let enrolment = serde_json::from_value(json!({
        "node": "lab.a@cloud", "mode": "pull", "server": "https://127.0.0.1:1", "pins": [], "token": "nobody takes this",
    }));
    let enrolment: Enrolment = enrolment.unwrap();
    let data = user_data(&FirstBoot {
        hostname: "a",
        user: &UserName::root(),
        access: &key.public.parse().unwrap(),
        host_key: &FirstKey::generate(),
        enrolment: Some((&enrolment, "/usr/local/bin/orch-node")),
    });
    let data = data.unwrap();
    let found = needles.in_bytes(data.as_bytes());
    for what in ["user data", "a private key"] {
        assert!(found.iter().any(|found| found.starts_with(what)), "{found:#?}");
    }
}

//! Nodes elsewhere that fetch their configuration, and secrets on their way to nodes elsewhere.

use std::fs;

use orch_secrets::seal::Identity;
use orch_secrets::{Keyring, SopsFile};

use super::home::{ELSEWHERE, Home, NEEDS, furnished, on_each};
use crate::common::{Outcome, lacks};
use crate::secrets::scene::{Hoard, asking, reader};

#[test]
fn nodes_elsewhere_fetch_their_configuration_by_themselves_or_when_they_are_told() {
    let Some(home) = Home::sample() else { return };
    on_each(|host| {
        for (manifest, mode, node) in [("single-node", "pull", "test-vm"), ("workers", "hybrid", "worker-2")]
        {
            let run = |verb: &str| {
                let is_destroy = verb.starts_with("destroy");
                let mode = if is_destroy { String::new() } else { format!("--mode {mode}") };
                home.orch(&format!("{verb} -M {manifest} -H {host} --json {mode}"))
            };
            run("create").ends_with(0).every_node_is("changed");
            run("create").ends_with(0).every_node_is("unchanged");
            run("status").ends_with(0).every_node_is("as-wanted");
            let complete = home.root(host, node).join("var/lib/orch/complete.json");
            let complete = fs::read_to_string(complete).unwrap();
            assert!(complete.contains(&format!("\"mode\":\"{mode}\"")), "{complete}");
            run("destroy --yes").ends_with(0).every_node_is("changed");
        }
        home.assert_empty(&[host]);
    });
    home.down();
}

const FILE: &str = "secrets/app.yaml";

/// What is at a path of a running node, with links followed as they are inside of it.
fn on_node(home: &Home, host: &str, path: &str) -> String {
    let root = home.root(host, "a");
    let place = root.join(path.trim_start_matches('/'));
    let place = fs::read_link(&place).map_or(place, |to| root.join(to.strip_prefix("/").unwrap_or(&to)));
    fs::read_to_string(place).unwrap_or_default()
}

#[test]
fn secrets_arrive_on_nodes_elsewhere_and_those_that_read_files_themselves_are_let_in() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = Hoard::with_nodes(&["a"]);
    hoard.keep(FILE, "one: value of one\n");
    let asked = [
        "name: one, path: /run/secrets/one, owner: ops",
        "name: kept, from: \"secret:one\", path: /etc/app/one",
    ];
    hoard.lab.write("specs/plain.yaml", &asking("as wanted", &asked));
    let key_file = hoard.key_file();
    let Hoard { lab, owner } = hoard;
    let home = Home { lab: furnished(lab) }.up();
    let run = |words: &str| {
        let mut command = home.command(words);
        Outcome::of(command.env("SOPS_AGE_KEY_FILE", &key_file).env_remove("SOPS_AGE_KEY"), words)
    };
    on_each(|host| {
        for mode in ["push", "pull"] {
            run(&format!("create -M lab -H {host} --mode {mode} --json")).ends_with(0);
            for place in ["/run/secrets/one", "/etc/app/one"] {
                assert_eq!(on_node(&home, host, place), "value of one", "{place} on {host} by {mode}");
            }
            run(&format!("status -M lab -H {host} --mode {mode} --json"))
                .ends_with(0)
                .every_node_is("as-wanted");
            run(&format!("destroy -M lab -H {host} --yes")).ends_with(0);
        }
    });
    // A site has one set of files: those that read them are let in one after the other.
    home.lab
        .write("specs/plain.yaml", &format!("{}enroll_recipient: true\n", asking("as wanted", &asked[..1])));
    for host in ELSEWHERE {
        run(&format!("create -M lab -H {host} --json")).ends_with(0).every_node_is("changed");
        let node = fs::read_to_string(home.root(host, "a").join("var/lib/orch/age.key")).unwrap();
        let node: Identity = node.parse().unwrap();
        assert!(opens(&home, &node) && opens(&home, &owner), "{host}");
        let rules = || fs::read_to_string(home.lab.site.join(".sops.yaml")).unwrap();
        assert!(rules().contains(reader(&node).as_str()), "{}", rules());
        run(&format!("create -M lab -H {host} --json")).ends_with(0).every_node_is("unchanged");
        run(&format!("destroy -M lab -H {host} --yes")).ends_with(0);
        assert!(!opens(&home, &node) && opens(&home, &owner), "it is shown out");
        assert!(!rules().contains(reader(&node).as_str()), "{}", rules());
    }
    home.assert_empty(&ELSEWHERE);
    home.down();
}

/// Whether an identity opens the file.
fn opens(home: &Home, identity: &Identity) -> bool {
    let text = fs::read(home.lab.site.join(FILE)).unwrap();
    SopsFile::parse(FILE, &text).unwrap().open(&Keyring::of([identity.clone()])).is_ok()
}

//! Hosts as nodes of their own: what they become, how they are reached, and which are refused.

use std::collections::BTreeSet;

use orch_model::{Fleet, HostName, HostRequest, Scope, Sources, parse, resolve_hosts};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz6lVzBMPeNVYIZ5aV9JHdhPM0h7Xz6KyGpzU";

fn names(text: &str) -> BTreeSet<HostName> {
    text.split(',').filter(|name| !name.is_empty()).map(|name| name.parse().expect("a host name")).collect()
}

fn host(more: &str) -> String {
    format!("provider: local\nssh: {{ host_keys: [\"{KEY}\"]{more} }}\n")
}

/// The fleet of these hosts, or what is said of them. All have a module but those named last.
fn resolved(files: &[(&str, String)], meant: &str, without_module: &str) -> Result<Fleet, String> {
    let site = ("site.yaml", "name: home\npackages: [htop]\n".to_owned());
    let texts: Vec<(&str, &str)> =
        [&site].into_iter().chain(files).map(|(path, text)| (*path, text.as_str())).collect();
    let sources = Sources::from_texts(texts);
    let hosts = names(meant);
    let with_module = hosts.difference(&names(without_module)).cloned().collect();
    let catalog = parse(&sources, Scope::Hosts(&hosts)).map_err(|problems| problems.to_string())?;
    resolve_hosts(&catalog, &HostRequest { hosts, with_module }).map_err(|problems| problems.to_string())
}

fn order(fleet: &Fleet) -> Vec<String> {
    let node = |node: &orch_model::Node| {
        let after: Vec<&str> = node.depends_on.iter().map(orch_model::NodeName::as_str).collect();
        format!("{} after {}", node.identity, after.join(","))
    };
    fleet.nodes.iter().map(node).collect()
}

#[test]
fn a_host_is_a_node_of_its_own_that_becomes_what_its_module_says() {
    let fleet = resolved(&[("hosts/father.yaml", host(""))], "father", "").expect("it resolves");
    assert_eq!(order(&fleet), ["host.father@father after "]);
    let config = fleet.nodes[0].config.as_ref().expect("it has one");
    assert_eq!((config.spec.as_str(), config.hostname.as_str()), ("nixos", "father"));
    let nixos = config.role.nixos.as_ref().expect("it is NixOS");
    assert_eq!(nixos.modules, ["hosts/father"]);
    assert!(config.role.packages.is_empty() && config.role.users.is_empty());
}

#[test]
fn a_host_comes_after_the_one_that_it_is_reached_through() {
    let files = [
        ("hosts/a.yaml", host(", jump: b")),
        ("hosts/b.yaml", host(", jump: c")),
        ("hosts/c.yaml", host("")),
        ("hosts/d.yaml", "provider: [".to_owned()),
    ];
    let all = resolved(&files, "a,b,c", "").expect("it resolves");
    assert_eq!(order(&all), ["host.c@c after ", "host.b@b after c", "host.a@a after b"]);
    let ends = resolved(&files, "a,c", "").expect("it resolves");
    assert_eq!(order(&ends), ["host.c@c after ", "host.a@a after c"], "the nearest that is meant");
    assert_eq!(ends.hosts.len(), 3, "and the way to it is known");
    let jump =
        ends.hosts[&"a".parse::<HostName>().expect("a name")].ssh.as_ref().and_then(|ssh| ssh.jump.clone());
    assert_eq!(jump.map(|jump| jump.to_string()).as_deref(), Some("b"));
}

#[test]
fn a_host_without_a_module_or_without_keys_is_refused_with_the_way_out() {
    let files = [("hosts/father.yaml", host("")), ("hosts/mother.yaml", "provider: local\n".to_owned())];
    let said = resolved(&files, "father,mother", "father").expect_err("both are refused");
    assert!(said.contains("host `father` has no NixOS module of its own"), "{said}");
    assert!(said.contains("hosts/father/default.nix"), "{said}");
    assert!(said.contains("host `mother` has no `ssh.host_keys`"), "{said}");
    let unknown = resolved(&files, "fathre", "").expect_err("there is none");
    assert!(unknown.contains("`father`"), "{unknown}");
}

#[test]
fn a_way_that_leads_nowhere_or_in_a_circle_is_told_with_its_place() {
    let nowhere = [("hosts/a.yaml", host(", jump: bb")), ("hosts/b.yaml", host(""))];
    let said = resolved(&nowhere, "a", "").expect_err("it leads nowhere");
    assert!(said.contains("hosts/a.yaml:2:") && said.contains("there is no host `bb`"), "{said}");
    let circle = [("hosts/a.yaml", host(", jump: b")), ("hosts/b.yaml", host(", jump: a"))];
    let said = resolved(&circle, "a", "").expect_err("it leads back");
    assert!(said.contains("host `a` is reached through `b`, and that through `a` again"), "{said}");
    let itself = [("hosts/a.yaml", host(", jump: a"))];
    assert!(resolved(&itself, "a", "").is_err());
}

#[test]
fn hosts_are_given_as_much_time_as_the_nodes_of_a_manifest_that_says_nothing_of_it() {
    let fleet = resolved(&[("hosts/father.yaml", host(""))], "father", "").expect("it resolves");
    assert_eq!(fleet.settings.timeouts.config.duration(), std::time::Duration::from_mins(10));
    assert!(fleet.settings.parallelism > 1, "{}", fleet.settings.parallelism);
}

//! What a request means: which word wins, what order holds, and that the same files always mean the same fleet.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{BASE, check_resolving, fleet, request, site};
use expect_test::expect;
use orch_model::config::Network;
use orch_model::{
    Config, Fleet, HostName, ManifestName, Mode, Node, Place, Provider, Request, Scope, Source, Sources,
    parse, resolve,
};
use proptest::prelude::*;

/// Resolves the manifest `m` of the given lines on the host `father`, with `files` in the site.
fn fleet_of(rest: &str, files: &[(&str, &str)]) -> Fleet {
    fleet_in_mode(rest, files, None)
}

fn fleet_in_mode(rest: &str, files: &[(&str, &str)], mode: Option<Mode>) -> Fleet {
    let text = format!("schema_version: 2\nname: m\n{rest}");
    let mut all = vec![("manifests/m.yaml", text.as_str())];
    all.extend_from_slice(files);
    fleet(&all, &request(Some("father"), mode)).expect("the site is sound")
}

fn shown(fleet: &Fleet, show: impl Fn(&Node) -> String) -> String {
    fleet.nodes.iter().map(|node| format!("{}: {}", node.name(), show(node))).collect::<Vec<_>>().join("\n")
}

fn role(fleet: &Fleet) -> &orch_model::config::Role {
    &fleet.nodes[0].config.as_ref().expect("the first node has a spec").role
}

const TIERS: &str = "pattern: tiered\nexecution: { default_mode: pull }\nnodes:
  - { name: outer, type: pve }
  - { name: middle, type: pve, parent: outer, execution: { mode: push } }
  - { name: inner, type: vm, parent: middle, execution: { mode: hybrid } }
  - { name: plain, type: vm, parent: middle }
";

#[test]
fn the_mode_of_a_node_wins_over_the_default_at_every_depth() {
    let fleet = fleet_of(TIERS, &[]);
    expect![[r#"
        outer: pull at depth 0
        middle: push at depth 1
        inner: hybrid at depth 2
        plain: pull at depth 2"#]]
    .assert_eq(&shown(&fleet, |node| format!("{} at depth {}", node.mode, node.depth)));
}

#[test]
fn the_mode_of_the_request_wins_over_everything_at_every_depth() {
    for mode in [Mode::Push, Mode::Pull, Mode::Hybrid] {
        let fleet = fleet_in_mode(TIERS, &[], Some(mode));
        assert!(fleet.nodes.iter().all(|node| node.mode == mode), "{mode}");
    }
}

#[test]
fn nodes_are_pushed_where_nobody_says_otherwise() {
    assert_eq!(fleet_of("nodes: [{ name: a, type: vm }]\n", &[]).nodes[0].mode, Mode::Push);
}

#[test]
fn the_disk_of_a_node_wins_over_its_preset_and_both_over_the_default() {
    let fleet = fleet_of(
        "nodes:\n  - { name: own, type: vm, preset: vm-small, disk: 64 }\n  - { name: sized, type: vm, preset: vm-small }\n  - { name: bare, type: vm }\n",
        &[("presets/vm-small.yaml", "cores: 2\nmemory: 2048\ndisk: 20\n")],
    );
    expect![[r#"
        own: Size { cores: 2, memory: 2048, disk: 64 }
        sized: Size { cores: 2, memory: 2048, disk: 20 }
        bare: Size { cores: 1, memory: 1024, disk: 10 }"#]]
    .assert_eq(&shown(&fleet, |node| format!("{:?}", node.size)));
}

#[test]
fn the_host_name_is_the_name_of_the_node_unless_the_spec_says_otherwise() {
    let named =
        ("specs/named.yaml", "schema_version: 1\nidentity: { hostname: fixed, domain: other.example }\n");
    let fleet = fleet_of(
        "nodes:\n  - { name: a, type: vm, spec: base, count: 2 }\n  - { name: b, type: vm, spec: named }\n  - { name: c, type: vm }\n",
        &[named],
    );
    let show = |node: &Node| match &node.config {
        Some(config) => {
            format!("{} in {:?}", config.hostname, config.role.domain.as_ref().map(ToString::to_string))
        }
        None => "created and not configured".to_owned(),
    };
    expect![[r#"
        a-1: a-1 in Some("home.example")
        a-2: a-2 in Some("home.example")
        b: fixed in Some("other.example")
        c: created and not configured"#]]
    .assert_eq(&shown(&fleet, show));
}

#[test]
fn packages_are_the_sites_then_the_specs_then_the_postures_each_once() {
    let fleet = fleet_of(
        "nodes: [{ name: a, type: vm, spec: base }]\n",
        &[
            ("site.yaml", "packages: [curl, vim]\n"),
            ("specs/base.yaml", "schema_version: 1\nplatform: { packages: [htop, curl, jq, htop] }\n"),
            ("postures/dev.yaml", "packages: [strace, vim, jq]\n"),
        ],
    );
    let packages: Vec<&str> = role(&fleet).packages.iter().map(orch_model::Package::as_str).collect();
    assert_eq!(packages, ["curl", "vim", "htop", "jq", "strace"]);
}

#[test]
fn every_user_is_there_with_the_keys_that_it_names_or_all_of_them() {
    let fleet = fleet_of(
        "nodes: [{ name: a, type: vm, spec: base }]\n",
        &[(
            "specs/base.yaml",
            "schema_version: 1\naccess:\n  users:\n    - { name: ops, sudo: true, ssh_keys: [bob@desk] }\n    - { name: all }\n    - { name: none, ssh_keys: [] }\n    - { name: null-is-all, ssh_keys: }\n",
        )],
    );
    let users: Vec<String> = role(&fleet)
        .users
        .iter()
        .map(|user| {
            let comments: Vec<&str> =
                user.ssh_keys.iter().filter_map(|key| key.as_str().split(' ').nth(2)).collect();
            format!("{} sudo={} {comments:?}", user.name, user.sudo)
        })
        .collect();
    expect![[r#"
        ops sudo=true ["bob"]
        all sudo=false ["alice", "bob"]
        none sudo=false []
        null-is-all sudo=false ["alice", "bob"]"#]]
    .assert_eq(&users.join("\n"));
}

const SITE: (&str, &str) = (
    "site.yaml",
    "domain: site.example\ntimezone: Europe/Berlin\ndns_servers: [192.0.2.1]\ngateway: 192.0.2.2\nnode_user: site\nserver_url: https://site:44443\n",
);
const FIXED: (&str, &str) = ("specs/base.yaml", "schema_version: 1\nnetwork: { ip: 192.0.2.9/24 }\n");

fn show_defaults(fleet: &Fleet) -> String {
    let role = role(fleet);
    let host = fleet.hosts.values().next().expect("a host");
    let Network::Static { gateway, dns, .. } = &role.network else { return "dhcp".to_owned() };
    let text =
        |value: Option<&dyn std::fmt::Display>| value.map_or_else(|| "-".to_owned(), ToString::to_string);
    format!(
        "domain {}, zone {}, gateway {}, dns {dns:?}, user {}, server {}",
        text(role.domain.as_ref().map(|d| d as _)),
        role.timezone,
        text(gateway.as_ref().map(|g| g as _)),
        host.node_user,
        text(host.server_url.as_ref().map(|u| u as _)),
    )
}

#[test]
fn the_word_of_a_host_wins_over_the_sites() {
    let nodes = "nodes: [{ name: a, type: vm, spec: base }]\n";
    expect!["domain site.example, zone Europe/Berlin, gateway 192.0.2.2, dns [192.0.2.1], user site, server https://site:44443"].assert_eq(&show_defaults(&fleet_of(nodes, &[SITE, FIXED])));
    let host = (
        "hosts/father.yaml",
        "provider: local\ndomain: host.example\ntimezone: UTC\ndns_servers: [198.51.100.1]\ngateway: 198.51.100.2\nnode_user: host\nserver_url: https://host:44443\n",
    );
    expect!["domain host.example, zone UTC, gateway 198.51.100.2, dns [198.51.100.1], user host, server https://host:44443"].assert_eq(&show_defaults(&fleet_of(nodes, &[SITE, FIXED, host])));
    let apart = ("site.yaml", "domain: top.example\ndefaults: { domain: apart.example, node_user: apart }\n");
    expect!["domain top.example, zone UTC, gateway -, dns [], user apart, server -"]
        .assert_eq(&show_defaults(&fleet_of(nodes, &[apart, FIXED])));
}

#[test]
fn the_spec_wins_over_host_and_site() {
    let spec = (
        "specs/base.yaml",
        "schema_version: 1\nidentity: { domain: spec.example }\nnetwork: { ip: 192.0.2.9/24, gateway: 192.0.2.8, dns: [192.0.2.7] }\nconfig: { timezone: Asia/Tokyo, colour: red }\n",
    );
    let fleet = fleet_of("nodes: [{ name: a, type: vm, spec: base }]\n", &[SITE, spec]);
    expect!["domain spec.example, zone Asia/Tokyo, gateway 192.0.2.8, dns [192.0.2.7], user site, server https://site:44443"].assert_eq(&show_defaults(&fleet));
    assert_eq!(role(&fleet).config.keys().collect::<Vec<_>>(), ["colour"]);
}

#[test]
fn without_any_word_a_node_is_in_utc_and_reached_as_root() {
    let fleet = fleet_of("nodes: [{ name: a, type: vm, spec: base }]\n", &[("site.yaml", ""), FIXED]);
    expect!["domain -, zone UTC, gateway -, dns [], user root, server -"].assert_eq(&show_defaults(&fleet));
    assert_eq!(fleet.site.as_str(), "orch");
}

#[test]
fn older_names_mean_what_the_new_ones_mean() {
    let old = (
        "hosts/father.yaml",
        "provider: local\nssh:\nssh_user: admin\nspec_server: https://old:44443\nnode_user:\nvm_user: ops\n",
    );
    let fleet = fleet_of("nodes: [{ name: a, type: vm }]\n", &[old]);
    let host = &fleet.hosts[&"father".parse::<HostName>().expect("a name")];
    let ssh = host.ssh.as_ref().map(|ssh| ssh.user.as_str());
    assert_eq!((ssh, host.node_user.as_str()), (Some("admin"), "ops"));
    assert_eq!(host.server_url.as_ref().map(orch_model::Url::as_str), Some("https://old:44443"));
}

#[test]
fn the_posture_is_dev_or_the_built_in_one_where_there_is_none() {
    let nodes = "nodes: [{ name: a, type: vm, spec: base }]\n";
    assert!(role(&fleet_of(nodes, &[])).sudo_nopasswd, "the site's `dev` lets sudo ask for nothing");
    let named = [
        ("specs/base.yaml", "schema_version: 1\naccess: { posture: prod }\n"),
        ("postures/prod.yaml", "fail2ban: { enabled: true }\nssh: { port: 2222 }\n"),
    ];
    let fleet = fleet_of(nodes, &named);
    assert!(role(&fleet).fail2ban && !role(&fleet).sudo_nopasswd);
    assert_eq!(role(&fleet).ssh.port, 2222);
    let without = BASE.into_iter().filter(|(path, _)| *path != "postures/dev.yaml");
    let manifest =
        ("manifests/m.yaml", "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm, spec: base }]\n");
    let sources = Sources::from_texts(without.chain([manifest]));
    let catalog = parse(&sources, Scope::Site).expect("a site needs no posture");
    let fleet = resolve(&catalog, &request(Some("father"), None)).expect("it resolves");
    let built_in = role(&fleet);
    assert!(!built_in.sudo_nopasswd && !built_in.fail2ban);
    assert_eq!(built_in.ssh.permit_root_login.as_str(), "prohibit-password");
    assert_eq!(built_in.ssh.password_authentication.as_str(), "no");
}

#[test]
fn images_are_translated_by_the_host_and_the_star_stands_for_every_other() {
    let host = ("hosts/father.yaml", "provider: local\nimages: { debian-13: exact, '*': other }\n");
    let nodes = "nodes:\n  - { name: a, type: vm, image: debian-13 }\n  - { name: b, type: vm, image: debian-12 }\n  - { name: c, type: vm }\n  - { name: d, type: ct, template: debian-13 }\n";
    expect![[r#"
        a: exact
        b: other
        c: other
        d: exact"#]]
    .assert_eq(&shown(&fleet_of(nodes, &[host]), |node| node.image.clone()));
    expect![[r#"
        a: this-machine
        b: this-machine
        c: this-machine
        d: this-machine"#]]
    .assert_eq(&shown(&fleet_of(nodes, &[]), |node| node.image.clone()));
}

#[test]
fn a_proxmox_host_is_known_by_its_own_name_where_nothing_else_is_said() {
    let files =
        [("manifests/m.yaml", "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm, image: x }]\n")];
    let fleet = fleet(&files, &request(Some("mother"), None)).expect("it resolves");
    let host = &fleet.hosts[&"mother".parse::<HostName>().expect("a name")];
    let Provider::Proxmox(proxmox) = &host.provider else { unreachable!("mother is a proxmox host") };
    assert_eq!((proxmox.node.as_str(), proxmox.bridge.as_str()), ("mother", "vmbr0"));
    assert_eq!((proxmox.vmid_range.first(), proxmox.vmid_range.last()), (10_000, 19_999));
}

#[test]
fn every_node_comes_after_what_it_needs_and_equals_in_file_order() {
    let fleet = fleet_of(
        "pattern: tiered\nnodes:\n  - { name: z, type: vm, depends_on: [m] }\n  - { name: y, type: vm, parent: p }\n  - { name: x, type: vm }\n  - { name: p, type: pve, depends_on: [x] }\n  - { name: m, type: vm }\n  - { name: a, type: vm }\n",
        &[],
    );
    expect![[r#"
        x: depth 0
        p: depth 0
        y: depth 1
        m: depth 0
        z: depth 0
        a: depth 0"#]]
    .assert_eq(&shown(&fleet, |node| format!("depth {}", node.depth)));
}

#[test]
fn a_dependency_on_a_group_is_one_on_each_of_its_nodes() {
    let fleet = fleet_of(
        "nodes:\n  - { name: web, type: vm, count: 3 }\n  - { name: all, type: vm, depends_on: [web, web-2] }\n  - { name: one, type: vm, depends_on: [web-2] }\n  - { name: lb, type: vm, count: 2, depends_on: [one] }\n",
        &[],
    );
    let show =
        |node: &Node| node.depends_on.iter().map(orch_model::NodeName::as_str).collect::<Vec<_>>().join(" ");
    expect![[r#"
        web-1: 
        web-2: 
        web-3: 
        all: web-1 web-2 web-3
        one: web-2
        lb-1: one
        lb-2: one"#]]
    .assert_eq(&shown(&fleet, show));
}

#[test]
fn a_node_of_a_mesh_has_every_other_one_as_its_peer_and_never_itself() {
    let fleet = fleet_of(
        "pattern: mesh\nnodes:\n  - { name: a, type: vm, count: 2, peers: [a, b] }\n  - { name: b, type: vm, peers: [a] }\n",
        &[],
    );
    let show =
        |node: &Node| node.peers.iter().map(orch_model::NodeName::as_str).collect::<Vec<_>>().join(" ");
    expect![[r#"
        a-1: a-2 b
        a-2: a-1 b
        b: a-1 a-2"#]]
    .assert_eq(&shown(&fleet, show));
}

#[test]
fn a_child_is_on_the_host_of_its_parent_and_a_host_of_its_own_wins_over_the_requests() {
    let fleet = fleet_of(
        "pattern: tiered\nnodes:\n  - { name: here, type: vm }\n  - { name: there, type: pve, host: mother, image: x }\n  - { name: inside, type: vm, parent: there, image: x }\n",
        &[],
    );
    expect![[r#"
        here: m.here@father
        there: m.there@mother
        inside: m.inside@mother"#]]
    .assert_eq(&shown(&fleet, |node| node.identity.to_string()));
    let hosts: Vec<&str> = fleet.hosts.keys().map(HostName::as_str).collect();
    assert_eq!(hosts, ["father", "mother"]);
}

#[test]
fn a_manifest_that_places_every_node_needs_no_host_in_the_request() {
    check_resolving("nodes: [{ name: a, type: vm, host: father }]\n", &[], None, &expect![""]);
}

#[test]
fn a_broken_file_that_a_manifest_does_not_reach_stops_nobody() {
    let files = [
        (
            "manifests/m.yaml",
            "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm, spec: base, preset: vm-small }]\n",
        ),
        ("manifests/broken.yaml", "nodes: ["),
        ("specs/broken.yaml", "schema_version: 7\n"),
        ("presets/broken.yaml", "cores: 0\n"),
        ("postures/broken.yaml", "ssh: 3\n"),
        ("hosts/broken.yaml", "provider: none\n"),
        ("specs/No_Key.yaml", ""),
    ];
    let sources = site(&files);
    let (name, host) = ("m".parse().expect("a name"), "father".parse().expect("a name"));
    let catalog = parse(&sources, Scope::Manifest { name: &name, host: Some(&host) })
        .expect("what it reaches is sound");
    assert!(resolve(&catalog, &request(Some("father"), None)).is_ok());
    let control = parse(&sources, Scope::Site).expect_err("the whole site is not sound");
    let mut told: Vec<&str> = control.iter().filter_map(|problem| problem.file.as_deref()).collect();
    told.dedup();
    let mut broken: Vec<&str> =
        files.iter().map(|(path, _)| *path).filter(|path| *path != "manifests/m.yaml").collect();
    broken.sort_unstable();
    assert_eq!(told, broken);
}

#[test]
fn a_broken_file_that_a_manifest_reaches_is_told_in_its_scope() {
    let text = "schema_version: 2\nname: m\nnodes: [{ name: a, type: vm, spec: base, preset: vm-small, host: mother }]\n";
    let name: ManifestName = "m".parse().expect("a name");
    for path in
        ["specs/base.yaml", "presets/vm-small.yaml", "hosts/mother.yaml", "postures/dev.yaml", "site.yaml"]
    {
        let sources = site(&[("manifests/m.yaml", text), (path, "unknown-key: 1\n")]);
        let problems =
            parse(&sources, Scope::Manifest { name: &name, host: None }).expect_err("it reaches the file");
        assert!(problems.iter().any(|problem| problem.file.as_deref() == Some(path)), "{problems}");
    }
}

#[test]
fn a_configuration_reads_back_as_it_was_written() {
    for fleet in sample_fleets() {
        for config in fleet.nodes.iter().filter_map(|node| node.config.as_ref()) {
            let json = serde_json::to_string(config).expect("a configuration can be written");
            let back: Config = serde_json::from_str(&json).expect("and read");
            assert_eq!((&back, back.digest()), (config, config.digest()));
        }
    }
}

#[test]
fn every_manifest_of_the_sample_site_resolves_on_every_host_or_says_why_not() {
    let sources = sample_site();
    let catalog = parse(&sources, Scope::Site).expect("the sample site is sound");
    assert!(catalog.warnings().is_empty(), "{}", catalog.warnings());
    let hosts: Vec<HostName> = catalog.hosts().cloned().collect();
    assert!(!hosts.is_empty() && catalog.manifests().count() > 0);
    for manifest in catalog.manifests() {
        for host in &hosts {
            let request = Request { manifest: manifest.clone(), host: Some(host.clone()), mode: None };
            match resolve(&catalog, &request) {
                Ok(fleet) => assert!(!fleet.nodes.is_empty(), "{manifest} on {host}"),
                Err(problems) => assert!(!problems.to_string().is_empty(), "{manifest} on {host}"),
            }
            let scope = Scope::Manifest { name: manifest, host: Some(host) };
            let narrow = parse(&sources, scope).expect("what it reaches is sound");
            assert_eq!(resolve(&narrow, &request), resolve(&catalog, &request), "the scope changes nothing");
        }
        let local = Request { manifest: manifest.clone(), host: "father".parse().ok(), mode: None };
        assert!(resolve(&catalog, &local).is_ok(), "{manifest} must work on this very computer");
    }
}

fn sample_fleets() -> Vec<Fleet> {
    let sources = sample_site();
    let catalog = parse(&sources, Scope::Site).expect("the sample site is sound");
    let request = |manifest: &ManifestName| Request {
        manifest: manifest.clone(),
        host: "father".parse().ok(),
        mode: None,
    };
    catalog.manifests().filter_map(|manifest| resolve(&catalog, &request(manifest)).ok()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The real files, by listing their folders, so that new ones are covered.
fn sample_site() -> Sources {
    let mut files = vec![PathBuf::from("site.yaml")];
    for folder in ["hosts", "manifests", "specs", "presets", "postures"] {
        list(Path::new(folder), &mut files);
    }
    let read = |path: &PathBuf| {
        let shown = path.to_str()?.to_owned();
        let place = Place::of(&shown)?;
        let content = fs::read(root().join(path)).map_err(|error| error.to_string());
        Some(Source { path: shown, place, content })
    };
    Sources::new(files.iter().filter_map(read).collect())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).expect("the folder is there") {
        let entry = entry.expect("an entry");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_the_files_changes_nothing(files in Just(sample_site().iter().cloned().collect::<Vec<_>>()).prop_shuffle()) {
        let everything = |sources: &Sources| {
            let catalog = parse(sources, Scope::Site).expect("the sample site is sound");
            let fleets = catalog.manifests().map(|manifest| {
                let request = Request { manifest: manifest.clone(), host: "father".parse().ok(), mode: None };
                resolve(&catalog, &request).expect("it resolves")
            });
            serde_json::to_string(&fleets.collect::<Vec<_>>()).expect("fleets can be written")
        };
        prop_assert_eq!(everything(&Sources::new(files)), everything(&sample_site()));
    }

    #[test]
    fn the_order_of_broken_files_changes_nothing(order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle()) {
        let files = [
            ("specs/a.yaml", "schema_version: 9\n"),
            ("specs/a.json", "{}"),
            ("hosts/h.yaml", "provider: x\n"),
            ("manifests/m.toml", "name = 3\n"),
        ];
        let shuffled = Sources::from_texts(order.iter().map(|at| files[*at]));
        prop_assert_eq!(common::told(&shuffled), common::told(&Sources::from_texts(files)));
    }
}

#[test]
fn a_configuration_that_arrives_with_another_digest_is_refused() {
    let fleet = fleet_of("nodes: [{ name: a, type: vm, spec: base }]", &BASE);
    let config = fleet.nodes[0].config.clone().expect("it has a spec");
    let mut json = serde_json::to_value(&config).expect("it can be written");
    assert_eq!(serde_json::from_value::<Config>(json.clone()).ok(), Some(config));
    json["timezone"] = "Mars/Olympus".into();
    let error = serde_json::from_value::<Config>(json).expect_err("it was changed on the way");
    assert!(error.to_string().contains("does not have its digest"), "{error}");
}

#[test]
fn a_check_that_its_modules_add_makes_another_configuration_and_one_that_it_has_does_not() {
    for config in sample_fleets().into_iter().flat_map(|fleet| fleet.nodes).filter_map(|node| node.config) {
        let same = config.clone().with_health(config.role.health.clone());
        assert_eq!((&same, same.digest()), (&config, config.digest()));
        let check = orch_model::Health::Tcp(4711);
        let judged = config.clone().with_health(vec![check.clone(), check.clone()]);
        assert_eq!(judged.role.health.len(), config.role.health.len() + 1);
        assert!(judged.role.health.contains(&check));
        assert_ne!(judged.digest(), config.digest());
        let text = serde_json::to_string(&judged).unwrap();
        let back: Config = serde_json::from_str(&text).unwrap();
        assert_eq!((&back, back.digest()), (&judged, judged.digest()));
    }
}

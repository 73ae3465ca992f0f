//! Hosts that are given systems themselves: known by the key in their file, and opened by the key that it names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use orch_model::{Fleet, ManifestName, Request, Scope as Reach, Sources, parse, resolve};
use orch_plan::{Applied, HostView};
use orch_providers::rollout::RolloutSettings;
use orch_providers::ssh::ensure_identity;
use orch_providers::{Base, Ground};
use orch_run::{NoTreasury, Scope, StateDir};

use crate::sshd::{Plan, account, is_there};

/// A site with one host, whose file has this section `ssh`.
fn fleet(ssh: &str) -> Fleet {
    let host = format!("provider: local\nssh: {ssh}\n");
    let manifest = "{ schema_version: 2, name: m, settings: { timeouts: { boot: 3s } }, \
                    nodes: [ { name: web, type: vm, preset: small, image: x } ] }";
    let sources = Sources::from_texts([
        ("site.yaml", "name: home"),
        ("hosts/father.yaml", &*host),
        ("presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }"),
        ("manifests/m.yaml", manifest),
    ]);
    let (name, host): (ManifestName, _) = ("m".parse().unwrap(), "father".parse().unwrap());
    let catalog = parse(&sources, Reach::Manifest { name: &name, host: Some(&host) });
    let catalog = catalog.map_err(|problems| problems.to_string()).unwrap();
    resolve(&catalog, &Request { manifest: name.clone(), host: Some(host.clone()), mode: None }).unwrap()
}

fn base(folder: &Path) -> Base {
    Base {
        state: StateDir::locate(Some(&folder.join("state"))).unwrap(),
        site: folder.join("site"),
        program: "/bin/true".into(),
        node_program: None,
        keep: None,
        treasury: NoTreasury::shared(),
        steads: None,
        agent: None,
        rollout: RolloutSettings::default(),
    }
}

async fn look(fleet: &Fleet, base: &Base) -> HostView {
    let (ground, mute) = Ground::of_hosts(fleet, base);
    assert!(mute.is_empty(), "{mute:?}");
    let host = fleet.hosts.keys().next().unwrap();
    let view = ground.places[host].provider.observe(&Scope { host: host.clone(), node: None }).await.unwrap();
    ground.close().await;
    view
}

fn section(plan: &Plan, host_key: &str) -> String {
    format!(
        "{{ address: 127.0.0.1, port: {}, user: {}, host_keys: [\"{host_key}\"], identity: keys/father }}",
        plan.port,
        account()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_seen_by_the_key_that_its_file_names_and_no_other_host_is_spoken_to() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("site/keys")).unwrap();
    let key = ensure_identity(&folder.path().join("site/keys/father")).unwrap();
    let plan = Plan::new(&key);
    let host_key = plan.host_key.to_string();
    let sshd = plan.start();
    let base = base(folder.path());
    let view = look(&fleet(&section(&sshd.plan, &host_key)), &base).await;
    let [machine] = view.machines() else { panic!("{view:?}") };
    assert_eq!(machine.applied, Applied::Never);
    let marks = machine.marks.as_ref().unwrap();
    assert_eq!(marks.identity().to_string(), "host.father@father");

    let another = ensure_identity(&folder.path().join("another")).unwrap().to_string();
    let view = look(&fleet(&section(&sshd.plan, &another)), &base).await;
    let HostView::Unreachable { why } = view else { panic!("{view:?}") };
    assert!(why.contains("does not have the host key"), "{why}");
}

#[test]
fn a_host_that_nobody_could_know_again_is_not_spoken_to() {
    let folder = tempfile::tempdir().unwrap();
    let (ground, mute) = Ground::of_hosts(&fleet("{ address: 127.0.0.1 }"), &base(folder.path()));
    assert!(ground.places.is_empty());
    let told: BTreeMap<_, _> = mute.into_iter().map(|(host, error)| (host.to_string(), error)).collect();
    assert!(told["father"].why.contains("none of its host keys"), "{:?}", told["father"]);
    assert!(told["father"].hint.contains("host_keys"), "{:?}", told["father"]);
}

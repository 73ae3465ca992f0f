//! What is ours on a host, and what stands in the way of more.

use orch_lab::{Fault, ProxmoxToken, Rule};
use orch_plan::MachineSpec;
use orch_run::{Owner, Provider as _};

use crate::world::{World, create, host, spec};

fn owner(manifest: Option<&str>) -> Owner {
    let manifest = manifest.map(|manifest| manifest.parse().unwrap());
    Owner { host: host(), site: "conformance".parse().unwrap(), manifest }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_of_a_site_is_found_and_nothing_of_others() {
    let world = World::new();
    let driver = world.driver();
    world.put_stranger(10_900, "precious").await;
    let order = create("web", 10_100);
    driver.apply(&order).await.unwrap();
    let begun = create("db", 10_101);
    world.faults.add(Rule::always(Fault::NoPrivilege).on("PUT", "/config"));
    driver.apply(&begun).await.unwrap_err();
    world.faults.clear();
    // Another driver, which never heard of either.
    let driver = world.driver_with(|setup| setup.names.clear());
    let all = driver.provider.belongings(&owner(None)).await.unwrap();
    // A disc's name goes on with what tells it from others for the same machine.
    let id = |one: &orch_run::Belonging| one.id.split_at(one.id.len().min(50)).0.to_owned();
    let shown: Vec<_> = all.iter().map(|one| (one.kind.as_str(), id(one))).collect();
    let disc = |order: &orch_run::Order| format!("local:iso/orch-{}-", order.uuid).split_at(50).0.to_owned();
    let mut expected = vec![
        ("first-boot disc", disc(&order)),
        ("first-boot disc", disc(&begun)),
        ("machine", "qemu/10100".to_owned()),
        ("machine", "qemu/10101".to_owned()),
    ];
    expected.sort();
    assert_eq!(shown, expected);
    assert_eq!(driver.provider.belongings(&owner(Some("workers"))).await.unwrap().len(), 4);
    assert_eq!(driver.provider.belongings(&owner(Some("others"))).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_is_told_all_at_once() {
    let world = World::with(|settings| settings.strict_volumes = true);
    let fine = world.driver().provider.preflight(&[spec("workers-web", 10_100)]).await;
    assert_eq!(fine.obstacles, []);
    world.serving.calls().reset();
    assert_eq!(world.driver().provider.preflight(&[]).await.obstacles, []);
    assert_eq!(world.serving.calls().count(), 0, "nothing is asked where nothing is made");

    let driver = world.driver_with(|setup| {
        setup.proxmox.datastore = "nowhere".into();
        setup.proxmox.bridge = "vmbr9".parse().unwrap();
    });
    let wanted = [
        MachineSpec { image: "local:import/missing.qcow2".into(), ..spec("workers-a", 10_100) },
        MachineSpec { image: "template:missing".into(), ..spec("workers-b", 10_101) },
    ];
    let said = driver.provider.preflight(&wanted).await;
    let what: Vec<_> = said.obstacles.iter().map(|obstacle| obstacle.what.as_str()).collect();
    for word in ["`nowhere`", "`vmbr9`", "`local:import/missing.qcow2`", "`missing`"] {
        assert!(what.iter().any(|what| what.contains(word)), "{word}: {what:#?}");
    }
    let driver = world.driver_with(|setup| setup.proxmox.node = "pve7".into());
    let said = driver.provider.preflight(&[spec("workers-web", 10_100)]).await;
    assert!(said.obstacles[0].what.contains("`pve7`") && said.obstacles[0].hint.contains("pve1"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_too_little_is_told_what_it_lacks() {
    let world = World::with(|settings| {
        settings.tokens = vec![ProxmoxToken::of_root("orch", "0123-4567").with_roles(&[("/", "PVEAuditor")])];
    });
    let said = world.driver().provider.preflight(&[spec("workers-web", 10_100)]).await;
    let lacks =
        said.obstacles.iter().find(|obstacle| obstacle.what.contains("lacks")).expect("it lacks much");
    assert!(lacks.what.contains("VM.Allocate") && lacks.hint.contains("pveum role modify"), "{lacks:?}");
}

//! What a machine is given when it first starts, by disc or by snippet, and what becomes of that.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use orch_model::{NodeKeys, NodeKind};
use orch_plan::{Action, MachineSpec};
use orch_providers::api::Method;
use orch_providers::proxmox::Snippets;
use orch_providers::ssh::Wayfinder as _;
use orch_run::{Done, Order, Pin, Progress, Provider as _, Target};

use crate::world::{Driver, World, create, spec};

fn pin(order: &Order, settled: bool) -> Pin {
    let age = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p".parse().unwrap();
    let keys = Some(NodeKeys { age, host_key: None, settled });
    Pin { identity: order.identity.clone(), uuid: order.uuid, keys, applied: None, ssh_port: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disc_is_uploaded_only_for_a_machine_that_was_ordered() {
    let world = World::new();
    world.driver().apply(&create("web", 10_100)).await.unwrap();
    let calls = world.serving.calls().list();
    let place = |end: &str| calls.iter().position(|call| call.method == "POST" && call.path.ends_with(end));
    assert!(place("/clone").unwrap() < place("/upload").unwrap(), "{calls:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_reads_its_disc_and_the_disc_goes_when_it_is_known_by_its_own_keys() {
    let world = World::new();
    let driver = world.driver();
    let order = create("web", 10_100);
    driver.apply(&order).await.unwrap();
    let given = world.machines.given.lock().unwrap().get("10100").cloned().expect("it was started");
    let text = String::from_utf8(given.user_data).unwrap();
    assert!(text.starts_with("#cloud-config\n") && text.contains("ed25519_private"), "{text}");
    assert_eq!((given.instance, given.hostname.as_str()), (order.uuid.to_string(), "web"));
    let config = world.config(10_100).await;
    let disc = format!("local:iso/orch-{}-", order.uuid);
    assert!(config["ide2"].as_str().unwrap().starts_with(&disc), "{config}");
    assert!(config["net0"].as_str().unwrap().ends_with(",bridge=vmbr0,tag=20"), "{config}");
    assert_eq!(world.discs().await.len(), 1);

    let tags = format!("precious;{}", config["tags"].as_str().unwrap());
    world.by_hand(Method::Put, "/nodes/pve1/qemu/10100/config", &[("tags", &tags)]).await.unwrap();
    assert_eq!(driver.provider.pin(&pin(&order, false), &driver.permit).await.unwrap(), Done::Changed);
    assert_eq!(driver.provider.pin(&pin(&order, false), &driver.permit).await.unwrap(), Done::Unchanged);
    assert_eq!(world.discs().await.len(), 1, "what it was made with is believed until its own is settled");
    assert_eq!(driver.provider.pin(&pin(&order, true), &driver.permit).await.unwrap(), Done::Changed);
    let config = world.config(10_100).await;
    assert_eq!((config["ide2"].as_str(), world.discs().await.len()), (Some("none,media=cdrom"), 0));
    assert!(config["tags"].as_str().unwrap().contains("precious"), "{config}");
}

/// Writes into the folder of a storage, as somebody on the host would.
struct Folder(PathBuf);

#[async_trait]
impl Snippets for Folder {
    async fn write(&self, _: &str, file_name: &str, text: &str) -> Result<(), String> {
        fs::create_dir_all(self.0.join("snippets")).map_err(|error| error.to_string())?;
        fs::write(self.0.join("snippets").join(file_name), text).map_err(|error| error.to_string())
    }

    async fn remove(&self, _: &str, file_name: &str) -> Result<(), String> {
        fs::remove_file(self.0.join("snippets").join(file_name)).or_else(|error| {
            if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error.to_string()) }
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_host_takes_snippets_a_machine_is_given_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let world = World::with(|settings| {
        let local = settings.storages.iter_mut().find(|storage| storage.id == "local").unwrap();
        local.folder = Some(path.clone());
    });
    let driver = world.driver_with(|setup| {
        setup.proxmox.snippets = Some("local".into());
        setup.snippets = Some(Arc::new(Folder(path.clone())));
    });
    let order = create("web", 10_100);
    driver.apply(&order).await.unwrap();
    let given = world.machines.given.lock().unwrap().get("10100").cloned().expect("it was started");
    assert!(String::from_utf8(given.user_data).unwrap().contains("ed25519_private"));
    let config = world.config(10_100).await;
    let snippet = format!("user=local:snippets/orch-{}-", order.uuid);
    assert!(config["cicustom"].as_str().unwrap().starts_with(&snippet), "{config}");
    assert!(world.discs().await.is_empty());
    assert_eq!(driver.provider.pin(&pin(&order, true), &driver.permit).await.unwrap(), Done::Changed);
    assert_eq!(fs::read_dir(path.join("snippets")).unwrap().count(), 0, "what it was given is taken away");
    let machine = driver.reference(&order).await;
    driver.apply(&Order { action: Action::Destroy { machine }, ..order }).await.unwrap();
    assert_eq!(fs::read_dir(path.join("snippets")).unwrap().count(), 0);
}

async fn made(driver: &Driver, machine: MachineSpec) -> Order {
    let order = Order { action: Action::Create { machine }, ..create("web", 10_100) };
    driver.apply(&order).await.unwrap();
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_made_from_an_image_and_a_container_from_its_files() {
    let world = World::new();
    let driver = world.driver();
    let image = "local:import/debian-13.qcow2";
    let order = made(&driver, MachineSpec { image: image.into(), ..spec("workers-web", 10_100) }).await;
    let machine = driver.machine(&order).await.unwrap();
    assert_eq!((machine.image.as_deref(), machine.kind), (Some(image), Some(NodeKind::Vm)));

    let files = "local:vztmpl/debian-13.tar.zst";
    let container = MachineSpec { image: files.into(), kind: NodeKind::Ct, ..spec("workers-ct", 10_101) };
    let mut order = Order { action: Action::Create { machine: container }, ..create("ct", 10_101) };
    driver.apply(&order).await.unwrap();
    let machine = driver.machine(&order).await.unwrap();
    assert_eq!((machine.id.as_str(), machine.kind), ("lxc/10101", Some(NodeKind::Ct)));
    assert_eq!(machine.size, crate::world::SMALLEST);
    let machine = driver.reference(&order).await;
    order.action = Action::Destroy { machine };
    assert_eq!(driver.apply(&order).await.unwrap(), Done::Changed);
    assert_eq!(world.numbers().await, [10_100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_to_a_machine_is_its_own_word_and_the_key_that_it_was_given() {
    let world = World::new();
    let order = create("web", 10_100);
    world.driver().apply(&order).await.unwrap();
    let driver = world.driver();
    let target = Target {
        identity: order.identity.clone(),
        uuid: order.uuid,
        mode: orch_model::Mode::Push,
        progress: Progress::to_nobody(),
    };
    let way = driver.provider.way(&target).await.unwrap();
    let hop = &way.hops[0];
    assert_eq!((way.hops.len(), hop.address.starts_with("127.0.2."), hop.host_keys.len()), (1, true, 1));
    assert_eq!((hop.alias.as_str(), hop.user.as_str(), hop.port, way.sudo), ("web", "ops", 22, true));
    let given = world.machines.given.lock().unwrap().get("10100").cloned().unwrap();
    assert!(String::from_utf8(given.user_data).unwrap().contains(hop.host_keys[0].as_str()));
    world.serving.calls().reset();
    driver.provider.way(&target).await.unwrap();
    assert_eq!(world.serving.calls().count(), 0, "it is known by then");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_smaller_than_the_template_is_refused_before_anything_is_made() {
    let world = World::new();
    let mut machine = spec("workers-web", 10_100);
    machine.size.disk = 1;
    let order = Order { action: Action::Create { machine }, ..create("web", 10_100) };
    let refused = world.driver().apply(&order).await.unwrap_err();
    assert!(refused.to_string().contains("has a disk of 2 GB"), "{refused}");
    assert_eq!((world.numbers().await.len(), world.discs().await.len()), (0, 0));
}

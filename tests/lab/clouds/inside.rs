//! Machines inside of machines, as a Proxmox VE box that is itself a node has them.

use std::net::IpAddr;

use orch_lab::{Machines, Power};

use super::scene::{Scene, wanted};
use crate::common::{Need, lacks, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_inside_of_another_is_reached_from_there_and_goes_with_it() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let scene = Scene::new();
    let (machines, at) = scene.machines();
    machines.make(&wanted("100")).await.unwrap();
    machines.start("100", &scene.first("i-1", "")).await.unwrap();
    let inner = machines.inside("100");
    inner.make(&wanted("100")).await.unwrap();
    inner.start("100", &scene.first("i-2", "")).await.unwrap();
    let Some(IpAddr::V4(address)) = inner.address("100").await else { panic!("it has an address") };
    assert_eq!(address.octets()[0], 10);
    let greet = |at: &str| format!("bash -c 'exec 3<>/dev/tcp/{at}; head -c 4 <&3'");
    assert_eq!(scene.ssh(at.into(), &[&greet(&format!("{address}/22"))]), "SSH-");

    let listener = machines.listen_inside("100", 8006).await.unwrap();
    let server = std::thread::spawn(move || {
        use std::io::Write;
        listener.accept().unwrap().0.write_all(b"here")
    });
    assert_eq!(scene.ssh(at.into(), &[&greet("127.0.0.1/8006")]), "here");
    server.join().unwrap().unwrap();

    machines.stop("100").await.unwrap();
    assert_eq!((machines.power("100").await, inner.power("100").await), (Power::Off, Power::Off));
    machines.remove("100").await.unwrap();
    wait_until("nothing is left of either", || scene.left().is_empty());
}

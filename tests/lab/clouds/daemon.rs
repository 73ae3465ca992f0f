//! The lab in a process of its own: brought up, killed, brought up again, taken down.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use orch_lab::{Addresses, Fault, LabFile, LabSettings, LocalMachines, Machines, Request, Rule};
use rustix::process::{Pid, Signal, kill_process};

use super::scene::{Scene, answers, settings, wanted};
use crate::common::{Need, ORCH, lacks, wait_until};

fn lab(scene: &Scene) -> LabSettings {
    LabSettings::new(scene.path.join("lab"), PathBuf::from(ORCH))
}

fn endpoint(file: &LabFile, host: &str) -> SocketAddr {
    let shown = &file.hosts[host].endpoint;
    shown.strip_prefix("https://").unwrap().parse().unwrap()
}

fn kill(file: &LabFile) {
    kill_process(Pid::from_raw(file.pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until("it is gone", || !file.is_served());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_that_was_killed_comes_up_the_same_with_its_machines_and_goes_without_a_trace() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let scene = Scene::new();
    let settings_of_lab = lab(&scene);
    let first = orch_lab::up(&settings_of_lab).await.unwrap();
    assert!(!first.was_up);
    assert!(orch_lab::up(&settings_of_lab).await.unwrap().was_up);
    let mode = fs::metadata(scene.path.join("lab/lab.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(endpoint(&first.file, "pve").port(), 8006);
    assert_eq!(endpoint(&first.file, "cloud").port(), 443);
    kill(&first.file);
    assert!(!orch_lab::status(&settings_of_lab.folder).await.unwrap().is_up);

    // A machine of the host, made by somebody who is gone by the time that the lab is back.
    let at = {
        let addresses = Addresses::hold(&scene.path.join("lab/addresses.json")).unwrap();
        let place = scene.path.join("lab/hosts/cloud");
        let settings = settings(place, "cloud".parse().unwrap(), first.file.lab, addresses);
        let machines = LocalMachines::open(settings).unwrap();
        machines.make(&wanted("7")).await.unwrap();
        machines.start("7", &scene.first("i-7", "")).await.unwrap();
        let at = machines.address("7").await.unwrap();
        machines.close().await;
        at
    };
    wait_until("nobody answers", || !answers(at, 22));
    for _ in 0..2 {
        let again = orch_lab::up(&settings_of_lab).await.unwrap();
        assert!(!again.was_up);
        assert_eq!(again.file.hosts, first.file.hosts, "endpoints, certificates and tokens are the same");
        assert_eq!(scene.ssh(at, &["cat", "/etc/hostname"]), "web01\n");
        kill(&again.file);
    }
    orch_lab::down(&settings_of_lab.folder).await.unwrap();
    assert!(!settings_of_lab.folder.exists());
    wait_until("nobody answers", || !answers(at, 22));
    wait_until("nothing is left of it", || scene.left().is_empty());
    orch_lab::down(&settings_of_lab.folder).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_is_told_what_goes_wrong_and_ends_when_it_is_told() {
    if lacks(&[]) {
        return;
    }
    let scene = Scene::new();
    let mut settings = LabSettings { paper: true, ..lab(&scene) };
    for host in &mut settings.hosts {
        host.port = 0;
    }
    let folder = settings.folder.clone();
    assert!(orch_lab::status(&folder).await.is_err());
    let file = orch_lab::up(&settings).await.unwrap().file;
    let host: orch_model::HostName = "cloud".parse().unwrap();
    let rule = Rule::once(Fault::TooMany).on("POST", "/servers");
    let add = Request::AddFault { host: host.clone(), rule: rule.clone() };
    orch_lab::ask(&folder, &add).await.unwrap();
    let status = orch_lab::status(&folder).await.unwrap();
    assert!(status.is_up);
    assert_eq!(status.hosts[&host].faults, [rule]);
    let nobody = Request::ClearFaults { host: Some("nobody".parse().unwrap()) };
    assert!(orch_lab::ask(&folder, &nobody).await.unwrap_err().to_string().contains("`nobody`"));
    orch_lab::ask(&folder, &Request::ClearFaults { host: None }).await.unwrap();
    assert!(orch_lab::status(&folder).await.unwrap().hosts[&host].faults.is_empty());
    let calls = orch_lab::ask(&folder, &Request::Calls { host: None, reset: true }).await.unwrap();
    assert_eq!(calls["pve"]["count"], 0);
    let at = endpoint(&file, "cloud");
    assert!(answers(at.ip(), at.port()));
    kill(&file);
    let again = orch_lab::up(&settings).await.unwrap();
    assert_eq!(again.file.hosts, file.hosts, "a port that was free is kept");
    orch_lab::down(&folder).await.unwrap();
    assert!(!again.file.is_served() && !folder.exists());
    wait_until("nobody answers", || !answers(at.ip(), at.port()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_that_cannot_come_up_says_why() {
    let scene = Scene::new();
    let settings = LabSettings { paper: true, ..lab(&scene) };
    let taken = orch_lab::up(&settings).await.unwrap();
    kill(&taken.file);
    let held = std::net::TcpListener::bind(endpoint(&taken.file, "pve")).unwrap();
    let told = orch_lab::up(&settings).await.unwrap_err().to_string();
    assert!(told.contains("host `pve` cannot be served at"), "{told}");
    drop(held);
    orch_lab::down(&settings.folder).await.unwrap();
}

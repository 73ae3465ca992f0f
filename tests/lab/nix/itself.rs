//! A host that is NixOS itself, given systems by `orch rollout` over SSH to an address, as any host elsewhere is.

use std::fs;
use std::process::Command;

use super::scene::{NixLab, skips};
use crate::common::{Lab, Need, Outcome, lacks};

/// A machine that another site knows as a host: its address, and the network that leads there.
struct Elsewhere {
    address: String,
    uplink: String,
    host_key: String,
    identity: String,
}

impl Elsewhere {
    fn of(lab: &Lab) -> Self {
        let init = lab.init("lab-web").unwrap();
        let mut ip = Command::new("nsenter");
        ip.arg(format!("--net=/proc/{init}/ns/net")).args(["ip", "-4", "-o", "addr", "show", "eth0"]);
        let shown = Outcome::of(&mut ip, "ip addr").ends_with(0).stdout;
        let address = shown.split_whitespace().nth(3).unwrap().split('/').next().unwrap().to_owned();
        let root = lab.root("lab-web");
        let host_key = fs::read_to_string(root.join("etc/ssh/ssh_host_ed25519_key.pub")).unwrap();
        Self {
            address,
            uplink: root.join("run/orch/uplink").display().to_string(),
            host_key: host_key.trim().to_owned(),
            identity: lab.state.join("keys/driver_ed25519").display().to_string(),
        }
    }
}

fn rollout(scene: &NixLab, site: &Lab, host: &Elsewhere) -> Outcome {
    let words = "rollout -H web --json";
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", host.uplink)).arg("unshare");
    Outcome::of(&mut scene.over_nix(command, &site.command(words)), words)
}

#[test]
fn a_host_is_given_its_system_and_nothing_where_it_has_it_and_goes_back_from_a_bad_one() {
    if skips() || lacks(&[Need::Program("nsenter"), Need::Program("ip")]) {
        return;
    }
    // The machine is one of this computer's, made by a site that knows nothing of NixOS.
    let scene = NixLab::with_nodes("", &["web"], "");
    scene.lab.write("specs/nixos.yaml", "schema_version: 1\n");
    scene.lab.write("site.yaml", "name: lab\nnode_user: root\n");
    scene.orch("create -M lab -H father --json").ends_with(0);
    let host = Elsewhere::of(&scene.lab);
    let site = Lab::with_site(&[
        ("site.yaml", "name: hosts\n"),
        ("manifests/.keep", ""),
        (
            "hosts/web.yaml",
            &format!(
                "provider: local\nssh: {{ address: {}, user: root, host_keys: [\"{}\"], identity: {} }}\n",
                host.address, host.host_key, host.identity
            ),
        ),
    ]);
    let module = |version: &str, lines: &str| {
        let text =
            format!("{{ ... }}: {{ standIn = {{ version = \"{version}\"; activate = \"{lines}\"; }}; }}\n");
        site.write("hosts/web/default.nix", &text);
    };
    module("1", "");
    rollout(&scene, &site, &host).ends_with(0).every_node_is("changed");
    let first = scene.runs("web").unwrap();
    assert!(first.to_string_lossy().ends_with("nixos-system-web-1"), "{}", first.display());
    assert_eq!(scene.boots("web"), Some(first.clone()));
    rollout(&scene, &site, &host).ends_with(0).every_node_is("unchanged");

    module("2", "exit 3");
    let failed = rollout(&scene, &site, &host).ends_with(1).every_node_is("failed");
    failed.says(&format!("read back: runs and boots {}", first.display()));
    assert_eq!(scene.runs("web"), Some(first.clone()));
    assert_eq!(scene.boots("web"), Some(first));
}

//! Finding out that there is nothing to do: as many questions for many nodes as for one, but for the pages of a list.

use std::process::Command;

use orch_lab::Request;
use serde_json::Value as Json;

use crate::common::{Lab, Outcome};

const FILES: [(&str, &str); 4] = [
    ("site.yaml", "{ name: unchanged, node_user: root, timezone: UTC }\n"),
    (
        "hosts/pve.yaml",
        "{ provider: proxmox, api_endpoint: 'https://pve.example:8006', api_token: secret:t, node: pve,\n  \
         datastore: local-zfs, bridge: vmbr0, images: { '*': 'local:import/debian-13.qcow2' } }\n",
    ),
    (
        "hosts/cloud.yaml",
        "{ provider: hetzner, token: secret:t, location: nbg1, server_types: { small: cx22 }, spread: true,\n  \
         networks: [10.10.0.0/16], firewall: orch-base, images: { '*': debian-13 } }\n",
    ),
    ("presets/small.yaml", "{ cores: 1, memory: 512, disk: 2 }\n"),
];

/// A lab on paper whose daemon is ended with it.
struct Clouds(Lab);

impl Clouds {
    fn up() -> Self {
        let clouds = Self(Lab::with_site(&FILES));
        // Everything that a manifest needs to be read is there before it.
        clouds.want(1);
        clouds.orch("lab up --paper --quick");
        clouds
    }

    fn want(&self, nodes: usize) {
        let count = if nodes > 1 { format!("count: {nodes}, ") } else { String::new() };
        let name = if nodes > 1 { "n" } else { "n-1" };
        let manifest = format!(
            "{{ schema_version: 2, name: many, settings: {{ verify_ssh: false, parallelism: 32 }},\n  \
             nodes: [{{ name: {name}, {count}type: vm, preset: small, image: debian-13 }}] }}\n"
        );
        self.0.write("manifests/many.yaml", &manifest);
    }

    #[track_caller]
    fn orch(&self, words: &str) -> Outcome {
        let mut command: Command = self.0.command(words);
        Outcome::of(command.env_remove("ORCH_API_DESCRIPTIONS"), words).ends_with(0)
    }

    /// How many questions a command asks of a host.
    #[track_caller]
    fn questions(&self, words: &str, host: &str) -> u64 {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let folder = self.0.state.join("lab");
        let calls = |reset| -> Json {
            let request = Request::Calls { host: None, reset };
            runtime.block_on(orch_lab::ask(&folder, &request)).unwrap()
        };
        calls(true);
        self.orch(words).every_node_is("unchanged");
        calls(false)[host]["count"].as_u64().unwrap()
    }
}

impl Drop for Clouds {
    fn drop(&mut self) {
        Outcome::of(&mut self.0.command("lab down"), "lab down");
    }
}

#[test]
fn finding_that_there_is_nothing_to_do_takes_no_more_questions_for_many_nodes_than_for_one() {
    let clouds = Clouds::up();
    // A list at Hetzner has pages of fifty.
    for (host, page, many) in [("pve", usize::MAX, 20), ("cloud", 50, 55)] {
        let create = format!("--lab create -M many -H {host} --json");
        let asked = [1, many].map(|nodes| {
            clouds.want(nodes);
            clouds.orch(&create);
            (nodes, clouds.questions(&create, host))
        });
        let one = asked[0].1;
        for (nodes, questions) in asked {
            let pages = u64::try_from(nodes.div_ceil(page)).unwrap();
            assert!(questions < one + pages, "{host}: {asked:?}");
        }
        clouds.orch(&format!("--lab destroy -M many -H {host} --yes"));
    }
}

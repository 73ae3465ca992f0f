//! Secrets pushed to nodes, beside one file for each connection, which is what the nearest peer does: the same values, to the same
//! nodes, over the same SSH servers.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use orch_secrets::sops::{Policy, encrypt};
use orch_secrets::{Format, Reader, seal};

use crate::site::Site;
use crate::usage::measure;
use crate::{TURNS, median, millis};

/// How many secrets each node has.
const SECRETS: usize = 200;
const NODES: usize = 20;

pub(crate) fn beside_one_by_one() {
    let site = Sealed::new(NODES);
    site.change(0);
    site.nodes.orch("create");
    let logins = site.nodes.logins();
    let mut pushed = Vec::new();
    for turn in 1..=TURNS {
        site.change(turn);
        pushed.push(measure(|| site.nodes.orch("config")).wall);
        site.nodes.assert_all_hold(&name(SECRETS - 1), &value(turn, SECRETS - 1));
    }
    let connections = site.nodes.logins() - logins;
    let unchanged = measure(|| site.nodes.orch("create")).wall;
    // Four thousand connections take long, so there is one turn of it.
    let config = site.nodes.ssh_config();
    let one_by_one = measure(|| send_one_by_one(&config)).wall;
    site.nodes.assert_all_hold("by-hand-199", &value(0, SECRETS - 1));
    let ours = median(&mut pushed);
    println!("| {SECRETS} secrets to each of {NODES} nodes | time |");
    println!("|---|---:|");
    println!(
        "| orch config, every value changed ({TURNS} runs, {connections} connections in all) | {} |",
        millis(ours)
    );
    println!("| orch create, nothing changed | {} |", millis(unchanged));
    println!("| one connection for each file, {NODES} nodes at once | {} |", millis(one_by_one));
    println!("one by one / orch: {:.1}", one_by_one.as_secs_f64() / ours.as_secs_f64());
}

/// A site whose nodes have secrets.
struct Sealed {
    nodes: Site,
    policy: Policy,
}

impl Sealed {
    fn new(nodes: usize) -> Self {
        let identity = seal::Identity::generate();
        let policy = Policy::of([Reader::from(identity.recipient())]);
        let nodes = Site::of(nodes).with_identity(&identity);
        let secrets: Vec<String> = (0..SECRETS)
            .map(|number| format!("{{ name: {0}, path: /run/secrets/{0} }}", name(number)))
            .collect();
        let spec = format!("{{ schema_version: 1, secrets: [{}] }}\n", secrets.join(", "));
        nodes.write("specs/motd.yaml", &spec);
        Self { nodes, policy }
    }

    /// Gives every secret another value, in one sops file.
    fn change(&self, turn: usize) {
        let lines: Vec<String> =
            (0..SECRETS).map(|number| format!("{}: {}\n", name(number), value(turn, number))).collect();
        let sealed =
            encrypt("secrets/all.yaml", Format::Yaml, lines.concat().as_bytes(), &self.policy).unwrap();
        self.nodes.write("secrets/all.yaml", &String::from_utf8(sealed).unwrap());
    }
}

fn name(number: usize) -> String {
    format!("secret-{number}")
}

fn value(turn: usize, number: usize) -> String {
    format!("value-{turn}-{number}-0123456789abcdef0123456789abcdef")
}

/// Brings every value to every node: a connection for each, one after the other on a node, all nodes at once.
fn send_one_by_one(config: &Path) {
    thread::scope(|scope| {
        for node in 1..=NODES {
            scope.spawn(move || {
                for number in 0..SECRETS {
                    send(config, &format!("node-{node}"), number);
                }
            });
        }
    });
}

fn send(config: &Path, node: &str, number: usize) {
    let path = format!("/run/secrets/by-hand-{number}");
    let script = format!("umask 077; cat > {path}.new && mv {path}.new {path}");
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(config).args(["-S", "none", node, &script]);
    let mut child = ssh.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value(0, number).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{node} {number}");
}

impl Site {
    /// How often somebody logged in to any node.
    fn logins(&self) -> usize {
        let count = |init: &u64| {
            let log = fs::read_to_string(format!("/proc/{init}/root/var/log/sshd.log")).unwrap_or_default();
            log.matches("Accepted publickey").count()
        };
        self.inits().iter().map(count).sum()
    }

    /// Fails unless a secret on every node is this one.
    fn assert_all_hold(&self, name: &str, value: &str) {
        for init in self.inits() {
            let path = format!("/proc/{init}/root/run/secrets/{name}");
            assert_eq!(fs::read_to_string(&path).unwrap(), value, "{path}");
        }
    }
}

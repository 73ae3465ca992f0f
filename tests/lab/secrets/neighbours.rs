//! What one node can learn of another's secrets with everything that it was ever given: nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use orch_secrets::seal::Identity;
use orch_secrets::{Bundle, Keyring, Secret, SopsFile};
use serde_json::Value as Json;
use uuid::Uuid;

use super::needles::Needles;
use super::scene::{Hoard, asking};
use super::{NEEDS, places};
use crate::common::{Need, ORCH, Outcome, TIMEOUTS, assert_nothing_is_left, lacks, node, wait_until};

/// Two nodes that have nothing in common but their host, and what is the second one's.
struct Neighbours {
    hoard: Hoard,
    of_a: String,
    of_b: String,
}

impl Neighbours {
    fn new() -> Self {
        let hoard = Hoard::with_nodes(&[]);
        let b = node("b").replace("spec: plain", "spec: other");
        hoard.lab.write_nodes(TIMEOUTS, &[&node("a"), &b]);
        let new = || format!("value-{}", Uuid::new_v4().simple());
        let (of_a, of_b) = (new(), new());
        hoard.keep("secrets/both.yaml", format!("of-a: {of_a}\nof-b: {of_b}\n"));
        hoard.ask_for(&["name: of-a, path: /run/secrets/own"]);
        let other = asking("of b", &["name: of-b, path: /etc/own"]);
        hoard.lab.write("specs/other.yaml", &other);
        Self { hoard, of_a, of_b }
    }

    /// What a node keeps of orch.
    fn kept(&self, machine: &str, name: &str) -> Vec<u8> {
        fs::read(self.hoard.lab.root(machine).join("var/lib/orch").join(name)).unwrap()
    }

    fn kept_json(&self, machine: &str, name: &str) -> Json {
        serde_json::from_slice(&self.kept(machine, name)).unwrap()
    }

    fn identity(&self, machine: &str) -> Identity {
        String::from_utf8(self.kept(machine, "age.key")).unwrap().parse().unwrap()
    }

    /// Runs a program in the first node, as its root.
    fn in_a(&self, argv: &[impl AsRef<OsStr>]) -> Outcome {
        let mut command = Command::new(ORCH);
        command.args(["__local", "enter"]).arg(self.hoard.lab.machine("lab-a")).args(argv);
        Outcome::of(&mut command, "enter")
    }

    /// Asks the server for the configuration of a node, from the first one; the status, and what is said.
    fn ask(&self, whose: &str, token: &str, headers: &[String]) -> (String, Json) {
        let server = self.kept_json("lab-a", "enrolment.json")["server"].as_str().unwrap().to_owned();
        let mut argv = vec!["curl".to_owned(), "-sk".into(), "--max-time".into(), "20".into()];
        argv.extend([
            "-w".into(),
            "\n%{http_code}".into(),
            "-H".into(),
            format!("Authorization: Bearer {token}"),
        ]);
        argv.extend(headers.iter().flat_map(|header| ["-H".into(), header.clone()]));
        argv.push(format!("{server}/v1/spec/lab.{whose}@father"));
        let said = self.in_a(&argv).ends_with(0).stdout;
        assert!(!said.contains(&self.of_b), "{said}");
        let (body, status) = said.rsplit_once('\n').unwrap();
        (status.to_owned(), serde_json::from_str(body).unwrap())
    }
}

fn value(bundle: &Bundle, name: &str) -> Option<Secret> {
    bundle.iter().find(|(of, _, _)| of.as_str() == name).map(|(_, _, value)| value.clone())
}

#[test]
fn a_node_opens_what_is_its_own_and_nothing_of_another_or_of_the_site() {
    if lacks(&NEEDS) {
        return;
    }
    let two = Neighbours::new();
    let lab = &two.hoard.lab;
    two.hoard.orch("create -M lab -H father").ends_with(0);
    let (a, sealed_a, sealed_b) =
        (two.identity("lab-a"), two.kept("lab-a", "secrets.age"), two.kept("lab-b", "secrets.age"));
    let own = Bundle::open(&a, &sealed_a).unwrap();
    assert_eq!(value(&own, "of-a").unwrap().expose(), two.of_a.as_bytes());
    assert!(value(&own, "of-b").is_none(), "it is given what its spec names, and no more");
    assert!(Bundle::open(&a, &sealed_b).is_err());
    let of_b = Bundle::open(&two.identity("lab-b"), &sealed_b).unwrap();
    assert_eq!(value(&of_b, "of-b").unwrap().expose(), two.of_b.as_bytes(), "it is there to be had");
    let file = fs::read(lab.site.join("secrets/both.yaml")).unwrap();
    let sops = SopsFile::parse("both.yaml", &file).unwrap();
    assert!(sops.open(&Keyring::of([a])).is_err());

    // With everything of the other one in its own place, it gets no further.
    let state = lab.root("lab-a").join("var/lib/orch");
    for name in ["secrets.age", "spec.json", "complete.json"] {
        fs::write(state.join(name), two.kept("lab-b", name)).unwrap();
    }
    for words in ["unseal", "inspect < /var/lib/orch/spec.json", "apply /var/lib/orch/spec.json"] {
        let said = two.in_a(&["sh", "-c", &format!("exec /run/orch/orch-node {words}")]);
        assert_ne!(said.code, 127, "{}", said.stderr);
        said.never_says(&two.of_b);
    }
    let needles = Needles::of(&[("of b", two.of_b.as_bytes())]);
    let found = [places::on_disk(&needles, lab, "lab-a"), places::in_memory(&needles, lab, "lab-a")];
    assert!(found.iter().all(BTreeSet::is_empty), "{found:#?}");
    assert!(!places::in_memory(&needles, lab, "lab-b").is_empty(), "where it belongs it is found");

    two.hoard.orch("create -M lab -H father").ends_with(0);
    two.hoard.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(lab);
}

#[test]
fn nothing_that_opens_anything_can_be_seen_from_inside_of_a_node() {
    if lacks(&NEEDS) {
        return;
    }
    let two = Neighbours::new();
    let lab = &two.hoard.lab;
    let owner = String::from_utf8(two.hoard.owner.to_secret().expose().to_vec()).unwrap();
    // Given as a variable, it is nearest to what a node could see.
    let words = "create -M lab -H father";
    let mut command = two.hoard.command(words);
    command.env_remove("SOPS_AGE_KEY_FILE").env("SOPS_AGE_KEY", &owner);
    let inside = || {
        let all = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; true";
        two.in_a(&["sh", "-c", all]).ends_with(0).stdout
    };
    Outcome::of(&mut command, words).ends_with(0);
    let shown = inside();
    assert!(shown.contains("PATH=") && shown.contains("sshd"), "it sees its own: {shown}");
    assert!(!shown.contains(&owner) && !shown.contains("SOPS_AGE_KEY"), "{shown}");
    for outside in [&lab.site, &lab.state, &two.hoard.key_file()] {
        assert!(
            !lab.root("lab-a").join(outside.strip_prefix("/").unwrap()).exists(),
            "{}",
            outside.display()
        );
        two.in_a(&["ls".as_ref(), outside.as_os_str()]).ends_with(2);
    }
    // The key that orch comes in with, too.
    let keys = fs::read_dir(lab.state.join("keys")).unwrap().flatten().map(|entry| entry.path());
    let key = keys.filter_map(|path| fs::read_to_string(path).ok()).find(|text| text.contains("PRIVATE"));
    let key = key.unwrap();
    let middle = key.lines().nth(2).unwrap();
    let b = two.identity("lab-b").to_secret();
    let values: [(&str, &[u8]); 4] = [
        ("of b", two.of_b.as_bytes()),
        ("the identity", owner.as_bytes()),
        ("the identity of b", b.expose()),
        ("the key of orch", middle.as_bytes()),
    ];
    let needles = Needles::of(&values);
    let found = [places::on_disk(&needles, lab, "lab-a"), places::in_memory(&needles, lab, "lab-a")];
    assert!(found.iter().all(BTreeSet::is_empty), "{found:#?}");
    assert!(!places::below(&needles, &lab.state.join("keys"), &[]).is_empty(), "it is found where it is");
    two.hoard.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(lab);
}

#[test]
fn a_node_that_asks_for_what_is_not_its_own_gets_nothing_and_is_told_of() {
    if lacks(&[NEEDS[0], NEEDS[1], Need::Program("curl")]) {
        return;
    }
    let two = Neighbours::new();
    let server = two.hoard.start("serve --listen 127.0.0.1:0");
    wait_until("the server serves", || server.said().contains("serving"));
    two.hoard.orch("create -M lab -H father --mode pull").ends_with(0);
    let first = two.kept_json("lab-a", "enrolment.json")["token"].as_str().unwrap().to_owned();
    let tokens = two.kept_json("lab-a", "pull.json")["tokens"].clone();
    let token = tokens["spec"].as_str().unwrap();
    let age = |identity: &Identity| format!("orch-age: {}", identity.recipient());
    let (a, b) = (two.identity("lab-a"), two.identity("lab-b"));
    for (whose, token, headers) in [
        ("b", token, vec![]),
        ("b", token, vec![age(&a)]),
        ("b", token, vec![age(&b)]),
        ("b", tokens["report"].as_str().unwrap(), vec![age(&a)]),
        ("b", &first, vec![age(&a)]),
    ] {
        let (status, said) = two.ask(whose, token, &headers);
        assert_eq!((status.as_str(), &said["error"]["code"]), ("401", &"E301".into()), "{said:#}");
    }
    let status = || two.hoard.orch("status -M lab -H father --mode pull --json");
    status().ends_with(0);
    // Who does not say whom to encrypt for is given nothing that is encrypted.
    let (code, said) = two.ask("a", token, &[]);
    assert_eq!((code.as_str(), said.get("parcel")), ("200", None), "{said:#}");
    let host_key =
        two.kept_json("lab-a", "keys.json")["host_key"].as_str().map(|key| format!("orch-host-key: {key}"));
    let own: Vec<String> = [Some(age(&a)), host_key].into_iter().flatten().collect();
    let (code, said) = two.ask("a", token, &own);
    let parcel = serde_json::from_value(said["parcel"].clone()).unwrap();
    let opened = Bundle::unpack(&a, &parcel).unwrap();
    assert_eq!((code.as_str(), value(&opened, "of-a").unwrap().expose()), ("200", two.of_a.as_bytes()));
    assert!(value(&opened, "of-b").is_none() && Bundle::unpack(&b, &parcel).is_err());
    status().ends_with(0);

    let stranger = Identity::generate();
    let (code, said) = two.ask("a", token, &[age(&stranger)]);
    assert_eq!((code.as_str(), &said["error"]["code"], said.get("parcel")), ("403", &"E302".into(), None));
    let alarmed = status().ends_with(2);
    assert_eq!(alarmed.node("a")["condition"], "alarmed", "{}", alarmed.stdout);
    assert_eq!(alarmed.node("b")["condition"], "as-wanted", "{}", alarmed.stdout);
    drop(server);
    two.hoard.orch("destroy -M lab -H father --yes").ends_with(0);
    assert_nothing_is_left(&two.hoard.lab);
}

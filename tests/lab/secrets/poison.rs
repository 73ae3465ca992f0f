//! Values that can be told from everything else are given to nodes over whole lives, and then searched for wherever they must
//! not be. Every search is shown to find what is put there on purpose.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::process::Signal;
use uuid::Uuid;

use super::needles::Needles;
use super::scene::{Hoard, around};
use super::watch::Watch;
use super::{NEEDS, places};
use crate::common::{ORCH, assert_nothing_is_left, kill, lacks, skip, wait_until};

/// What a node is given: in memory, at a path on its disk, for another user, and not text.
const ASKED: [&str; 4] = [
    "name: text, path: /run/secrets/text",
    "name: odd, path: /etc/app/odd, mode: \"0440\", owner: ops",
    "name: blob, from: \"secret:secrets/blob.bin\", path: /srv/blob",
    "name: deep, from: \"secret:secrets/app.yaml#deep[0].inner\", path: /run/app/deep, owner: ops",
];

/// A site whose every value is one of a kind, and the search for all of them.
pub(super) struct Poison {
    pub(super) hoard: Hoard,
    began: SystemTime,
    text: String,
    odd: String,
    deep: String,
    blob: Vec<u8>,
    signing: String,
    /// What was given before and is no more.
    before: Vec<String>,
}

impl Poison {
    pub(super) fn new() -> Self {
        let blob =
            [[0xFF, 0, b'\n'].as_slice(), Uuid::new_v4().as_bytes(), Uuid::new_v4().as_bytes()].concat();
        let signing = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let (hoard, began) = (Hoard::with_nodes(&["a"]), SystemTime::now());
        let mut poison = Self {
            hoard,
            began,
            text: String::new(),
            odd: String::new(),
            deep: String::new(),
            blob,
            signing,
            before: Vec::new(),
        };
        poison.change();
        poison.hoard.ask_for(&ASKED);
        poison.hoard.keep("secrets/server.yaml", format!("signing: {}\n", poison.signing));
        let site = fs::read_to_string(poison.hoard.lab.site.join("site.yaml")).unwrap();
        let server = "server: { signing_keys: { k1: \"secret:secrets/server.yaml#signing\" } }\n";
        poison.hoard.lab.write("site.yaml", &format!("{site}{server}"));
        poison
    }

    /// Gives every value anew, but the one that is not text.
    fn change(&mut self) {
        let new = || Uuid::new_v4().simple().to_string();
        let old = [&self.text, &self.odd, &self.deep].map(Clone::clone);
        self.before.extend(old.into_iter().filter(|old| !old.is_empty()));
        self.text = format!("poison-{}", new());
        self.odd = format!("p\"o<i>s&n\\ {}\n/+%\n", new());
        self.deep = new();
        let plain =
            serde_json::json!({ "text": self.text, "odd": self.odd, "deep": [{ "inner": self.deep }] });
        self.hoard.keep("secrets/app.yaml", plain.to_string());
        self.hoard.keep("secrets/blob.bin", &self.blob);
    }

    /// Everything that must be found nowhere, with the identity that opens it.
    pub(super) fn needles(&self) -> Arc<Needles> {
        let owner = self.hoard.owner.to_secret();
        let mut values: Vec<(&str, &[u8])> = vec![
            ("the text", self.text.as_bytes()),
            ("the odd text", self.odd.as_bytes()),
            ("the deep text", self.deep.as_bytes()),
            ("the blob", &self.blob),
            ("the signing key", self.signing.as_bytes()),
            ("the identity", owner.expose()),
        ];
        values.extend(self.before.iter().map(|value| ("what was before", value.as_bytes())));
        Arc::new(Needles::of(&values))
    }

    fn page(&self) -> PathBuf {
        self.hoard.beside("run.html")
    }

    /// Everything outside of machines that somebody could have written to.
    fn found_outside(&self, needles: &Needles) -> BTreeSet<String> {
        // The site, the state, and what lies beside them: all but the file that the identity is in.
        let all = self.hoard.lab.site.parent().unwrap();
        let mut found = places::below(needles, all, &[&self.hoard.key_file()]);
        found.extend(places::loose(needles, self.began));
        found
    }

    /// Runs a command, and asserts that nothing of it and nothing that it left holds a value.
    #[track_caller]
    fn assert_keeps_quiet(&self, words: &str) {
        let words =
            words.replace("LAB", "-M lab -H father").replace("PAGE", &self.page().display().to_string());
        let needles = self.needles();
        let watch = Watch::begin(&needles, &[]);
        let outcome = self.hoard.orch(&words).ends_with(0);
        let mut found = watch.end();
        found.extend(needles.in_bytes(outcome.stdout.as_bytes()));
        found.extend(needles.in_bytes(outcome.stderr.as_bytes()));
        found.extend(self.found_outside(&needles));
        if self.hoard.lab.machine("lab-a").exists() {
            found.extend(places::on_disk(&needles, &self.hoard.lab, "lab-a"));
        }
        assert!(found.is_empty(), "after `{words}`: {found:#?}");
    }

    /// Asserts that the node has every value where it is to be, and in memory.
    #[track_caller]
    fn assert_given(&self) {
        let given = |path| self.hoard.on_node("lab-a", path).unwrap_or_default();
        assert_eq!(given("/run/secrets/text"), self.text.as_bytes());
        assert_eq!(given("/etc/app/odd"), self.odd.as_bytes());
        assert_eq!(given("/srv/blob"), self.blob);
        assert_eq!(given("/run/app/deep"), self.deep.as_bytes());
        let found = places::in_memory(&self.needles(), &self.hoard.lab, "lab-a");
        for what in ["the text", "the odd text", "the blob", "the deep text"] {
            assert!(
                found.iter().any(|found| found.starts_with(what)),
                "{what} is found in memory: {found:#?}"
            );
        }
        let places =
            ["/run/secrets/text", "/run/orch/secrets/odd", "/run/orch/secrets/blob", "/run/app/deep"];
        let is_there = |found: &String| places.iter().any(|place| found.ends_with(place));
        assert!(found.iter().all(is_there), "nothing else is in memory either: {found:#?}");
    }
}

/// A whole life, with every value changed in the middle of it.
fn live(poison: &mut Poison, mode: &str) {
    poison.assert_keeps_quiet(&format!("create LAB {mode} --json --report PAGE"));
    poison.assert_given();
    poison.change();
    poison.assert_keeps_quiet(&format!("config LAB {mode} --report PAGE"));
    poison.assert_given();
    poison.assert_keeps_quiet(&format!("status LAB {mode} --json"));
    poison.assert_keeps_quiet(&format!("plan LAB {mode}"));
    poison.assert_keeps_quiet("exec LAB -- true");
    poison.assert_keeps_quiet("destroy LAB --yes --json --report PAGE");
    assert!(fs::read_to_string(poison.page()).unwrap().contains("father"), "there is a page");
    assert_eq!(poison.hoard.lab.machines(), [""; 0], "and no machine any more");
}

#[test]
fn over_the_whole_life_of_a_node_that_is_pushed_no_value_is_anywhere_but_in_its_memory() {
    if !lacks(&NEEDS) {
        live(&mut Poison::new(), "--mode push");
    }
}

#[test]
fn over_the_whole_life_of_a_node_that_pulls_no_value_is_anywhere_but_in_its_memory() {
    if !lacks(&NEEDS) {
        live(&mut Poison::new(), "--mode pull");
    }
}

#[test]
fn no_value_is_anywhere_either_where_a_server_stays() {
    if lacks(&NEEDS) {
        return;
    }
    let mut poison = Poison::new();
    let server = poison.hoard.start("serve --listen 127.0.0.1:0");
    wait_until("the server serves", || server.said().contains("serving"));
    live(&mut poison, "--mode pull");
    assert!(server.said().contains(" 200 to "), "it tells whom it served: {}", server.said());
    let found = poison.needles().in_bytes(server.said().as_bytes());
    assert!(found.is_empty(), "{found:#?}");
    drop(server);
    assert_nothing_is_left(&poison.hoard.lab);
}

#[test]
fn a_secret_that_cannot_be_put_in_place_is_told_of_without_its_value() {
    if lacks(&NEEDS) {
        return;
    }
    for mode in ["push", "pull"] {
        let poison = Poison::new();
        let wrong = [
            ASKED[0],
            "name: odd, path: /etc/ssh",
            "name: blob, path: /run/blob, owner: nobody-of-that-name",
        ];
        poison.hoard.ask_for(&wrong);
        let failed = poison.hoard.orch(&format!("create -M lab -H father --mode {mode} --json"));
        let failed = failed.ends_with(1).says("/etc/ssh").says("nobody-of-that-name");
        let needles = poison.needles();
        let mut found = poison.found_outside(&needles);
        found.extend(needles.in_bytes(failed.stdout.as_bytes()));
        found.extend(needles.in_bytes(failed.stderr.as_bytes()));
        found.extend(places::on_disk(&needles, &poison.hoard.lab, "lab-a"));
        assert!(found.is_empty(), "{found:#?}");
        let there = poison.hoard.on_node("lab-a", "/run/secrets/text").unwrap();
        assert_eq!(there, poison.text.as_bytes(), "the others are put in place");
        poison.hoard.orch("destroy -M lab -H father --yes").ends_with(0);
    }
}

#[test]
fn every_place_that_is_searched_shows_what_is_put_there_on_purpose() {
    if lacks(&NEEDS) {
        return;
    }
    let poison = Poison::new();
    let (lab, needles, text) = (&poison.hoard.lab, poison.needles(), poison.text.clone());
    poison.hoard.orch("create -M lab -H father").ends_with(0);
    let outside = [
        lab.state.join("runs/planted"),
        lab.state.join("ssh/planted"),
        lab.machine("lab-a").join("planted"),
        lab.site.join("planted"),
        poison.hoard.beside("tmp/planted"),
        poison.page(),
        std::env::temp_dir().join(format!("planted-{}", Uuid::new_v4().simple())),
    ];
    for place in outside {
        fs::write(&place, format!("<p>{text}</p>")).unwrap();
        let found = poison.found_outside(&needles);
        fs::remove_file(&place).unwrap();
        let name = place.display().to_string();
        assert!(found.iter().any(|found| found.contains(&name)), "{name}: {found:#?}");
    }
    let on_disk = || places::on_disk(&needles, lab, "lab-a");
    for place in
        ["var/log/planted", "var/lib/orch/planted", "etc/planted", "home/ops/planted", "root/planted"]
    {
        let path = lab.root("lab-a").join(place);
        fs::write(&path, &text).unwrap();
        let found = on_disk();
        assert!(found.iter().any(|found| found.contains(place)), "{place}: {found:#?}");
        fs::remove_file(&path).unwrap();
    }
    // What was on the disk and was removed is there still, for whoever reads its bytes.
    if lab.machine("lab-a").join("disk.img").exists() {
        let found = on_disk();
        assert!(found.iter().any(|found| found.contains("disk.img")), "{found:#?}");
    }
    let said = poison.hoard.orch(&format!("exec -M lab -H father -- echo {text}")).ends_with(0);
    assert!(!needles.in_bytes(said.stdout.as_bytes()).is_empty(), "{}", said.stdout);
    poison.hoard.orch("destroy -M lab -H father --yes").ends_with(0);
}

#[test]
fn whoever_looks_at_processes_sees_arguments_and_variables_also_of_those_that_live_for_moments() {
    let secret = Uuid::new_v4().simple().to_string();
    let needles = Arc::new(Needles::of(&[("the secret", secret.as_bytes())]));
    for place in ["arguments", "variables"] {
        let watch = Watch::begin(&needles, &[]);
        for _ in 0..40 {
            let mut command = Command::new("sleep");
            if place == "arguments" {
                command.arg("0.01").arg0(&secret);
            } else {
                command.arg("0.01").env("SECRET", &secret);
            }
            command.status().unwrap();
        }
        let found = watch.end();
        assert!(found.iter().any(|found| found.contains(place)), "{found:#?}");
    }
}

/// Whether a program that is ended by a fault leaves an image of its memory, where nothing else keeps it from that.
fn leaves_an_image(command: &Command, is_at_it: impl Fn(u32) -> bool) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"]).current_dir(folder.path());
    let shell = around(&mut shell, command);
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("it is at it", || is_at_it(child.id()));
    kill(child.id().cast_signed(), Signal::ABORT);
    child.wait().unwrap().core_dumped()
}

/// Whether a process has come as far as to wait for what it is never given.
fn reads(pid: u32) -> bool {
    // In the kernel's words: the pipe that is its input is what it waits for.
    let waits_for = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    waits_for.starts_with("0 0x0 ")
}

#[test]
fn a_program_that_opens_secrets_and_is_ended_by_a_fault_leaves_no_image_of_its_memory() {
    if lacks(&NEEDS) {
        return;
    }
    if !leaves_an_image(&Command::new("cat"), reads) {
        return skip("this computer keeps no images of the memory of programs");
    }
    let mut node = Command::new(ORCH);
    node.args(["node", "--root", ".", "push"]);
    assert!(!leaves_an_image(&node, reads), "the one on a node");
    let poison = Poison::new();
    let socket = poison.hoard.lab.state.join("server/lab/operator.sock");
    let serve = poison.hoard.command("serve --listen 127.0.0.1:0");
    assert!(!leaves_an_image(&serve, |_| UnixStream::connect(&socket).is_ok()), "the driver");
}

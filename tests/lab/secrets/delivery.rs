//! Values on their way: what was changed arrives and nothing else is sent, what is asked for no more is gone, and a node that
//! starts anew has what it had, whoever is there to ask.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use orch_secrets::Bundle;
use orch_secrets::seal::Identity;
use rustix::process::Signal;

use super::scene::Hoard;
use super::{CONFIG, CREATE, DESTROY, NEEDS, STATUS};
use crate::common::{
    Footprint, ORCH, Outcome, Running, assert_nothing_is_left, is_alive, kill, lacks, wait_until,
};

/// Larger than everything else that is said to a node.
const LARGE: usize = 300 << 10;

/// The names of what a node keeps sealed, opened with its own identity.
fn held(hoard: &Hoard, machine: &str) -> Vec<String> {
    let state = hoard.lab.root(machine).join("var/lib/orch");
    let Ok(sealed) = fs::read(state.join("secrets.age")) else { return Vec::new() };
    let identity: Identity = fs::read_to_string(state.join("age.key")).unwrap().parse().unwrap();
    let bundle = Bundle::open(&identity, &sealed).unwrap();
    bundle.iter().map(|(name, _, _)| name.to_string()).collect()
}

/// How many bytes a machine was sent since it was started.
fn received(hoard: &Hoard, machine: &str) -> usize {
    let init = hoard.lab.init(machine).unwrap();
    let devices = fs::read_to_string(format!("/proc/{init}/net/dev")).unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// How many bytes a machine was sent while something was done.
fn sent_during(hoard: &Hoard, machine: &str, doing: impl FnOnce()) -> usize {
    let before = received(hoard, machine);
    doing();
    received(hoard, machine) - before
}

/// Text that does not get any shorter.
fn large(seed: u64) -> String {
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(char::from(b'a' + u8::try_from(*state >> 60).unwrap()))
    };
    std::iter::successors(Some(seed), |_| None)
        .flat_map(|mut state| std::iter::from_fn(move || next(&mut state)).take(LARGE))
        .collect()
}

/// Cuts the power of a machine, and starts it as this computer would, with nobody's identity.
fn reboot(hoard: &Hoard, machine: &str) {
    let init = hoard.lab.init(machine).unwrap();
    kill(init, Signal::KILL);
    wait_until("the machine is off", || !is_alive(init));
    let mut boot = Command::new(ORCH);
    boot.args(["__local", "boot"]).arg(hoard.lab.machine(machine));
    boot.env_remove("SOPS_AGE_KEY_FILE").env_remove("SOPS_AGE_KEY").env("HOME", "/nonexistent");
    Outcome::of(&mut boot, "boot").ends_with(0);
    wait_until("it runs again", || hoard.lab.init(machine).is_some_and(|new| new != init && is_alive(new)));
}

fn serve(hoard: &Hoard) -> Running {
    let server = hoard.start("serve --listen 127.0.0.1:0");
    wait_until("the server serves", || server.said().contains("serving"));
    server
}

fn end(hoard: &Hoard) {
    hoard.orch(DESTROY).ends_with(0);
    assert_nothing_is_left(&hoard.lab);
}

/// A value that changes beside one that is large and stays: what a node is sent shows which of the two it was.
fn only_what_changed_is_sent(mode: &str) {
    let hoard = Hoard::with_nodes(&["a"]);
    hoard.ask_for(&["name: small, path: /run/secrets/small", "name: large, path: /etc/large"]);
    hoard.keep("secrets/app.yaml", format!("small: first\nlarge: {}\n", large(1)));
    let has = |path: &str| String::from_utf8(hoard.on_node("lab-a", path).unwrap_or_default()).unwrap();
    let orch = |words: &str| hoard.orch(&words.replace("--json", &format!("--mode {mode} --json")));
    orch(CREATE).ends_with(0).every_node_is("changed");
    assert_eq!((has("/run/secrets/small").as_str(), has("/etc/large")), ("first", large(1)));

    hoard.edit("secrets/app.yaml", "small", "second");
    let sent = sent_during(&hoard, "lab-a", || drop(orch(CONFIG).ends_with(0).every_node_is("changed")));
    assert_eq!((has("/run/secrets/small").as_str(), has("/etc/large")), ("second", large(1)));
    assert!(sent < LARGE / 2, "the large one was not sent again: {sent} bytes");
    // The control: where it is sent, it is seen.
    hoard.edit("secrets/app.yaml", "large", &large(2));
    let sent = sent_during(&hoard, "lab-a", || drop(orch(CONFIG).ends_with(0).every_node_is("changed")));
    assert_eq!(has("/etc/large"), large(2));
    assert!(sent > LARGE, "the large one was sent: {sent} bytes");

    let before = Footprint::of(&hoard.lab, "lab-a");
    let sealed = hoard.lab.root("lab-a").join("var/lib/orch/secrets.age");
    let written = |path: &Path| fs::metadata(path).map(|about| (about.ino(), about.mtime_nsec())).unwrap();
    let was = written(&sealed);
    let sent = sent_during(&hoard, "lab-a", || drop(orch(CREATE).ends_with(0).every_node_is("unchanged")));
    assert!(sent < LARGE / 2, "{sent} bytes");
    assert_eq!((Footprint::of(&hoard.lab, "lab-a"), written(&sealed)), (before, was));
    // Under a new key they are sent once more, and nothing on the node changes.
    hoard.keep("secrets/app.yaml", format!("small: second\nlarge: {}\n", large(2)));
    let sent = sent_during(&hoard, "lab-a", || drop(orch(CREATE).ends_with(0).every_node_is("unchanged")));
    assert!(sent > LARGE, "{sent} bytes");
    orch(STATUS).ends_with(0).every_node_is("as-wanted");
    end(&hoard);
}

#[test]
fn what_was_changed_is_sent_to_a_node_that_is_pushed_and_nothing_else() {
    if !lacks(&NEEDS) {
        only_what_changed_is_sent("push");
    }
}

#[test]
fn what_was_changed_is_sent_to_a_node_that_pulls_and_nothing_else() {
    if !lacks(&NEEDS) {
        only_what_changed_is_sent("pull");
    }
}

#[test]
fn a_secret_has_the_owner_and_the_mode_that_were_asked_for_and_is_gone_when_it_is_asked_for_no_more() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = Hoard::with_nodes(&["a"]);
    hoard.keep("secrets/app.yaml", "one: value of one\ntwo: value of two\nthree: value of three\n");
    let asked = [
        "name: one, path: /run/secrets/one",
        "name: two, path: /etc/app/two, mode: \"0640\", owner: ops",
        "name: three, path: /run/app/three, mode: \"0444\"",
    ];
    hoard.ask_for(&asked);
    hoard.orch(CREATE).ends_with(0);
    let root = hoard.lab.root("lab-a");
    let passwd = fs::read_to_string(root.join("etc/passwd")).unwrap();
    let ops = passwd.lines().find(|line| line.starts_with("ops:")).unwrap();
    let ops: u32 = ops.split(':').nth(2).unwrap().parse().unwrap();
    for (path, owner, mode) in
        [("run/secrets/one", 0, 0o400), ("run/orch/secrets/two", ops, 0o640), ("run/app/three", 0, 0o444)]
    {
        let about = fs::symlink_metadata(root.join(path)).unwrap();
        let found = (about.is_file(), about.uid(), about.permissions().mode() & 0o7777);
        assert_eq!(found, (true, owner, mode), "{path}");
    }
    assert_eq!(fs::read_link(root.join("etc/app/two")).unwrap(), Path::new("/run/orch/secrets/two"));
    assert_eq!(held(&hoard, "lab-a"), ["one", "three", "two"]);

    // Changed by hand, it is put right; so is what it may be read by.
    fs::write(root.join("run/secrets/one"), "by hand").unwrap();
    fs::set_permissions(root.join("run/app/three"), fs::Permissions::from_mode(0o666)).unwrap();
    hoard.orch(STATUS).ends_with(2).every_node_is("drifted").never_says("value of").never_says("by hand");
    hoard.orch(CONFIG).ends_with(0).every_node_is("changed");
    assert_eq!(hoard.on_node("lab-a", "/run/secrets/one").unwrap(), b"value of one");
    assert_eq!(fs::metadata(root.join("run/app/three")).unwrap().permissions().mode() & 0o777, 0o444);

    hoard.ask_for(&asked[..1]);
    hoard.orch(CONFIG).ends_with(0).every_node_is("changed");
    let gone = ["etc/app/two", "run/orch/secrets/two", "run/app/three"].map(PathBuf::from);
    assert!(
        gone.iter().all(|path| fs::symlink_metadata(root.join(path)).is_err()),
        "what is asked for no more"
    );
    assert_eq!(held(&hoard, "lab-a"), ["one"]);
    assert_eq!(hoard.on_node("lab-a", "/run/secrets/one").unwrap(), b"value of one");

    hoard.ask_for(&[]);
    hoard.orch(CREATE).ends_with(0).every_node_is("changed");
    assert!(!root.join("run/secrets/one").exists() && !root.join("var/lib/orch/secrets.age").exists());
    hoard.orch(STATUS).ends_with(0).every_node_is("as-wanted");
    end(&hoard);
}

#[test]
fn a_node_that_was_started_anew_has_its_secrets_with_nobody_there_to_open_them() {
    if lacks(&NEEDS) {
        return;
    }
    for mode in ["push", "pull"] {
        let hoard = Hoard::with_nodes(&["a"]);
        hoard.keep("secrets/app.yaml", "one: value of one\ntwo: value of two\n");
        hoard.ask_for(&["name: one, path: /run/secrets/one", "name: two, path: /etc/two, owner: ops"]);
        hoard.orch(&format!("create -M lab -H father --mode {mode}")).ends_with(0);
        let in_memory = hoard.lab.root("lab-a").join("run/orch/secrets/two");
        let before = fs::metadata(&in_memory).unwrap();
        // Neither the site nor the identity nor, in pull, a server is there.
        let (away, keys) = (hoard.beside("away"), hoard.beside("keys.away"));
        fs::rename(hoard.lab.site.join("secrets"), &away).unwrap();
        fs::rename(hoard.key_file(), &keys).unwrap();
        reboot(&hoard, "lab-a");
        wait_until("its secrets are there", || hoard.on_node("lab-a", "/etc/two").is_some());
        assert_eq!(hoard.on_node("lab-a", "/run/secrets/one").unwrap(), b"value of one", "{mode}");
        assert_eq!(hoard.on_node("lab-a", "/etc/two").unwrap(), b"value of two", "{mode}");
        let after = fs::metadata(hoard.lab.root("lab-a").join("run/orch/secrets/two")).unwrap();
        assert_ne!((before.dev(), before.ino()), (after.dev(), after.ino()), "it is another memory");
        assert_eq!((before.uid(), before.mode()), (after.uid(), after.mode()));
        fs::rename(away, hoard.lab.site.join("secrets")).unwrap();
        fs::rename(keys, hoard.key_file()).unwrap();
        if mode == "push" {
            hoard.orch(STATUS).ends_with(0).every_node_is("as-wanted");
        }
        end(&hoard);
    }
}

#[test]
fn an_edit_of_a_sops_file_reaches_a_node_that_pulls_by_itself_and_one_that_breaks_it_does_not() {
    if lacks(&NEEDS) {
        return;
    }
    let hoard = Hoard::with_nodes(&["a"]);
    hoard.keep("secrets/app.yaml", "one: value of one\n");
    hoard.ask_for(&["name: one, path: /run/secrets/one"]);
    let server = serve(&hoard);
    hoard.orch("create -M lab -H father --mode pull").ends_with(0);
    hoard.keep("secrets/app.yaml", "one: another value\n");
    let has = |value: &str| {
        hoard.on_node("lab-a", "/run/secrets/one").is_some_and(|found| found == value.as_bytes())
    };
    wait_until("the edit has reached it", || has("another value"));
    let status = || hoard.orch("status -M lab -H father --mode pull --json");
    wait_until("it has reported", || status().code == 0);

    let whole = fs::read(hoard.lab.site.join("secrets/app.yaml")).unwrap();
    fs::write(hoard.lab.site.join("secrets/app.yaml"), &whole[..whole.len() / 2]).unwrap();
    wait_until("the server has seen it", || status().code != 0);
    assert!(has("another value"), "what cannot be opened changes nothing");
    hoard.keep("secrets/app.yaml", "one: mended value\n");
    wait_until("the mended one has reached it", || has("mended value"));
    for value in ["value of one", "another value", "mended value"] {
        assert!(!server.said().contains(value), "{}", server.said());
    }
    drop(server);
    end(&hoard);
}

#[test]
fn a_node_that_lost_what_it_held_or_what_opens_it_is_given_it_again() {
    if lacks(&NEEDS) {
        return;
    }
    for mode in ["push", "pull"] {
        let hoard = Hoard::with_nodes(&["a"]);
        hoard.keep("secrets/app.yaml", "one: clear-one\ntwo: clear-two\n");
        hoard.ask_for(&["name: one, path: /run/secrets/one", "name: two, path: /etc/two"]);
        let orch = |verb: &str| hoard.orch(&format!("{verb} -M lab -H father --mode {mode} --json"));
        orch("create").ends_with(0);
        let state = || hoard.lab.root("lab-a").join("var/lib/orch");
        let spoil: [(&str, &dyn Fn()); 4] = [
            ("damaged", &|| {
                let mut sealed = fs::read(state().join("secrets.age")).unwrap();
                *sealed.last_mut().unwrap() ^= 1;
                fs::write(state().join("secrets.age"), sealed).unwrap();
            }),
            ("removed", &|| fs::remove_file(state().join("secrets.age")).unwrap()),
            ("nobody's to open", &|| fs::remove_file(state().join("age.key")).unwrap()),
            ("both gone", &|| {
                fs::remove_file(state().join("secrets.age")).unwrap();
                fs::remove_file(state().join("age.key")).unwrap();
            }),
        ];
        // Whoever fetches loses what it held in the same way; only who it is differs.
        let spoil = if mode == "push" { &spoil[..] } else { &spoil[2..] };
        for (how, spoil) in spoil {
            spoil();
            reboot(&hoard, "lab-a");
            assert_eq!(hoard.on_node("lab-a", "/run/secrets/one"), None, "{mode}, {how}: it cannot have it");
            wait_until("it can be spoken to", || hoard.lab.listens("lab-a", 22));
            assert_ne!(
                orch("status").never_says("clear-").code,
                0,
                "{mode}, {how}: it is said that it lacks it"
            );
            orch("config").ends_with(0).never_says("clear-");
            assert_eq!(hoard.on_node("lab-a", "/run/secrets/one").unwrap(), b"clear-one", "{mode}, {how}");
            assert_eq!(hoard.on_node("lab-a", "/etc/two").unwrap(), b"clear-two", "{mode}, {how}");
            orch("status").ends_with(0).every_node_is("as-wanted");
            // What was written down is what it has now.
            let record = fs::read_to_string(hoard.lab.machine("lab-a").join("machine.json")).unwrap();
            let identity: Identity = fs::read_to_string(state().join("age.key")).unwrap().parse().unwrap();
            assert!(record.contains(&identity.recipient().to_string()), "{mode}, {how}: {record}");
        }
        end(&hoard);
    }
}

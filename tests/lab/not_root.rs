//! An ordinary user makes machines too: with a range of ids, SSH and all; with its own id alone, by the direct way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::{
    Lab, Need, ORCH, Outcome, Running, all_processes, assert_nothing_is_left, command_of, is_alive, kill,
    lacks, wait_until,
};

/// What makes an ordinary user of root.
const TOOLS: [Need; 2] = [Need::Program("setpriv"), Need::Program("unshare")];

/// A user, by its id and the id of its group.
#[derive(Debug, Clone, Copy)]
enum User {
    /// One to whom `/etc/subuid` grants a range of ids.
    WithRange,
    /// One that has no account, and so no ids but its own.
    Alone,
}

impl User {
    const fn id(self) -> u32 {
        match self {
            Self::WithRange => 61_233,
            Self::Alone => 61_234,
        }
    }
}

/// A lab that belongs to a user, with a copy of the program that the user may run.
struct Theirs {
    lab: Lab,
    user: User,
}

impl Theirs {
    fn new(user: User) -> Self {
        let lab = Lab::with_sample_site();
        let folder = lab.site.parent().unwrap().to_owned();
        let program = folder.join("orch");
        // By another process: what this one writes, a process that is started meanwhile would hold open.
        Outcome::of(Command::new("cp").arg(ORCH).arg(&program), "cp").ends_with(0);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        give(&folder, user.id());
        grant(&folder, user);
        Self { lab, user }
    }

    fn orch(&self, words: &str) -> Outcome {
        Outcome::of(&mut self.command(words), words)
    }

    fn command(&self, words: &str) -> Command {
        let folder = self.lab.site.parent().unwrap();
        let id = self.user.id();
        // In mounts of its own the user has an account and a range of ids, which this computer need not have for it.
        let script = r#"for file in passwd subuid subgid; do mount --bind "$0/$file" "/etc/$file" || exit 99; done; exec "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(folder.join("etc"));
        command.args(["setpriv", &format!("--reuid={id}"), &format!("--regid={id}"), "--clear-groups"]);
        command
            .arg(folder.join("orch"))
            .arg("--site")
            .arg(&self.lab.site)
            .arg("--state")
            .arg(&self.lab.state);
        command.args(words.split_whitespace()).env("HOME", folder).env("NO_COLOR", "1").current_dir(folder);
        command.env_remove("ORCH_SITE").env_remove("ORCH_STATE").env_remove("XDG_STATE_HOME");
        command
    }

    /// A whole life: made, looked at, used, made again, destroyed twice.
    fn live(&self) {
        let about = "-M nested-test -H father";
        self.orch(&format!("create {about} --json")).ends_with(0).every_node_is("changed");
        self.orch(&format!("status {about} --json")).ends_with(0).every_node_is("as-wanted");
        let named = self.orch(&format!("exec {about} -- hostname")).ends_with(0);
        named.says("== inner-pve: exit 0").says("== test-vm: exit 0").says("\ntest-vm\n");
        self.orch(&format!("exec {about} --only test-vm -- cat /etc/motd"))
            .ends_with(0)
            .says("Made by orch.");
        self.orch(&format!("ssh {about} test-vm -- true")).ends_with(0);
        self.orch(&format!("create {about} --json")).ends_with(0).every_node_is("unchanged");
        self.orch(&format!("destroy {about} --yes --json")).ends_with(0).every_node_is("changed");
        self.orch(&format!("destroy {about} --yes --json")).ends_with(0).every_node_is("unchanged");
        assert_nothing_is_left(&self.lab);
    }

    /// Machines that fetch their configuration find the server in their own network.
    fn pull(&self) {
        self.orch("create -M mixed-mode -H father --mode pull --json").ends_with(0).every_node_is("changed");
        self.orch("status -M mixed-mode -H father --mode pull --json")
            .ends_with(0)
            .every_node_is("as-wanted");
        self.orch("create -M mixed-mode -H father --mode pull --json")
            .ends_with(0)
            .every_node_is("unchanged");
        self.orch("destroy -M mixed-mode -H father --yes --json").ends_with(0).every_node_is("changed");
        assert_nothing_is_left(&self.lab);
    }

    /// A machine that lost its power comes back with what was on it.
    fn come_back(&self) {
        let about = "-M single-node-push -H father";
        self.orch(&format!("create {about}")).ends_with(0);
        self.orch(&format!("exec {about} -- touch /var/lib/kept")).ends_with(0);
        let init = self.lab.init("single-node-push-test-vm").unwrap();
        kill(init, Signal::KILL);
        wait_until("the machine is off", || !is_alive(init));
        self.orch(&format!("status {about} --json")).ends_with(1).every_node_is("stopped");
        self.orch(&format!("create {about} --json")).ends_with(0).every_node_is("changed");
        self.orch(&format!("exec {about} -- ls /var/lib/kept")).ends_with(0);
        self.orch(&format!("destroy {about} --yes")).ends_with(0);
        assert_nothing_is_left(&self.lab);
    }

    /// Peers are made and destroyed at once.
    fn live_together(&self) {
        self.orch("create -M workers -H father --json").ends_with(0).every_node_is("changed");
        self.orch("status -M workers -H father --json").ends_with(0).every_node_is("as-wanted");
        self.orch("destroy -M workers -H father --yes --json").ends_with(0).every_node_is("changed");
        assert_nothing_is_left(&self.lab);
    }
}

/// The process of a machine that applies a configuration.
fn worker(lab: &Lab, machine: &str) -> Option<i32> {
    let space = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = space(lab.init(machine).unwrap());
    all_processes().into_iter().find(|pid| space(*pid) == own && command_of(*pid).contains(" worker "))
}

fn give(path: &Path, id: u32) {
    chown(path, Some(id), Some(id)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().flatten().for_each(|entry| give(&entry.path(), id));
    }
}

/// Writes the files that say who a user is and which ids it has.
fn grant(folder: &Path, user: User) {
    let etc = folder.join("etc");
    fs::create_dir(&etc).unwrap();
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let (account, range) = match user {
        User::WithRange => {
            let id = user.id();
            (format!("labuser:x:{id}:{id}::/:/bin/sh\n"), "labuser:1000000:65536\n")
        }
        User::Alone => (String::new(), ""),
    };
    fs::write(etc.join("passwd"), accounts + &account).unwrap();
    fs::write(etc.join("subuid"), range).unwrap();
    fs::write(etc.join("subgid"), range).unwrap();
}

#[test]
fn a_user_with_a_range_of_ids_makes_machines_with_ssh() {
    if lacks(&[Need::Root, Need::Ssh, Need::Program("newuidmap")]) || lacks(&TOOLS) {
        return;
    }
    let theirs = Theirs::new(User::WithRange);
    theirs.live();
    theirs.live_together();
    theirs.pull();
    theirs.come_back();
    theirs.orch("create -M single-node-push -H father").ends_with(0).never_says("no SSH server");
    theirs.orch("ssh-config -M single-node-push -H father").ends_with(0).says("ProxyCommand");
    theirs.orch("destroy -M single-node-push -H father --yes").ends_with(0);
}

#[test]
fn a_user_whose_ids_are_not_given_is_told_who_gives_them() {
    if lacks(&[Need::Root, Need::Program("newuidmap")]) || lacks(&TOOLS) {
        return;
    }
    let theirs = Theirs::new(User::WithRange);
    let bin = theirs.lab.site.join("bin");
    fs::create_dir(&bin).unwrap();
    // One that may not do what it is for, as where it has lost its right to.
    fs::write(bin.join("newuidmap"), "#!/bin/sh\necho 'write to uid_map failed' >&2; exit 1\n").unwrap();
    fs::set_permissions(bin.join("newuidmap"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let words = "create -M single-node-push -H father";
    let told = Outcome::of(theirs.command(words).env("PATH", path), words).ends_with(1);
    told.says("cannot give it its user ids")
        .says("write to uid_map failed")
        .says("`newgidmap` are setuid root");
    theirs.orch("destroy -M single-node-push -H father --yes").ends_with(0);
    assert_nothing_is_left(&theirs.lab);
}

#[test]
fn the_root_of_a_user_namespace_makes_machines_as_an_ordinary_user_does() {
    if lacks(&[Need::Root]) || lacks(&TOOLS) {
        return;
    }
    let lab = Lab::with_sample_site();
    // All in one namespace: from another, nobody could come into what was made in this one.
    let script = r#"for verb in create status "exec -- true" "destroy --yes"; do
        "$0" --site "$1" --state "$2" ${verb%% *} -M single-node-push -H father ${verb#"${verb%% *}"} || exit; done"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, ORCH]).arg(&lab.site).arg(&lab.state);
    command.env("NO_COLOR", "1").env("ORCH_KEEP_CONNECTIONS", "0");
    Outcome::of(&mut command, "a whole life").ends_with(0).says("one user alone and no SSH server");
    assert_nothing_is_left(&lab);
}

#[test]
fn a_user_with_one_id_alone_makes_machines_without_ssh_and_is_told_so() {
    if lacks(&[Need::Root]) || lacks(&TOOLS) {
        return;
    }
    let theirs = Theirs::new(User::Alone);
    theirs.orch("plan -M nested-test -H father").ends_with(0).says("one user alone and no SSH server");
    theirs.live();
    theirs.live_together();
    theirs.pull();
    theirs.come_back();
}

#[test]
fn work_on_a_machine_without_ssh_is_ended_when_nobody_waits_for_it_any_more() {
    if lacks(&[Need::Root]) || lacks(&TOOLS) {
        return;
    }
    let theirs = Theirs::new(User::Alone);
    let about = "-M single-node-push -H father";
    theirs.orch(&format!("create {about}")).ends_with(0);
    let spec = fs::read_to_string(theirs.lab.site.join("specs/base.yaml")).unwrap();
    let health = "  - command: [sleep, \"600\"]\n";
    theirs.lab.write("specs/base.yaml", &(spec + health));
    let words = format!("config {about} --json");
    let config = Running::start(&mut theirs.command(&words), &words);
    wait_until("it is being applied", || worker(&theirs.lab, "single-node-push-test-vm").is_some());
    config.signal(Signal::INT);
    wait_until("the interrupt was taken", || config.said().contains("nothing new is begun"));
    config.signal(Signal::INT);
    config.end().ends_with(1);
    wait_until("its work is ended", || worker(&theirs.lab, "single-node-push-test-vm").is_none());
    theirs.orch(&format!("destroy {about} --yes")).ends_with(0);
    assert_nothing_is_left(&theirs.lab);
}

//! What a test needs of this computer, and how it says that it is skipped where that is not there.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use super::ORCH;

/// Set where everything that the tests need was installed, so that a part that is missing is a failure.
const REQUIRE: &str = "ORCH_LAB_REQUIRE";

/// One thing that a test needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    /// Machines at all: root, or user namespaces.
    Machines,
    /// Nodes with an SSH server, and a client to speak to it.
    Ssh,
    /// To be root: for limits of disk and memory, and for looking into other processes.
    Root,
    /// A program.
    Program(&'static str),
}

/// Whether something is missing; then the test's name and the reason are said, and the test has to return.
#[track_caller]
pub(crate) fn lacks(needs: &[Need]) -> bool {
    let missing =
        std::iter::once(&Need::Machines).chain(needs).find_map(|need| Some((need, need.missing()?)));
    let Some((need, reason)) = missing else { return false };
    // Whether namespaces are allowed is not for whoever installs programs to say.
    if matches!(need, Need::Machines) {
        skip(&reason);
    } else {
        skip_unless_required(&reason);
    }
    true
}

/// Says that the test which calls this is skipped, and why; where everything that can be installed is said to be, that is
/// a failure.
#[track_caller]
pub(crate) fn skip_unless_required(reason: &str) {
    assert!(env::var_os(REQUIRE).is_none(), "nothing may be skipped here, and {reason}");
    skip(reason);
}

/// Says that the test which calls this is skipped, and why.
pub(crate) fn skip(reason: &str) {
    eprintln!("{}: skipped: {reason}", std::thread::current().name().unwrap_or("a test"));
}

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Self::Machines if is_allowed() => None,
            Self::Machines => Some("this computer allows no namespaces to this user".into()),
            Self::Root if is_root() => None,
            Self::Root => Some("this user is not root".into()),
            Self::Ssh => {
                let needed = ["sshd", "ssh", "ssh-keygen", "scp"].into_iter();
                needed.filter_map(|name| Self::Program(name).missing()).chain(no_ids()).next()
            }
            Self::Program(name) if is_there(name) => None,
            Self::Program(name) => Some(format!("there is no `{name}` here")),
        }
    }
}

/// Whether a program is where programs are.
pub(crate) fn is_there(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    env::split_paths(&path).chain(system).any(|folder| folder.join(name).is_file())
}

/// An SSH server needs more than one user id.
fn no_ids() -> Option<String> {
    let granted = is_root() || (is_there("newuidmap") && Path::new("/etc/subuid").exists());
    (!granted).then(|| "this user has one id alone, and sshd needs more".into())
}

fn is_allowed() -> bool {
    let mut probe = Command::new(ORCH);
    probe.args(["__local", "probe", "-"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

#[test]
fn a_part_that_is_missing_is_skipped_or_a_failure_where_everything_was_installed() {
    const ITSELF: &str = "ORCH_LAB_NEEDS_MUCH";
    if env::var_os(ITSELF).is_some() {
        assert!(lacks(&[Need::Program("no-such-program")]));
        return;
    }
    if lacks(&[]) {
        return;
    }
    let name = "common::need::a_part_that_is_missing_is_skipped_or_a_failure_where_everything_was_installed";
    let run = |is_required: bool| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture"]).env(ITSELF, "1").env_remove(REQUIRE);
        if is_required {
            command.env(REQUIRE, "1");
        }
        super::Outcome::of(&mut command, name)
    };
    run(false).ends_with(0).says("skipped: there is no `no-such-program` here");
    run(true).ends_with(101).says("nothing may be skipped here");
}

//! The machine's first process: puts the root together, then becomes the machine's init.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use orch_node::init::OWN_STORE;
use orch_node::pull::{ENROLMENT, UNIT_NAME, unit};
use rustix::thread::CapabilitySet;

use super::super::child;
use super::super::image::INITS;
use super::super::machine::Standing;
use super::super::record::{Folder, Record};
use super::super::seed::shares_store;
use super::accounts::{self, Keys};
use super::identity;
use super::root::{Root, assemble};
use super::talk::{GO, HERE, READY, expect, say};
use super::{BootError, Doing, Need, OWN_MARK, PROGRAM, RUN};

/// Puts the machine together and runs it. Comes back only where the machine could not be put together, or has stopped.
pub(crate) fn init(folder: &Folder, uplink: &Path, standing: Standing) -> Result<ExitCode, BootError> {
    // The terminal that orch was called from is not this machine's.
    rustix::process::setsid().doing("leave the session that it was started from")?;
    say(io::stdout(), HERE)?;
    expect(io::stdin(), GO, Instant::now() + Duration::from_mins(1))?;
    let record = folder.record().doing("read what the machine is")?;
    // Only the first time: by the next one it may have put another in its place.
    let is_given = record.host_key.is_some() && !record.made;
    let host_key = is_given.then(|| fs::read(folder.host_key())).transpose();
    let host_key = host_key.doing("read its host key")?;
    let enrolment = folder.enrolment().exists().then(|| fs::read(folder.enrolment())).transpose();
    let enrolment = enrolment.doing("read what it fetches its configuration with")?;
    let program = program(&record)?;
    // Asked before this machine's own paths are out of sight.
    let has_own_store = record.shares_programs && !shares_store();
    let root = Root {
        path: folder.root(),
        disk: folder.disk().exists().then(|| folder.disk()),
        shares_programs: record.shares_programs,
        uplink: record.inside.is_none().then(|| uplink.to_owned()),
        program,
    };
    assemble(&root, standing)?;
    let own = if record.shares_programs { None } else { Some(own_init()?) };
    if let Some(enrolment) = &enrolment {
        enrol(enrolment, &record).doing("give it what it fetches its configuration with")?;
    }
    if has_own_store {
        fs::write(OWN_STORE, "").doing("say that its store is its own")?;
    }
    settle(&record, standing, host_key.as_deref())?;
    drop_powers()?;
    own.map_or_else(run_ours, |own| run_own(&own, &record))
}

/// The program that configures the machine, as this machine has it: `orch` itself where the machine shares this
/// machine's libraries; else one that needs none, which lies beside `orch` or where `ORCH_NODE` says.
fn program(record: &Record) -> Result<PathBuf, BootError> {
    // By its path: the link in `/proc` leads to a mount outside of this namespace, which cannot be shared.
    let own = env::current_exe().doing("find this program")?;
    if record.shares_programs {
        return Ok(own);
    }
    if let Some(named) = env::var_os("ORCH_NODE") {
        return Ok(named.into());
    }
    let beside = own.with_file_name("orch-node");
    Ok(if beside.exists() { beside } else { own })
}

/// What is inside of the machine and not of its image: who it is, and how orch comes in.
fn settle(record: &Record, standing: Standing, host_key: Option<&[u8]>) -> Result<(), BootError> {
    let run = Path::new("/").join(RUN);
    let mark = |name: &str| fs::write(run.join(name), "").doing(format!("write `{name}`"));
    mark("hosts-children")?;
    if standing == Standing::Alone {
        mark("one-id")?;
    }
    if record.shares_programs {
        mark("shares-programs")?;
        if record.has_ssh() {
            mark("sshd-wanted")?;
        }
    }
    identity::become_oneself(record).doing("write down who it is")?;
    if let Some(access) = &record.access {
        let keys = Keys { access, host: host_key.zip(record.host_key.as_ref()) };
        accounts::let_in(&record.user, &keys).doing("let orch in")?;
        if !record.shares_programs {
            accounts::open_server(&record.user).doing("let orch in")?;
        }
    }
    accounts::allow(&record.user, PROGRAM).doing("let orch become root")?;
    // Last: by it those outside know that the machine is in place.
    fs::write(OWN_MARK, record.marks.uuid.to_string()).doing("write its mark")
}

/// Gives a machine that is made what it fetches its configuration with. Our own init finds it; a systemd is told by a unit.
fn enrol(enrolment: &[u8], record: &Record) -> io::Result<()> {
    let path = Path::new(ENROLMENT);
    DirBuilder::new().recursive(true).mode(0o755).create("/var/lib")?;
    DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(path))?;
    accounts::replace(path, enrolment, 0o400)?;
    if record.shares_programs {
        return Ok(());
    }
    let units = Path::new("/etc/systemd/system");
    let wants = units.join("multi-user.target.wants");
    fs::create_dir_all(&wants)?;
    accounts::replace(&units.join(UNIT_NAME), unit(PROGRAM).as_bytes(), 0o644)?;
    match symlink(units.join(UNIT_NAME), wants.join(UNIT_NAME)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Gives up for good what would reach beyond the machine.
pub(crate) fn drop_powers() -> Result<(), BootError> {
    let given_up = [
        CapabilitySet::SYS_MODULE,
        CapabilitySet::SYS_RAWIO,
        CapabilitySet::SYS_TIME,
        CapabilitySet::SYSLOG,
        CapabilitySet::MAC_ADMIN,
        CapabilitySet::MAC_OVERRIDE,
        CapabilitySet::WAKE_ALARM,
        CapabilitySet::BLOCK_SUSPEND,
    ];
    for power in given_up {
        rustix::thread::remove_capability_from_bounding_set(power)
            .doing("give up powers over the machine outside")?;
    }
    Ok(())
}

/// Runs our own init.
fn run_ours() -> Result<ExitCode, BootError> {
    say(io::stdout(), READY)?;
    let_go()?;
    Ok(orch_node::init::run(&orch_node::init::Settings::default()))
}

/// The init that the image brings. With it come libraries of its own, and what configures the machine must run there.
fn own_init() -> Result<PathBuf, BootError> {
    let found = INITS.map(PathBuf::from).into_iter().find(|path| path.exists());
    let init = found.ok_or_else(|| BootError::NoInit(INITS.map(PathBuf::from).to_vec()))?;
    let tried = child::run(Command::new(PROGRAM).arg("--version"), &[0]);
    let doing = "run the program that configures it with the libraries of its image";
    tried.needing(Need::Libraries, doing).map(|()| init)
}

/// Runs the init that the image brings.
fn run_own(init: &Path, record: &Record) -> Result<ExitCode, BootError> {
    say(io::stdout(), READY)?;
    let_go()?;
    let variables: [(&str, OsString); 3] = [
        ("container", "orch".into()),
        ("container_uuid", record.marks.uuid.to_string().into()),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
    ];
    let failed = Command::new(init).env_clear().envs(variables).current_dir("/").exec();
    Err(failed).doing(format!("run `{}`", init.display()))
}

/// Lets go of what was inherited: whoever reads the other end must see that nothing more comes.
fn let_go() -> Result<(), BootError> {
    let null = File::open("/dev/null").doing("open `/dev/null`")?;
    let log =
        OpenOptions::new().append(true).create(true).open("/var/log/orch-init.log").doing("open its log")?;
    rustix::stdio::dup2_stdin(&null).doing("let go of its input")?;
    rustix::stdio::dup2_stdout(&log).doing("let go of its output")?;
    rustix::stdio::dup2_stderr(&log).doing("let go of its console")
}

//! The process that stays outside while a machine starts.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space, move_into_thread_name_spaces,
};

use super::super::inside::Outside;
use super::super::limits::{self, Hierarchies};
use super::super::machine::{Ids, Means, Standing};
use super::super::process::Process;
use super::super::record::{Boot, Folder, Record};
use super::super::store::{Found, Store};
use super::talk::{GO, HERE, READY, UNSHARED, expect, say};
use super::unshared::own_pid;
use super::{BootError, Doing, Need, UNSHARE, UPLINK};

/// How long a machine may take until its init has it. Longer than it ever takes; the driver has a limit of its own.
const LIMIT: Duration = Duration::from_mins(2);
/// How long what was begun and has lost us may take to end, and the kernel to end what is killed.
const END: Duration = Duration::from_secs(10);

/// Starts a machine that is off. One that runs is left alone.
pub(crate) fn boot(folder: &Folder) -> Result<(), BootError> {
    let _lock = folder.lock().doing("lock the machine")?;
    if runs_on(folder)? {
        return Ok(());
    }
    let record = folder.record().doing("read what the machine is")?;
    let hierarchies = Hierarchies::look();
    clear(folder, hierarchies.groups(record.marks.uuid)).doing("end what is left of its last start")?;
    let parent = parent(folder, &record)?;
    let home = Home::of(folder, parent.as_ref())?;
    let means = Means::look();
    let groups = hierarchies.make(record.marks.uuid, record.size).doing("make its control groups")?;
    let mut init = None;
    let started = start(folder, &home, parent.as_ref(), &means, &groups, &mut init);
    if started.is_err() {
        undo(folder, init.as_ref(), &groups);
    }
    started
}

/// Whether a machine runs and is in place. Where whoever started it last was killed before that was written down, it is
/// now. Where it was killed before that was so, what is there ends as soon as it speaks to nobody, and is waited for: to
/// end it here would be to end a machine for want of a file that is the machine's own to remove.
fn runs_on(folder: &Folder) -> Result<bool, BootError> {
    let Some(last) = folder.boot().filter(|boot| boot.init.is_alive()) else { return Ok(false) };
    if folder.in_place().is_some() {
        if !last.ready {
            folder.write_boot(&Boot { ready: true, ..last }).doing("write down that it is in place")?;
        }
        return Ok(true);
    }
    let ended = last.init.ends(END).doing("wait for the end of its last start")?;
    if ended { Ok(false) } else { Err(BootError::Late("the end of its last start")) }
}

/// Ends and forgets what is left of a machine's last start. Nothing of it may run that is not known: two would write to one
/// disk. Nor are its control groups used again: its init may have divided them, and they would take nobody in.
fn clear(folder: &Folder, mut groups: Vec<PathBuf>) -> io::Result<()> {
    groups.extend(folder.boot().into_iter().flat_map(|boot| boot.cgroups));
    limits::end(&groups)?;
    limits::remove(&groups)?;
    folder.forget_boot()
}

/// The first process of the machine that this one lives inside of, which must run.
fn parent(folder: &Folder, record: &Record) -> Result<Option<Process>, BootError> {
    let Some(name) = &record.inside else { return Ok(None) };
    let running = folder.sibling(name).running();
    running.map(Some).ok_or_else(|| BootError::ParentOff(name.clone()))
}

/// Where a machine is put: the network that it is attached to, and for those who are not root the user namespace that the
/// machines of a host share. They are held open: whoever they were found with may end at any moment.
struct Home {
    around: Option<Around>,
    /// Held while this is the first machine, so that a host never has two networks.
    _first: Option<File>,
}

struct Around {
    network: File,
    users: File,
}

impl Home {
    /// Finds the home of a machine, inside of its parent or on the host.
    fn of(folder: &Folder, parent: Option<&Process>) -> Result<Self, BootError> {
        if let Some(parent) = parent {
            let network = Outside::look().and_then(|outside| outside.network_of(parent));
            let around = network.and_then(|network| Around::of(network, parent));
            let around = around.doing("open the network of its parent")?;
            return Ok(Self { around: Some(around), _first: None });
        }
        let root = folder.path().parent().unwrap_or(folder.path());
        let store = Store::at(root.to_owned());
        let lock = store.lock(".network").doing("lock the host's network")?;
        let around = Around::on_host(&store).doing("look at the host's machines")?;
        let first = around.is_none().then_some(lock);
        Ok(Self { around, _first: first })
    }
}

impl Around {
    fn of(network: File, init: &Process) -> io::Result<Self> {
        Ok(Self { network, users: init.open("ns/user", OFlags::RDONLY)? })
    }

    /// What a machine holds that runs on the host and is in place. One that is on its way out holds nothing any more.
    fn on_host(store: &Store) -> io::Result<Option<Self>> {
        let outside = Outside::look()?;
        let held = |found: Found| {
            let init = found
                .record
                .filter(|record| record.inside.is_none())
                .and_then(|_| found.folder.in_place())?;
            outside.network_at(&init, UPLINK).and_then(|network| Self::of(network, &init)).ok()
        };
        Ok(store.list()?.into_iter().find_map(held))
    }
}

fn start(
    folder: &Folder,
    home: &Home,
    parent: Option<&Process>,
    means: &Means,
    groups: &[PathBuf],
    init: &mut Option<Process>,
) -> Result<(), BootError> {
    let deadline = Instant::now() + LIMIT;
    let is_first = home.around.is_none();
    if let Some(around) = home.around.as_ref().filter(|_| !means.is_root()) {
        let users = move_into_link_name_space(around.users.as_fd(), Some(LinkNameSpaceType::User));
        users.doing("enter the user namespace of the host's machines")?;
    }
    if let Some(parent) = parent {
        join(parent, ThreadNameSpaceType::PROCESS_ID)?;
    }
    let mut child = spawn(folder, home.around.as_ref(), means.ids.standing())?;
    let result = bring_up(folder, &mut child, is_first, means, groups, init, deadline);
    // It has nothing left to do: the machine holds what it made.
    let _ = child.kill();
    let _ = child.wait();
    result
}

fn bring_up(
    folder: &Folder,
    child: &mut Child,
    is_first: bool,
    means: &Means,
    groups: &[PathBuf],
    first: &mut Option<Process>,
    deadline: Instant,
) -> Result<(), BootError> {
    let pid = child.id();
    limits::enter(groups, pid).doing("limit what it uses")?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(BootError::Lost);
    };
    say(&mut to, GO)?;
    if is_first && !means.is_root() {
        expect(&from, UNSHARED, deadline)?;
        give_ids(&means.ids, pid)?;
        say(&mut to, GO)?;
    }
    expect(&from, HERE, deadline)?;
    let init = first_process(pid).ok_or(BootError::Lost)?;
    *first = Some(init.clone());
    let boot = Boot { init, ready: false, cgroups: groups.to_vec() };
    folder.write_boot(&boot).doing("write down who its first process is")?;
    say(&mut to, GO)?;
    expect(&from, READY, deadline)?;
    folder.write_boot(&Boot { ready: true, ..boot }).doing("write down that it is in place")
}

fn spawn(folder: &Folder, around: Option<&Around>, standing: Standing) -> Result<Child, BootError> {
    let console =
        OpenOptions::new().append(true).create(true).open(folder.console()).doing("open its console")?;
    let mut command = Command::new("/proc/self/exe");
    command.args([super::super::HELPER, UNSHARE]).arg(folder.path());
    command.arg(format!("--standing={}", standing.word()));
    if let Some(around) = around {
        // By our own open file: it stays what it is for as long as we wait.
        command.arg(format!("--uplink=/proc/{}/fd/{}", own_pid()?, around.network.as_raw_fd()));
    }
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some(program) = std::env::var_os("ORCH_NODE") {
        command.env("ORCH_NODE", program);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(console).current_dir("/");
    command.spawn().doing("start the process that makes its namespaces")
}

/// Enters namespaces of a process, which is that very process and no other that was given its pid.
pub(crate) fn join(process: &Process, which: ThreadNameSpaceType) -> Result<(), BootError> {
    let doing = || format!("enter the namespaces of process {}", process.pid);
    let gone = || io::Error::other("it has ended");
    let handle = process.handle().and_then(|handle| handle.ok_or_else(gone)).doing(doing())?;
    move_into_thread_name_spaces(handle.as_fd(), which).doing(doing())
}

/// Gives the user namespace of a process its ids.
pub(crate) fn give_ids(ids: &Ids, pid: u32) -> Result<(), BootError> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    match ids {
        Ids::All => Ok(()),
        Ids::Range { users, groups, tools } => {
            let run = |tool: &Path, own: u32, range: &super::super::machine::Range| {
                let words = [pid, 0, own, 1, 1, range.first, range.count].map(|number| number.to_string());
                super::super::child::run(Command::new(tool).args(words), &[0])
            };
            run(&tools.users, user, users).needing(Need::Ids, "give it its user ids")?;
            run(&tools.groups, group, groups).needing(Need::Ids, "give it its group ids")
        }
        Ids::One => give_one_id(&pid.to_string(), user, group),
    }
}

/// Gives the user namespace of a process one user and one group, which takes no leave of anybody.
pub(super) fn give_one_id(process: &str, user: u32, group: u32) -> Result<(), BootError> {
    let write = |file: &str, text: String| fs::write(format!("/proc/{process}/{file}"), text);
    write("setgroups", "deny".into()).needing(Need::Ids, "give it its group id")?;
    write("uid_map", format!("0 {user} 1")).needing(Need::Ids, "give it its user id")?;
    write("gid_map", format!("0 {group} 1")).needing(Need::Ids, "give it its group id")
}

/// The one child of a process, by its pid as this process sees it.
fn first_process(of: u32) -> Option<Process> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok();
    let pid =
        children.and_then(|children| children.split_whitespace().next()?.parse().ok()).or_else(|| search(of));
    Process::of(pid?)
}

/// The same where the kernel does not list children.
fn search(parent: u32) -> Option<i32> {
    let line = format!("PPid:\t{parent}");
    fs::read_dir("/proc").ok()?.find_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        status.lines().any(|found| found == line).then_some(pid)
    })
}

/// Ends what was begun, also what could not be written down. What cannot be ended now is found again by the next start.
fn undo(folder: &Folder, init: Option<&Process>, groups: &[PathBuf]) {
    if let Some(init) = init {
        let _ = init.end(Signal::KILL, END);
    }
    let _ = limits::end(groups);
    let _ = folder.forget_boot();
    let _ = limits::remove(groups);
}

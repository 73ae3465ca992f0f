//! The process that makes a machine's namespaces and its network, and holds them until the machine does.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::super::inside::Outside;
use super::super::machine::Standing;
use super::super::net::{Bridge, Netlink, PREFIX};
use super::super::process::Process;
use super::super::record::{Folder, Record};
use super::outside::give_one_id;
use super::root::try_views;
use super::talk::{GO, UNSHARED, expect, say};
use super::{BRIDGE, BootError, Doing, INIT, Need, PROBE_INSIDE, Trouble, UPLINK};
use crate::finish::finish;

/// How long the kernel may take to show what it shows.
const PROBING: Duration = Duration::from_secs(20);

/// What the process is told.
pub(crate) struct Order {
    pub(crate) folder: Folder,
    /// The network that the machine is attached to; the first machine of a host makes it.
    pub(crate) uplink: Option<PathBuf>,
    /// What the machine's root is.
    pub(crate) standing: Standing,
}

/// Makes the namespaces, starts the machine's first process in them and waits to be ended.
pub(crate) fn unshare(order: &Order) -> Result<(), BootError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .doing("be ended with the one outside")?;
    let record = order.folder.record().doing("read what the machine is")?;
    let outside = Outside::look().doing("look at this computer's network")?;
    wait_for_go()?;
    // The first machine makes the user namespace that all of the host's share.
    if order.uplink.is_none() && order.standing != Standing::Root {
        split(UnshareFlags::NEWUSER).needing(Need::UserNamespace, "make a user namespace")?;
        say(io::stdout(), UNSHARED)?;
        wait_for_go()?;
    }
    let uplink = uplink(order, &record)?;
    connect(&order.folder, &record, &uplink, &outside)?;
    let uplink = format!("/proc/{}/fd/{}", own_pid()?, uplink.as_raw_fd());
    let mut init = Command::new("/proc/self/exe");
    init.args([super::super::HELPER, INIT]).arg(order.folder.path()).arg(format!("--uplink={uplink}"));
    init.arg(format!("--standing={}", order.standing.word()));
    // What the machine's first process needs of us it has; it ends by itself when the one outside is gone.
    init.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut init = init.spawn().doing("start its first process")?;
    // Whoever is outside ends us as soon as the machine is in place. Until then, its end is the end of it all.
    let ended = init.wait().doing("wait for its first process")?;
    Err(BootError::Said(format!("its first process ended with {ended}")))
}

/// Tries what a machine needs of the kernel, and says what it does not allow.
pub(crate) fn probe(is_root: bool) -> Result<(), BootError> {
    if !is_root {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        split(UnshareFlags::NEWUSER).needing(Need::UserNamespace, "make a user namespace")?;
        give_one_id("self", user, group)?;
    }
    split_all()?;
    let network = Netlink::open().doing("speak to the kernel about networks")?;
    network.add_bridge(BRIDGE, Bridge::HOST.gateway()).needing(Need::Bridge, "make a bridge")?;
    let own = own_network()?;
    network
        .add_pair("probe0", "probe1", Bridge::HOST.gateway(), own.as_fd())
        .needing(Need::Pair, "make a pair of interfaces")?;
    // What is seen of a pid namespace is seen by those in it: whoever made it is not.
    let mut inside = Command::new("/proc/self/exe");
    inside.args([super::super::HELPER, PROBE_INSIDE, "-"]);
    let ended = finish(&mut inside, PROBING).doing("start its first process")?;
    if ended.status.success() {
        return Ok(());
    }
    Err(BootError::Told(Trouble::of_helper(&ended)))
}

/// The rest of it, by the first process of new namespaces.
pub(crate) fn probe_inside() -> Result<(), BootError> {
    try_views()
}

/// Leaves every namespace but the one of users for a new one. One after the other, so that it is known which one is not to be
/// had.
fn split_all() -> Result<(), BootError> {
    for (flag, need, name) in [
        (UnshareFlags::NEWNS, Need::MountNamespace, "mount"),
        (UnshareFlags::NEWPID, Need::PidNamespace, "pid"),
        (UnshareFlags::NEWNET, Need::NetworkNamespace, "network"),
        (UnshareFlags::NEWUTS, Need::UtsNamespace, "uts"),
        (UnshareFlags::NEWIPC, Need::IpcNamespace, "ipc"),
        (UnshareFlags::NEWCGROUP, Need::CgroupNamespace, "cgroup"),
    ] {
        split(flag).needing(need, format!("make a {name} namespace"))?;
    }
    Ok(())
}

fn wait_for_go() -> Result<(), BootError> {
    expect(io::stdin(), GO, Instant::now() + Duration::from_mins(1))
}

/// Becomes the root of a user namespace of its own.
pub(super) fn split_users() -> io::Result<()> {
    split(UnshareFlags::NEWUSER)
}

/// Leaves namespaces for new ones.
fn split(flags: UnshareFlags) -> io::Result<()> {
    // The call is unsound for `CLONE_FILES` alone, which takes open files away from other threads.
    #[allow(deprecated, reason = "none of our flags is CLONE_FILES")]
    Ok(rustix::thread::unshare(flags)?)
}

/// The network that the machine is attached to, ready for it.
fn uplink(order: &Order, record: &Record) -> Result<File, BootError> {
    let Some(uplink) = &order.uplink else {
        split(UnshareFlags::NEWNET).needing(Need::NetworkNamespace, "make the host's network")?;
        make_bridge(record.place.bridge)?;
        return own_network();
    };
    let network = File::open(uplink).doing("open the network that it is attached to")?;
    if record.inside.is_some() {
        enter(&network)?;
        make_bridge(record.place.bridge)?;
    }
    Ok(network)
}

/// Makes the bridge of the network that this process is in, for machines to be attached to.
fn make_bridge(bridge: Bridge) -> Result<(), BootError> {
    let network = Netlink::open().doing("speak to the kernel about networks")?;
    network.add_bridge(BRIDGE, bridge.gateway()).needing(Need::Bridge, "make a bridge")?;
    network.add_address(BRIDGE, bridge.gateway(), PREFIX).doing("give the bridge its address")?;
    network.switch_on(BRIDGE).doing("switch the bridge on")?;
    network.switch_on("lo").doing("switch the loopback on")?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").doing("let packets through")
}

/// Makes the machine's own namespaces and attaches it to its network.
fn connect(folder: &Folder, record: &Record, uplink: &File, outside: &Outside) -> Result<(), BootError> {
    enter(uplink)?;
    let outer = Netlink::open().doing("speak to the kernel about networks")?;
    split_all()?;
    let own = own_network()?;
    let (place, link) = (record.place, record.place.link());
    // The kernel takes a dead machine's network down in its own time. The name is this machine's alone, so what bears it
    // is left from its last start.
    outer.delete(&link).doing("take away what is left of its last start")?;
    outer.add_pair(&link, "eth0", place.address(), own.as_fd()).needing(Need::Pair, "make its interface")?;
    outer.attach(&link, BRIDGE).doing("attach it to the bridge")?;
    outer.switch_on(&link).doing("switch its interface on")?;
    let inner = Netlink::open().doing("speak to the kernel about networks")?;
    inner.switch_on("lo").doing("switch its loopback on")?;
    inner.add_address("eth0", place.address(), PREFIX).doing("give it its address")?;
    inner.switch_on("eth0").doing("switch its interface on")?;
    inner.add_route(place.bridge.network(), 0, place.bridge.gateway()).doing("give it its way out")?;
    announce(folder, record, outside)?;
    enter(&own)
}

/// Tells every network above the parent's the way to the one that this machine is in.
fn announce(folder: &Folder, record: &Record, outside: &Outside) -> Result<(), BootError> {
    let mut below = record.inside.clone();
    while let Some(name) = below {
        let folder = folder.sibling(&name);
        let ancestor = folder.record().doing("read what its parents are")?;
        let process = folder.running().ok_or_else(|| BootError::ParentOff(name.clone()))?;
        let above = match &ancestor.inside {
            Some(above) => network_of(&folder.sibling(above), above, outside)?,
            None => outside.network_at(&process, UPLINK).doing("open the host's network")?,
        };
        enter(&above)?;
        let network = Netlink::open().doing("speak to the kernel about networks")?;
        let to = record.place.bridge.network();
        network.add_route(to, PREFIX, ancestor.place.address()).doing("tell the way to it")?;
        below = ancestor.inside;
    }
    Ok(())
}

fn network_of(folder: &Folder, name: &str, outside: &Outside) -> Result<File, BootError> {
    let process: Process = folder.running().ok_or_else(|| BootError::ParentOff(name.to_owned()))?;
    outside.network_of(&process).doing("open the network of its parent")
}

fn own_network() -> Result<File, BootError> {
    File::open("/proc/thread-self/ns/net").doing("open its network")
}

fn enter(network: &File) -> Result<(), BootError> {
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).doing("enter a network")
}

/// The pid of this process as the mounted `/proc` has it, which may be that of an outer pid namespace.
pub(super) fn own_pid() -> Result<String, BootError> {
    Ok(fs::read_link("/proc/self").doing("find its own pid")?.to_string_lossy().into_owned())
}

//! The first process of a local node: starts what the node must run, reaps, and stops cleanly.
//!
//! It sleeps until a signal comes, and opens nothing but its log. Mounts, the host name and the network are in place when
//! it is called.

mod anew;
mod log;
mod secrets;
mod service;
mod system;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait};

use signal_hook::consts::SIGINT;

use log::Log;
use service::Service;

use crate::signals::Signals;

/// Says that a node has a store of its own, where it exists.
pub const OWN_STORE: &str = "/run/orch/own-store";

/// How it behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it writes what it does.
    pub log: PathBuf,
    /// Where the SSH server writes what it does.
    pub sshd_log: PathBuf,
    /// The SSH server is run where this exists.
    pub sshd_wanted: PathBuf,
    /// Where the SSH server may be; the first that is there is run.
    pub sshd: Vec<PathBuf>,
    /// What the SSH server is run with.
    pub sshd_args: Vec<String>,
    /// The node fetches its configuration by itself where this exists, or comes to be there and init is told to look again
    /// by `SIGHUP`.
    pub node_wanted: PathBuf,
    /// Where what fetches may be; the first that is there is run.
    pub node: Vec<PathBuf>,
    /// What it is run with.
    pub node_args: Vec<String>,
    /// Where it writes what it does.
    pub node_log: PathBuf,
    /// The node has a store of its own where this exists, and the system that its profile leads to is started. The store of
    /// the computer that a node is on has profiles too, which are not the node's.
    pub store_owned: PathBuf,
    /// Where that profile is.
    pub profile: PathBuf,
    /// Secrets are put in place before anything is started where this exists.
    pub secrets_held: PathBuf,
    /// How long processes may take to end by themselves when the node is stopped.
    pub grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let folders = crate::tool::FOLDERS.iter().map(|folder| PathBuf::from(folder).join("sshd"));
        Self {
            log: "/var/log/orch-init.log".into(),
            sshd_log: "/var/log/sshd.log".into(),
            sshd_wanted: crate::ssh_server::WANTED.into(),
            sshd: std::iter::once("/usr/sbin/sshd".into()).chain(folders).collect(),
            sshd_args: ["-D", "-e", "-f", "/etc/ssh/sshd_config"].map(String::from).into(),
            node_wanted: crate::pull::ENROLMENT.into(),
            // A node may have been given a newer program than the one that is its init.
            node: vec!["/run/orch/orch-node".into(), crate::push::SELF.into()],
            node_args: vec!["run".into()],
            node_log: "/var/log/orch-node.log".into(),
            store_owned: OWN_STORE.into(),
            profile: "/nix/var/nix/profiles/system".into(),
            secrets_held: crate::vault::PATH.into(),
            grace: Duration::from_secs(3),
        }
    }
}

/// Runs until the node is told to stop by `SIGTERM`, or to start anew by `SIGINT`. Called once the root file system is in place, by the process that is
/// the first of its pid namespace; any other is refused, because stopping ends every process that can be seen.
pub fn run(settings: &Settings) -> ExitCode {
    if getpid() != Pid::INIT {
        crate::worker::say("only the first process of a node can be its init");
        return ExitCode::from(3);
    }
    let mut log = Log::open(&settings.log);
    log.take_standard_streams();
    let anew = Arc::new(AtomicBool::new(false));
    // The flag first: whoever is woken finds it set.
    let listening = signal_hook::flag::register(SIGINT, Arc::clone(&anew)).and_then(|_| Signals::listen());
    let signals = match listening {
        Ok(signals) => signals,
        Err(error) => {
            log.say(&format!("signals cannot be listened for: {error}"));
            return ExitCode::FAILURE;
        }
    };
    secrets::put_in_place(settings, &mut log);
    system::start(settings, &mut log);
    live(settings, &signals, &mut log);
    stop(settings.grace, &signals, &mut log);
    if anew.load(Ordering::SeqCst) {
        anew::begin(settings, &mut log);
    }
    ExitCode::SUCCESS
}

/// Keeps what the node must run running and reaps, until it is told to stop.
fn live(settings: &Settings, signals: &Signals, log: &mut Log) {
    let mut services = [service::ssh_server(settings), service::node(settings)];
    log.say("the node is up");
    while !signals.is_stop_asked() {
        while let Some((pid, how)) = reap() {
            for service in &mut services {
                service.notice_end(pid, &how, log);
            }
        }
        let looks_again = signals.take_look_again();
        for service in &mut services {
            if looks_again {
                service.look_again();
            }
            service.start_if_due(log);
        }
        signals.wait(services.iter().filter_map(Service::next_start).min());
    }
}

/// Takes note of a process that ended; nothing where none is left to be noted. Also where there is no child at all.
fn reap() -> Option<(Pid, String)> {
    let (pid, status) = wait(WaitOptions::NOHANG).ok()??;
    let how = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("with exit status {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "in an unknown way".into(),
    };
    Some((pid, how))
}

/// Ends every process of the node: by word, and after a while by force.
fn stop(grace: Duration, signals: &Signals, log: &mut Log) {
    log.say("the node is stopped");
    signal_everybody(Signal::TERM);
    if !everybody_ends_within(grace, signals) {
        log.say("some processes had to be ended");
        signal_everybody(Signal::KILL);
        everybody_ends_within(grace, signals);
    }
    rustix::fs::sync();
    log.say("the node is down");
}

/// For the kernel the group 1 means everybody, but for the caller: the group of the first process cannot be named.
fn signal_everybody(signal: Signal) {
    // Where nobody is left, that is what was wanted.
    let _ = kill_process_group(Pid::INIT, signal);
}

/// Reaps until no process is left or the time is over: all are children, because orphans are given to the first process.
fn everybody_ends_within(time: Duration, signals: &Signals) -> bool {
    let deadline = Instant::now() + time;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Err(_) => return true,
            Ok(None) if Instant::now() >= deadline => return false,
            Ok(None) => signals.wait(Some(deadline)),
        }
    }
}

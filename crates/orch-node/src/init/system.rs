//! The NixOS system of a local node, where it has one: what a boot does with it. Others do the work, whose memory is gone
//! with them.

use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use super::Settings;
use super::log::Log;
use super::secrets::ends_within;
use crate::system::note_start;
use crate::tool::FOLDERS;

/// A node whose system does not start in time is better than one that does not start.
const LIMIT: Duration = Duration::from_mins(2);
/// Where a system has what is run at boot.
const ACTIVATIONS: [&str; 2] = ["activate", "bin/activate"];
/// What runs, and what was booted.
const LINKS: [&str; 2] = ["/run/booted-system", "/run/current-system"];

/// Starts the system that the profile leads to, and has a rollout looked after that was not finished.
pub(super) fn start(settings: &Settings, log: &mut Log) {
    if let Err(error) = note_start() {
        log.say(&format!("the start cannot be noted: {error}"));
    }
    let system = settings.profile.canonicalize();
    let Some(system) = system.ok().filter(|_| settings.store_owned.exists()) else { return };
    for link in LINKS {
        let _ = fs::remove_file(link);
        if let Err(error) = symlink(&system, link) {
            log.say(&format!("`{link}` cannot be made: {error}"));
        }
    }
    log.say(&format!("the system is {}", system.display()));
    let activation = ACTIVATIONS.iter().map(|name| system.join(name)).find(|path| path.is_file());
    if let Some(program) = activation {
        told(&program, run(&program, &[], settings), log);
    }
    if let Some(program) = settings.node.iter().find(|path| path.is_file()) {
        told(program, run(program, &["system", "boot"], settings), log);
    }
}

fn told(program: &Path, ended: io::Result<bool>, log: &mut Log) {
    match ended {
        Ok(true) => {}
        Ok(false) => log.say(&format!("`{}` did not end well", program.display())),
        Err(error) => log.say(&format!("`{}` cannot be run: {error}", program.display())),
    }
}

/// Whether it ended well, and in time.
fn run(program: &Path, args: &[&str], settings: &Settings) -> io::Result<bool> {
    let log = super::service::open_log(&settings.node_log)?;
    let mut command = Command::new(program);
    if !args.is_empty() {
        command.arg0("orch-node");
    }
    let mut child = command
        .args(args)
        .env_clear()
        .env("PATH", FOLDERS.join(":"))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    if !ends_within(&child, LIMIT)? {
        child.kill()?;
    }
    Ok(child.wait()?.success())
}

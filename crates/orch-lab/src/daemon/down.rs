//! Taking a lab down: its process is ended, its machines are removed, and its files go last. Whatever was cut off on the way
//! can be done again.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use orch_run::start_of;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value as Json;

use super::ask::{Request, ask};
use super::process::take_office;
use crate::clearing::{clear, hosts_below};
use crate::lab_error::LabError;
use crate::lab_file::{LabFolder, Server};
use crate::state;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How long the process may take to end by itself, and how long after it was killed.
const GRACE: Duration = Duration::from_secs(10);

/// Takes down the lab of a folder with everything that belongs to it, whether or not its process still runs, and whichever
/// version it is of: what lies in the folder says what there is. Where there is none, that is what was wanted.
pub async fn down(folder: &Path) -> Result<(), LabError> {
    let folder = LabFolder::at(folder);
    // A folder that is not a lab's is left alone, whatever is in it.
    let signs = [folder.settings(), folder.file(), folder.identity(), folder.driver()];
    if !signs.iter().any(|path| path.exists()) {
        return Ok(());
    }
    nobody_drives(&folder)?;
    if let Some(server) = Server::of(&folder) {
        end(&folder, server).await?;
    }
    let office = take_office(&folder)?;
    remove_machines(&folder).await?;
    remove_files(&folder)?;
    drop(office);
    Ok(())
}

/// Whoever is in the middle of a run in the lab is not to have the lab taken away.
fn nobody_drives(folder: &LabFolder) -> Result<(), LabError> {
    let locks = folder.driver().join("locks");
    let entries = match fs::read_dir(&locks) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(LabError::file(&locks))?,
    };
    for entry in entries {
        let path = entry.map_err(LabError::file(&locks))?.path();
        let lock = File::open(&path).map_err(LabError::file(&path))?;
        if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(LabError::InUse(folder.path().to_owned()));
        }
        // By word, as a process that is being started has a copy of what is open.
        lock.unlock().map_err(LabError::file(&path))?;
    }
    Ok(())
}

/// Ends the process of a lab: by word, by signal, and by force.
async fn end(folder: &LabFolder, server: Server) -> Result<(), LabError> {
    if !server.lives() {
        return Ok(());
    }
    // One that does not listen is told in another way.
    let asked = ask(folder.path(), &Request::Shutdown).await;
    for signal in [asked.is_err().then_some(Signal::TERM), Some(Signal::KILL)] {
        if ends(server).await {
            return Ok(());
        }
        if let Some(signal) = signal {
            tell(server, signal).map_err(LabError::file(folder.path()))?;
        }
    }
    if ends(server).await { Ok(()) } else { Err(LabError::Lives(server.pid)) }
}

async fn ends(server: Server) -> bool {
    let deadline = Instant::now() + GRACE;
    while server.lives() && Instant::now() < deadline {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    !server.lives()
}

/// Sends a signal to the very process that served the lab.
fn tell(server: Server, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(server.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    // The handle is for whoever has the pid now; only if that is still ours is it ours for good.
    if start_of(server.pid) == Some(server.started) {
        Ok(pidfd_send_signal(&handle, signal)?)
    } else {
        Ok(())
    }
}

/// Removes the machines behind every API that there ever was, and those that a driver made on this computer itself.
async fn remove_machines(folder: &LabFolder) -> Result<(), LabError> {
    let program = program(folder).map_err(LabError::file(folder.path()))?;
    let behind = hosts_below(&folder.hosts()).map_err(LabError::file(folder.hosts()))?;
    for host in behind {
        let failed = |source| LabError::Machines { host: host.clone(), source };
        clear(&folder.host(&host), &host, program.clone()).await.map_err(failed)?;
    }
    let beside = folder.driver().join("local");
    for host in hosts_below(&beside).map_err(LabError::file(&beside))? {
        let failed = |source| LabError::Machines { host: host.clone(), source };
        clear(&folder.driver(), &host, program.clone()).await.map_err(failed)?;
    }
    Ok(())
}

/// What made the machines, or else this program.
fn program(folder: &LabFolder) -> io::Result<PathBuf> {
    let settings: Option<Json> = state::read(&folder.settings()).unwrap_or_default();
    let known = settings.and_then(|settings| settings["program"].as_str().map(PathBuf::from));
    known.filter(|program| program.exists()).map_or_else(std::env::current_exe, Ok)
}

/// What says that there is a lab goes last.
fn remove_files(folder: &LabFolder) -> Result<(), LabError> {
    for below in [folder.hosts(), folder.driver()] {
        match fs::remove_dir_all(&below) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(LabError::file(&below)(error));
            }
            _ => {}
        }
    }
    let files = [
        folder.control(),
        folder.log(),
        folder.addresses(),
        folder.file(),
        folder.identity(),
        folder.lock(),
        folder.settings(),
    ];
    for path in files {
        state::remove(&path).map_err(LabError::file(&path))?;
    }
    // What is not the lab's stays, and the folder with it.
    let _ = fs::remove_dir(folder.path());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clearing::tests::{host, leave_machines};

    /// What a lab of some other version left that was killed: a host that no settings name, and a driver's own machines.
    fn left() -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a folder can be made");
        let folder = LabFolder::at(&place.path().join("lab"));
        fs::create_dir_all(folder.host(&host())).expect("it can be made");
        leave_machines(&folder.host(&host()));
        leave_machines(&folder.driver());
        for path in [folder.settings(), folder.identity(), folder.addresses(), folder.file()] {
            fs::write(path, r#"{"version": 99, "paper": true}"#).expect("it can be written");
        }
        place
    }

    #[tokio::test]
    async fn all_that_lies_in_the_folder_goes_whatever_its_files_say() {
        let place = left();
        for _ in 0..2 {
            down(&place.path().join("lab")).await.expect("nobody is in the way");
            assert!(!place.path().join("lab").exists());
        }
    }

    #[tokio::test]
    async fn a_folder_that_is_no_labs_is_left_alone() {
        let place = tempfile::tempdir().expect("a folder can be made");
        fs::create_dir(place.path().join("hosts")).expect("it can be made");
        down(place.path()).await.expect("there is nothing to do");
        assert!(place.path().join("hosts").exists() && !place.path().join("daemon.lock").exists());
    }

    #[tokio::test]
    async fn nothing_goes_while_a_run_is_under_way_in_the_lab() {
        let place = left();
        let folder = LabFolder::at(&place.path().join("lab"));
        fs::create_dir_all(folder.driver().join("locks")).expect("it can be made");
        let run = File::create(folder.driver().join("locks/home.mother.lock")).expect("it can be made");
        run.lock().expect("it is ours");
        assert!(matches!(down(folder.path()).await, Err(LabError::InUse(_))));
        assert!(folder.host(&host()).join("local/father/inside").exists());
        run.unlock().expect("it is ours");
        down(folder.path()).await.expect("nobody is in the way");
    }
}

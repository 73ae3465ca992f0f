//! Taking a lab down: its process is ended, its machines are removed, and its files go last. Whatever was cut off on the way
//! can be done again.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use orch_run::start_of;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::ask::{Request, ask};
use super::process::take_office;
use super::read;
use crate::addresses::Addresses;
use crate::lab::{LabError, machine_settings, read_identity};
use crate::lab_file::{LabFile, LabFolder};
use crate::local_machines::LocalMachines;
use crate::settings::LabSettings;
use crate::state;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How long the process may take to end by itself, and how long after it was killed.
const GRACE: Duration = Duration::from_secs(10);

/// Takes down the lab of a folder with everything that belongs to it, whether or not its process still runs. Where there is
/// none, that is what was wanted.
pub async fn down(folder: &Path) -> Result<(), LabError> {
    let folder = LabFolder::at(folder);
    let settings: Option<LabSettings> =
        state::read(&folder.settings()).map_err(LabError::file(folder.settings()))?;
    let Some(settings) = settings else { return Ok(()) };
    match read(folder.path()) {
        Ok(file) => end(&folder, &file).await?,
        Err(LabError::None(_)) => {}
        Err(error) => return Err(error),
    }
    let office = take_office(&folder)?;
    if !settings.paper {
        remove_machines(&folder, &settings).await?;
    }
    remove_files(&folder)?;
    drop(office);
    Ok(())
}

/// Ends the process of a lab: by word, by signal, and by force.
async fn end(folder: &LabFolder, file: &LabFile) -> Result<(), LabError> {
    if !file.is_served() {
        return Ok(());
    }
    // One that does not listen is told in another way.
    let asked = ask(folder.path(), &Request::Shutdown).await;
    for signal in [asked.is_err().then_some(Signal::TERM), Some(Signal::KILL)] {
        if ends(file).await {
            return Ok(());
        }
        if let Some(signal) = signal {
            tell(file, signal).map_err(LabError::file(folder.path()))?;
        }
    }
    if ends(file).await { Ok(()) } else { Err(LabError::Lives(file.pid)) }
}

async fn ends(file: &LabFile) -> bool {
    let deadline = Instant::now() + GRACE;
    while file.is_served() && Instant::now() < deadline {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    !file.is_served()
}

/// Sends a signal to the very process that served the lab.
fn tell(file: &LabFile, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(file.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    // The handle is for whoever has the pid now; only if that is still ours is it ours for good.
    if start_of(file.pid) == Some(file.started) { Ok(pidfd_send_signal(&handle, signal)?) } else { Ok(()) }
}

async fn remove_machines(folder: &LabFolder, settings: &LabSettings) -> Result<(), LabError> {
    let identity = read_identity(folder)?;
    let addresses = Addresses::known(&folder.addresses())?;
    for host in settings.hosts.iter().filter(|host| folder.host(&host.name).exists()) {
        let failed = |source| LabError::Machines { host: host.name.clone(), source };
        let machines = machine_settings(settings, folder, host, identity.lab, &addresses);
        LocalMachines::open(machines).map_err(failed)?.remove_all().await.map_err(failed)?;
    }
    Ok(())
}

/// What says that there is a lab goes last.
fn remove_files(folder: &LabFolder) -> Result<(), LabError> {
    match fs::remove_dir_all(folder.hosts()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(LabError::file(folder.hosts())(error));
        }
        _ => {}
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

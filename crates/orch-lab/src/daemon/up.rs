//! Bringing a lab up: its process is started, and waited for until it answers.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use orch_model::HostName;
use orch_run::withhold;

use super::{HELPER, ask::status, ports};
use crate::clearing::hosts_below;
use crate::lab_error::LabError;
use crate::lab_file::{self, LabFile, LabFolder};
use crate::settings::LabSettings;
use crate::state;

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// How much of the log is told where the lab does not come up.
const LAST_LINES: usize = 5;

/// A lab that is up.
#[derive(Debug, Clone)]
pub struct Up {
    /// What it says of itself.
    pub file: LabFile,
    /// Whether it was up before.
    pub was_up: bool,
    /// Hosts that it should have and has not, since it was up before they were known.
    pub lacking: BTreeSet<HostName>,
    /// Hosts that it should not have any more, and of which it still keeps what they had.
    pub left_over: BTreeSet<HostName>,
}

impl Up {
    fn of(file: LabFile, was_up: bool, folder: &LabFolder, settings: &LabSettings) -> Result<Self, LabError> {
        let wanted: BTreeSet<HostName> = settings.hosts.iter().map(|host| host.name.clone()).collect();
        let lacking = wanted.iter().filter(|host| !file.hosts.contains_key(*host)).cloned().collect();
        let kept = hosts_below(&folder.hosts()).map_err(LabError::file(folder.hosts()))?;
        let left_over = kept.difference(&wanted).cloned().collect();
        Ok(Self { file, was_up, lacking, left_over })
    }
}

/// Brings a lab up in a process of its own. One that is up stays as it is, whatever the settings say; one that was killed
/// comes up again with the same endpoints, certificates, tokens and machines. What it keeps of hosts that are not among its
/// settings any more stays until it is taken down.
pub async fn up(settings: &LabSettings) -> Result<Up, LabError> {
    let folder = LabFolder::at(&settings.folder);
    if let Some(file) = found(&folder, settings.patience).await? {
        return Up::of(file, true, &folder, settings);
    }
    stays_as_it_is(&folder, settings)?;
    ports::check(settings)?;
    state::make_folder(folder.path()).map_err(LabError::file(folder.path()))?;
    let program = std::path::absolute(&settings.program).unwrap_or_else(|_| settings.program.clone());
    let settings = LabSettings { folder: folder.path().to_owned(), program, ..settings.clone() };
    lab_file::write(&folder.settings(), &settings)?;
    let mut child = start(&folder, &settings)?;
    let answered = answers(&folder, &mut child, settings.patience).await;
    // Whoever goes on to live is to see its end, whenever that comes; whoever does not leaves that to others.
    std::thread::spawn(move || child.wait());
    Up::of(answered?, false, &folder, &settings)
}

/// Machines that run do not turn into paper, nor the other way round: nobody would know of them any more.
fn stays_as_it_is(folder: &LabFolder, settings: &LabSettings) -> Result<(), LabError> {
    let before: Option<LabSettings> = lab_file::read(&folder.settings())?;
    match before {
        Some(before) if before.paper != settings.paper && folder.hosts().exists() => {
            Err(LabError::Paper { folder: folder.path().to_owned(), paper: before.paper })
        }
        _ => Ok(()),
    }
}

/// The lab that is up already. One that is just coming up or going down is waited for.
async fn found(folder: &LabFolder, patience: Duration) -> Result<Option<LabFile>, LabError> {
    let deadline = Instant::now() + patience;
    loop {
        match status(folder.path()).await {
            Ok(status) if status.is_up => return Ok(Some(status.file)),
            Ok(status) if status.file.is_served() && Instant::now() >= deadline => {
                let pid = status.file.pid;
                return Err(LabError::NotUp(format!("its process {pid} runs and does not answer")));
            }
            Ok(status) if status.file.is_served() => tokio::time::sleep(BETWEEN_LOOKS).await,
            Ok(_) | Err(LabError::None(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

fn start(folder: &LabFolder, settings: &LabSettings) -> Result<Child, LabError> {
    let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
    let log = options.open(folder.log()).map_err(LabError::file(folder.log()))?;
    let copy = log.try_clone().map_err(LabError::file(folder.log()))?;
    let mut command = Command::new(&settings.program);
    withhold(&mut command).arg(HELPER).arg(folder.path()).current_dir("/");
    command.stdin(Stdio::null()).stdout(log).stderr(copy).process_group(0);
    command.spawn().map_err(LabError::file(&settings.program))
}

/// Waits until the lab that was just started answers; it is ended where it does not in time.
async fn answers(folder: &LabFolder, child: &mut Child, patience: Duration) -> Result<LabFile, LabError> {
    let deadline = Instant::now() + patience;
    loop {
        if let Ok(status) = status(folder.path()).await
            && status.is_up
            && status.file.pid == child.id()
        {
            return Ok(status.file);
        }
        if let Ok(Some(_)) = child.try_wait() {
            return Err(LabError::NotUp(last_words(folder)));
        }
        if Instant::now() >= deadline {
            // It has not been waited for, so its id is still its own.
            let _ = child.kill();
            return Err(LabError::NotUp(format!("it does not answer within {patience:?}")));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

fn last_words(folder: &LabFolder) -> String {
    let log = fs::read_to_string(folder.log()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "it ended without a word".into();
    }
    lines[lines.len().saturating_sub(LAST_LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{HostKind, LabHost};

    #[tokio::test]
    async fn machines_that_run_do_not_turn_into_paper() {
        let place = tempfile::tempdir().expect("a folder can be made");
        let settings = LabSettings::new(place.path().join("lab"), "orch".into());
        let folder = LabFolder::at(&settings.folder);
        fs::create_dir_all(folder.hosts()).expect("it can be made");
        lab_file::write(&folder.settings(), &settings).expect("it can be written");
        let paper = LabSettings { paper: true, ..settings.clone() };
        assert!(matches!(up(&paper).await, Err(LabError::Paper { paper: false, .. })));
        assert_eq!(lab_file::read(&folder.settings()).expect("it is there"), Some(settings.clone()));
        assert!(stays_as_it_is(&folder, &settings).is_ok());
    }

    #[test]
    fn hosts_that_came_or_went_meanwhile_are_named() {
        let place = tempfile::tempdir().expect("a folder can be made");
        let folder = LabFolder::at(place.path());
        let host = |name: &str| name.parse::<HostName>().expect("a name");
        fs::create_dir_all(folder.host(&host("old"))).expect("it can be made");
        let mut settings = LabSettings::new(place.path().into(), "orch".into());
        settings.hosts = vec![LabHost::new(host("new"), HostKind::Hetzner)];
        let file = LabFile { lab: uuid::Uuid::new_v4(), pid: 1, started: 1, hosts: [].into() };
        let up = Up::of(file, true, &folder, &settings).expect("the folder is read");
        assert_eq!(up.lacking, BTreeSet::from([host("new")]));
        assert_eq!(up.left_over, BTreeSet::from([host("old")]));
    }
}

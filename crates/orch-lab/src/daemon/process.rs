//! The lab's own process, from the inside.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::control;
use crate::apis::api;
use crate::lab::Lab;
use crate::lab_error::LabError;
use crate::lab_file::{self, LabFolder};
use crate::settings::LabSettings;
use crate::state;

/// Serves the lab of a folder until it is told to end.
pub(super) fn serve(folder: &LabFolder) -> Result<(), LabError> {
    // Whoever brought it up may close his terminal. It may lead a session already, which is as good.
    let _ = rustix::process::setsid();
    let _office = take_office(folder)?;
    let settings: Option<LabSettings> = lab_file::read(&folder.settings())?;
    let settings = settings.ok_or_else(|| LabError::None(folder.path().to_owned()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(LabError::file(folder.path()))?;
    runtime.block_on(run(folder, &settings))
}

async fn run(folder: &LabFolder, settings: &LabSettings) -> Result<(), LabError> {
    let mut term = signal(SignalKind::terminate()).map_err(LabError::file(folder.path()))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(LabError::file(folder.path()))?;
    let lab = Arc::new(Lab::begin(settings, &api).await?);
    let end = Arc::new(Notify::new());
    let listener = control::listen(folder).map_err(LabError::file(folder.control()))?;
    let control = tokio::spawn(control::serve(listener, Arc::clone(&lab), Arc::clone(&end)));
    tokio::select! {
        () = end.notified() => {}
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    control.abort();
    let _ = control.await;
    state::remove(&folder.control()).map_err(LabError::file(folder.control()))?;
    if let Some(lab) = Arc::into_inner(lab) {
        lab.end().await;
    }
    Ok(())
}

/// The right to serve or remove the lab. It is the kernel's, and so gone with its holder.
pub(super) fn take_office(folder: &LabFolder) -> Result<File, LabError> {
    let failed = |error: io::Error| LabError::file(folder.lock())(error);
    let options = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).clone();
    let file = options.open(folder.lock()).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(LabError::InUse(folder.path().to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}
